"""The oldest ansible-core that the playbooks promise to work with, fetched once and kept in the user's cache folder.

Only ansible-core itself: it runs with the Python and the libraries of the virtual environment, ahead of the locked one.
"""

import argparse
import sys
from pathlib import Path

from tools.kit.cache import cache_folder, cached, key_of
from tools.kit.commands import BuildError, Progress, command, run

LOCK = Path(__file__).with_name("ansible-2.16.lock")


def installed(progress: Progress = print) -> Path:
    """A folder for the front of PYTHONPATH; fetched when it is not cached. Raises BuildError."""
    key = key_of([LOCK.read_bytes(), sys.version])
    return cached("ansible", key, lambda folder: _install(folder, progress), progress)


def _install(folder: Path, progress: Progress) -> None:
    options = ["--quiet", "--no-deps", "--require-hashes", "--target", str(folder), "--requirement", str(LOCK)]
    run(
        [sys.executable, "-m", "pip", "install", *options],
        cwd=folder,
        log=cache_folder() / "ansible-install.log",
        what=f"fetching {LOCK.stem}",
        progress=progress,
    )


def main() -> int:
    argparse.ArgumentParser(prog="python -m tools.testbed.shared.oldest_ansible", description=__doc__).parse_args()
    try:
        print(f"ansible: {installed()}", flush=True)
    except BuildError as e:
        print(f"ansible: {e}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    command(main)
