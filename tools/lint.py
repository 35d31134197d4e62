"""Runs those checks of the sources that need more than one command.

types      mypy. It checks the changed modules and those that depend on them.
playbooks  ansible-lint. It does not run if the same playbooks have passed before, with the same tools and settings.
words      retired words in what operators read (tools/words.py). `tools/words.txt` lists the exceptions.

The first two have caches in the user's cache folder, which all checkouts of a machine share. Exit code: that of the
tool; 2 for a mistake in the command line.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from importlib.metadata import distributions, version
from pathlib import Path

from tools import words
from tools.kit.cache import cache_folder, cached, forget_older, key_of, one_at_a_time
from tools.kit.commands import command

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
PLAYBOOKS = (
    "site.yml",
    "prepare-control-plane.yml",
    "check.yml",
    "detach.yml",
    "uninstall.yml",
    "node-plugin.yml",
    "node-plugin-uninstall.yml",
    "inventory-sample.yml",
)
# Ansible and ansible-lint also read these; most machines have none of them.
SYSTEM_FOLDERS = (Path("/etc/ansible"), Path("/usr/share/ansible"))
TYPES_KEPT = 3
"""Caches of mypy: 40 MB each."""
VERDICTS_KEPT = 50
"""Verdicts of ansible-lint: a few lines each."""
SUCCESS, HAS_ERRORS = 0, 1


class _FailedError(Exception):
    """ansible-lint has failed; `code` is its exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def types(root: Path = ROOT, arguments: Sequence[str] = ()) -> int:
    """Runs mypy as the checkout's pyproject.toml says, with a cache that all checkouts share. Returns its exit code.

    mypy runs outside of the checkout, so it knows each file by its absolute path: a file that it checked in another
    checkout is compared by content. Only a file of the same checkout is compared by time and size.
    """
    settings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["mypy"]
    key = key_of([version("mypy"), version("librt"), sys.version, repr(settings)])
    with one_at_a_time(
        cache_folder() / "lint-types-run.lock", "another run of mypy uses the cache: waiting for it", print
    ):
        folder = cached("lint-types", key, lambda _empty: None, print)
        forget_older("lint-types", kept=TYPES_KEPT)
        argv = [
            str(BIN / "mypy"),
            "--config-file",
            str(root / "pyproject.toml"),
            "--cache-dir",
            str(folder),
            *arguments,
        ]
        code = subprocess.run(argv, cwd=folder, env={**os.environ, "MYPYPATH": str(root)}, check=False).returncode
        if code not in (SUCCESS, HAS_ERRORS):  # it crashed: the cache may be the cause
            folder.rename(folder.with_name(f"{folder.name}.gone"))
            forget_older("lint-types", kept=TYPES_KEPT)
    return code


def playbooks(root: Path = ROOT, names: Sequence[str] = PLAYBOOKS) -> int:
    """Runs ansible-lint, unless it has passed with the same inputs. Returns its code; a failure is never cached."""
    key = key_of([*_inputs(root / "playbooks"), *names])
    try:
        folder = cached("lint-playbooks", key, lambda empty: _ansible_lint(root / "playbooks", names, empty), print)
    except _FailedError as e:
        return e.code
    forget_older("lint-playbooks", kept=VERDICTS_KEPT)
    print(f"playbooks: {(folder / 'output').read_text().strip()} (inputs {key})")
    return SUCCESS


def _inputs(folder: Path) -> Iterator[str | bytes]:
    """Everything that the verdict depends on: the playbooks, this file, Python and its packages, Ansible's settings."""
    yield from (sys.version, Path(__file__).read_bytes())
    yield from sorted(f"{one.name}=={one.version}" for one in distributions())
    for tree in (folder, *SYSTEM_FOLDERS):
        for path in sorted(tree.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield f"{path.relative_to(tree)} {path.stat().st_mode & 0o111:o}"
                yield path.read_bytes()


def _ansible_lint(folder: Path, names: Sequence[str], result: Path) -> None:
    """Raises _FailedError. Neither settings nor collections of the user reach ansible-lint, so none is in the key."""
    argv = [str(BIN / "ansible-lint"), "--offline", "--nocolor", "--project-dir", ".", *names]
    with tempfile.TemporaryDirectory(prefix="readygate-lint-") as home:
        # ansible-lint searches PATH for ansible-playbook.
        environ = {"HOME": home, "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
        with (result / "output").open("w") as output:
            done = subprocess.run(argv, cwd=folder, env=environ, stdout=output, stderr=output, check=False)
    if done.returncode != SUCCESS:
        print((result / "output").read_text(), end="")
        raise _FailedError(done.returncode)


def retired_words(root: Path = ROOT) -> int:
    """Prints each retired word with its place and what to write instead."""
    try:
        found = words.check(root, words.allowed_in(words.ALLOWED.read_text()))
    except ValueError as e:
        found = [str(e)]
    print("\n".join(found) or "words: no retired word in what operators read")
    return HAS_ERRORS if found else SUCCESS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.lint", description=__doc__)
    parser.add_argument("check", choices=["types", "playbooks", "words"])
    return {"types": types, "playbooks": playbooks, "words": retired_words}[parser.parse_args().check]()


if __name__ == "__main__":
    command(main)
