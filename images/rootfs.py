"""Base file systems, made by mmdebstrap from Debian's archive and cached by the list of what is in them."""

import os
from collections.abc import Iterable
from pathlib import Path

from images.cache import cached, key_of
from images.commands import BuildError, Progress, run

SUITE = "bookworm"
# What an image of a Python program stands on.
PYTHON_PACKAGES = ("ca-certificates", "python3", "python3-venv")
_SETTINGS = (
    "--variant=minbase",
    '--aptopt=Acquire::Languages "none"',
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/info/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
)


def python_base(progress: Progress) -> Path:
    """Root folder with python3 and CA certificates."""
    return debian("python-base", PYTHON_PACKAGES, progress)


def debian(kind: str, packages: Iterable[str], progress: Progress) -> Path:
    """Root folder of a minimal Debian with these packages. Shared by all who ask for it: never written to."""
    # Without one mmdebstrap takes the archive that belongs to the suite.
    mirror = os.environ.get("READYGATE_DEBIAN_MIRROR", "")
    settings = [*_SETTINGS, f"--include={','.join(packages)}"]

    def build(folder: Path) -> None:
        progress(f"making the {kind} file system (Debian {SUITE}), once")
        command = ["mmdebstrap", "--mode=root", *settings, SUITE, str(folder / "root"), *([mirror] if mirror else [])]
        try:
            run(command, what=f"mmdebstrap {kind}", log=folder / "mmdebstrap.log", progress=progress)
        except BuildError as e:
            where = mirror or "Debian's archive"
            raise BuildError(f"{e}; is {where} reachable? READYGATE_DEBIAN_MIRROR names another") from e

    return cached(kind, key_of([SUITE, *settings]), build, progress) / "root"
