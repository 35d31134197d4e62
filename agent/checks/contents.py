"""What stands in files, and which names in a folder: looks for a child process, see `elsewhere`. What takes
such a process long to import, `pathlib` and `json`, is not used."""

import os

LIMIT_BYTES = 2**20
OWNER_LIMIT_BYTES = 256


def read_files(folder: str, names: list[str]) -> list[list[str]]:
    """Of those that are there: name, content as latin-1, and why it could not be read instead."""
    found = []
    for name in names:
        try:
            with open(_resolved(os.path.join(folder, name)), "rb") as opened:  # noqa: PTH118, PTH123 - no pathlib
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


def names_and_owners_in(folder: str, at_most: int) -> tuple[list[str], list[list[str | float]] | None]:
    """Both of one moment; None where there are more names than that. Raises OSError."""
    names = names_in(folder)
    return names, _owners(folder, names) if len(names) <= at_most else None


def owners_in(folder: str) -> list[list[str | float]]:
    """Of the files in it: name, when it was written, and its first word. What cannot be read is left out. Never waits
    for a writer, as opening a named pipe would. Raises OSError."""
    return _owners(folder, names_in(folder))


def _owners(folder: str, names: list[str]) -> list[list[str | float]]:
    found: list[list[str | float]] = []
    for name in names:
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


def _resolved(file: str) -> str:
    """The kubelet's links are absolute, and lead nowhere where the host's folder is mounted at another place."""
    if not os.path.islink(file):  # noqa: PTH114 - as above
        return file
    return f"{os.path.dirname(file)}/{os.path.basename(os.readlink(file))}"  # noqa: PTH115, PTH119, PTH120 - as above
