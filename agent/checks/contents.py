"""What stands in files, and which names in a folder: looks for a child process, see `elsewhere`."""

import os
from pathlib import Path

LIMIT_BYTES = 2**20
OWNER_LIMIT_BYTES = 256


def read_files(folder: str, names: list[str]) -> list[list[str]]:
    """Of those that are there: name, content as latin-1, and why it could not be read instead."""
    found = []
    for name in names:
        try:
            with open(_resolved(Path(folder, name)), "rb") as opened:  # noqa: PTH123 - a path made of words
                found.append([name, opened.read(LIMIT_BYTES).decode("latin-1"), ""])
        except FileNotFoundError:
            continue
        except OSError as e:
            found.append([name, "", f"cannot read {e.filename}: {e.strerror}"])
    return found


def names_in(folder: str) -> list[str]:
    """A folder that is not there has none. Raises OSError."""
    try:
        return os.listdir(folder)  # noqa: PTH208 - names alone, of thousands
    except FileNotFoundError:
        return []


def owners_in(folder: str) -> list[list[str | float]]:
    """Of the files in it: name, when it was written, and its first word. What cannot be read is left out. Never waits
    for a writer, as opening a named pipe would. Raises OSError."""
    found: list[list[str | float]] = []
    for name in names_in(folder):
        try:
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(os.path.join(folder, name), flags)  # noqa: PTH118 - of thousands
            with os.fdopen(descriptor, "rb") as opened:
                changed, words = os.fstat(descriptor).st_mtime, (opened.read(OWNER_LIMIT_BYTES) or b"").split()
        except OSError:
            continue
        if words:
            found.append([name, changed, words[0].decode("ascii", errors="replace")])
    return found


def _resolved(file: Path) -> Path:
    """The kubelet's links are absolute, and lead nowhere where the host's folder is mounted at another place."""
    return file.parent / Path(os.readlink(file)).name if file.is_symlink() else file  # noqa: PTH115 - str is enough
