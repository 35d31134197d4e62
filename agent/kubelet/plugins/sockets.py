"""The sockets that plugins register by, as they lie in a folder and those below it."""

import os
import stat
from dataclasses import dataclass

MOST = 1000  # sockets, and folders: what lies there is made by root, but not always well


@dataclass(frozen=True, slots=True)
class Version:
    """Which socket of a path it is: one that was removed and made again is another one."""

    device: int
    inode: int
    changed_ns: int


def sockets(folder: str | os.PathLike[str]) -> dict[str, Version]:
    """By path. Names that begin with a dot are left out, whole folders too; links are not followed. Raises OSError
    where the folder itself cannot be read; what cannot be looked at below it is left out."""
    found: dict[str, Version] = {}
    folders, looked = [os.fspath(folder)], 0
    while folders and looked < MOST and len(found) < MOST:
        here = folders.pop()
        looked += 1
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    _look(entry, found, folders)
        except OSError:
            if looked == 1:
                raise
    return dict(sorted(found.items())[:MOST])


def names_of_sockets(folder: str) -> list[str]:
    """Their paths. Raises OSError as `sockets`."""
    return list(sockets(folder))


def _look(entry: os.DirEntry[str], found: dict[str, Version], folders: list[str]) -> None:
    if entry.name.startswith("."):
        return
    try:
        seen = entry.stat(follow_symlinks=False)
    except OSError:
        return
    if stat.S_ISDIR(seen.st_mode):
        folders.append(entry.path)
    elif stat.S_ISSOCK(seen.st_mode):
        found[entry.path] = Version(seen.st_dev, seen.st_ino, seen.st_ctime_ns)
