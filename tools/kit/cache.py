"""Caches folders in the user's cache folder. The key is the hash of everything that a folder is made from."""

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tools.kit.commands import Progress

KEY_LENGTH = 16
UNUSED_S = 3600.0


def cache_folder() -> Path:
    """`${XDG_CACHE_HOME:-~/.cache}/readygate`; created if it does not exist."""
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "readygate"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def key_of(parts: Iterable[str | bytes]) -> str:
    """KEY_LENGTH hexadecimal digits; the order of the parts counts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()[:KEY_LENGTH]


def key_of_file(path: Path) -> str:
    """KEY_LENGTH hexadecimal digits of the content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:KEY_LENGTH]


def cached(kind: str, key: str, build: Callable[[Path], None], progress: Progress) -> Path:
    """Returns the folder `<kind>-<key>`. If it does not exist, `build` fills a new folder, which is then renamed.

    So a folder with this name is complete. Folders of the same kind with other keys stay, for other checkouts.
    """
    folder = cache_folder() / f"{kind}-{key}"
    if folder.exists():
        with suppress(OSError):
            os.utime(folder)  # forget_older() keeps the last used folders
        return folder
    with one_at_a_time(
        cache_folder() / f"{kind}.lock", f"another run is making {folder.name}: waiting for it", progress
    ):
        if not folder.exists():  # the previous holder of the lock may have made it
            work = folder.with_name(f"{folder.name}.part")
            # Failed and killed builds of this kind left these. No other process builds while this one has the lock.
            for left in (work, *cache_folder().glob(f"{kind}-{'?' * KEY_LENGTH}.part")):
                shutil.rmtree(left, ignore_errors=True)
            work.mkdir()
            try:
                build(work)
            except BaseException as e:
                if not isinstance(e, Exception):  # interrupted: its log is of no use
                    shutil.rmtree(work, ignore_errors=True)
                raise
            work.rename(folder)
    return folder


def forget_older(kind: str, *, kept: int) -> None:
    """Removes the folders of this kind, except the `kept` last used ones and those used within UNUSED_S seconds.

    Another run may still read from a folder that was used recently.
    """
    used = {}
    for folder in cache_folder().glob(f"{kind}-{'?' * KEY_LENGTH}"):
        with suppress(FileNotFoundError):  # another run has removed it
            used[folder] = folder.stat().st_mtime
    for folder in sorted(used, key=used.__getitem__)[:-kept]:
        if used[folder] < time.time() - UNUSED_S:
            # Rename first: if this process is killed here, no incomplete folder has a valid name.
            with suppress(OSError):
                folder.rename(folder.with_name(f"{folder.name}.gone"))
    for gone in cache_folder().glob(f"{kind}-{'?' * KEY_LENGTH}.gone"):
        shutil.rmtree(gone, ignore_errors=True)


@contextmanager
def one_at_a_time(path: Path, waiting: str, progress: Progress) -> Iterator[None]:
    """Locks the file against other processes. Reports `waiting` if another process has the lock."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(waiting)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
