"""A copy of the checkout: a clone that shares git's objects, with the changes that are not committed.

Maps are measured in build/power/copy, faults are planted in build/power/planted. The user's checkout and its git
directory are only read.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "power"
_IDENTITY = ("-c", "user.name=power", "-c", "user.email=power@localhost", "-c", "commit.gpgsign=false")


class CopyError(Exception):
    """The copy cannot be made or changed; str names the file and the cause."""


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *_IDENTITY, "-C", str(folder), *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise CopyError(f"git {words[0]} in {folder} failed: {done.stderr.strip()[-300:]}")
    return done.stdout


class Copy:
    """checkout: what is copied. folder: where the copy is. One process at a time uses a copy."""

    def __init__(self, checkout: Path = ROOT, folder: Path = FOLDER / "copy") -> None:
        self.checkout = checkout
        self.folder = folder

    def renew(self) -> None:
        """Makes the copy as the checkout is now, with changes that are not committed. Raises CopyError."""
        if not (self.folder / ".git").is_dir():
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            _git(self.checkout, "clone", "--quiet", "--shared", "--no-checkout", str(self.checkout), str(self.folder))
        _git(self.folder, "fetch", "--quiet", str(self.checkout), "HEAD")
        _git(self.folder, "checkout", "--quiet", "--force", "--detach", "FETCH_HEAD")
        _git(self.folder, "clean", "-qfd")
        changed = _git(self.checkout, "diff", "--name-only", "-z", "HEAD")
        untracked = _git(self.checkout, "ls-files", "-z", "--others", "--exclude-standard")
        for name in filter(None, f"{changed}\0{untracked}".split("\0")):
            self._copy(name)
        _git(self.folder, "add", "--all")
        _git(self.folder, "commit", "--quiet", "--allow-empty", "--no-verify", "-m", "What faults are planted in")
        self._link_tools()

    def _copy(self, name: str) -> None:
        source, target = self.checkout / name, self.folder / name
        if source.is_symlink() or source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
        else:
            target.unlink(missing_ok=True)

    def _link_tools(self) -> None:
        """Tests name programs of .venv by their path in the checkout."""
        link = self.folder / ".venv"
        if not link.is_symlink() and (self.checkout / ".venv").exists():
            link.symlink_to(self.checkout / ".venv")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other process plants or measures in the copy during the block. Raises CopyError if one does already."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with self.folder.with_suffix(".lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CopyError(f"another process works in {self.folder}: wait for its end") from None
            yield

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    def plant(self, name: str, text: str) -> None:
        """Replaces a file's text; its permissions stay."""
        (self.folder / name).write_text(text)
        self._forget_compiled(name)

    def restore(self, *names: str) -> None:
        """Restores the files, and removes what tests wrote."""
        _git(self.folder, "checkout", "--quiet", "--force", ".")
        _git(self.folder, "clean", "-qfd")
        for name in names:
            self._forget_compiled(name)

    def _forget_compiled(self, name: str) -> None:
        """Python uses a compiled file if the time (in seconds) and the size of its source are still the same."""
        path = self.folder / name
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink(missing_ok=True)

    def files(self, *prefixes: str) -> list[str]:
        """Returns the tracked files whose names begin with one of the prefixes; without any prefix all files."""
        names = _git(self.folder, "ls-files", "-z").split("\0")
        return sorted(name for name in names if name and (not prefixes or name.startswith(prefixes)))

    def blobs(self) -> dict[str, str]:
        """git's hash of the text of each tracked file."""
        rows = (line.partition("\t") for line in _git(self.folder, "ls-files", "-z", "--stage").split("\0") if line)
        return {name: facts.split()[1] for facts, _, name in rows}

    def environ(self, **more: str) -> dict[str, str]:
        """Returns the environment of a process in the copy: modules come from there, and coverage.py stays off."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("COVERAGE_", "PYTEST_"))}
        return {**kept, "PYTHONPATH": str(self.folder), **more}
