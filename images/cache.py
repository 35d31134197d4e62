"""Folders made once and found again by the hash of all that went into them, under the user's cache folder."""

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from images.commands import Progress

KEY_LENGTH = 16
UNUSED_S = 3600.0


def cache_folder() -> Path:
    """`${XDG_CACHE_HOME:-~/.cache}/readygate`; made when it is not there."""
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
    """The folder `<kind>-<key>` of the cache; `build` fills a new one, which gets its name only when it is complete.

    Older folders of the same kind stay: two checkouts may need different ones. `make clean` does not touch them either.
    """
    folder = cache_folder() / f"{kind}-{key}"
    if folder.exists():
        with suppress(OSError):
            os.utime(folder)  # when it was used last
        return folder
    with one_at_a_time(
        cache_folder() / f"{kind}.lock", f"another run is making {folder.name}: waiting for it", progress
    ):
        if not folder.exists():  # the holder of the lock before us may have made it
            work = folder.with_name(f"{folder.name}.part")
            # Of builds that failed or were killed, of other content too; nobody else builds while we hold the lock.
            for left in (work, *cache_folder().glob(f"{kind}-{'?' * KEY_LENGTH}.part")):
                shutil.rmtree(left, ignore_errors=True)
            work.mkdir()
            try:
                build(work)
            except BaseException as e:
                if not isinstance(e, Exception):  # interrupted: nobody asks for its log
                    shutil.rmtree(work, ignore_errors=True)
                raise
            work.rename(folder)
    return folder


def forget_older(kind: str, *, kept: int) -> None:
    """Removes the folders of this kind but for the `kept` that were used last, and those that may be in use still: one
    of other runs, of other checkouts too, reads from its folder for as long as it takes."""
    used = {}
    for folder in cache_folder().glob(f"{kind}-{'?' * KEY_LENGTH}"):
        with suppress(FileNotFoundError):  # another run removes it just now, too
            used[folder] = folder.stat().st_mtime
    for folder in sorted(used, key=used.__getitem__)[:-kept]:
        if used[folder] < time.time() - UNUSED_S:
            # By its name it is whole or not there, also for who is killed in the middle of this.
            with suppress(OSError):
                folder.rename(folder.with_name(f"{folder.name}.gone"))
    for gone in cache_folder().glob(f"{kind}-{'?' * KEY_LENGTH}.gone"):
        shutil.rmtree(gone, ignore_errors=True)


@contextmanager
def one_at_a_time(path: Path, waiting: str, progress: Progress) -> Iterator[None]:
    """Of all processes that lock the file; says `waiting` when another has it."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(waiting)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
