"""Snapshots in the user's cache folder: made once for each key, used until they expire, and then removed.

Several processes, also of several checkouts, may obtain and remove snapshots at once: a lock of the kernel for each set
of hosts decides who makes one, and a snapshot that any overlay of this machine stands on is not removed.
"""

import fcntl
import json
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tools.kit.cache import KEY_LENGTH, cache_folder, cached, one_at_a_time
from tools.kit.commands import Progress
from tools.testbed.hosts.snapshot import LIFE_S

KEPT = 3
"""Snapshots of one set of hosts, those that were used last."""
LIMIT_GIB = 2.0
"""Of all snapshots together."""
GRACE_S = 600.0
"""Seconds after its last use in which a snapshot is not removed: hosts may be about to boot from it."""
_PROC = Path("/proc")
_ABOUT = "snapshot.json"
_PREFIX = "cluster-"
_NAME = re.compile(rf"({_PREFIX}[\w-]+)-[0-9a-f]{{{KEY_LENGTH}}}")


def obtain(name: str, key: str, make: Callable[[Path], None], progress: Progress) -> Path:
    """The folder of the snapshot of one set of hosts. `make` fills a new one, which has its name once it is whole."""
    kind = _PREFIX + name
    folder = cache_folder() / f"{kind}-{key}"
    if folder.exists() and not is_usable(folder, time.time()):
        with one_at_a_time(_lock_file(kind), f"another run is making {kind}: waiting for it", progress):
            if folder.exists() and not is_usable(folder, time.time()):  # the holder of the lock may have replaced it
                _put_aside(folder)

    def build(work: Path) -> None:
        make(work)
        (work / _ABOUT).write_text(json.dumps({"made": time.time()}))

    return cached(kind, key, build, progress)


def is_usable(folder: Path, now: float) -> bool:
    """It is neither expired nor, because the clock was set back, made in the future. now: seconds since 1970."""
    try:
        made = float(json.loads((folder / _ABOUT).read_text())["made"])
    except (OSError, ValueError, TypeError, KeyError):
        return False
    return made <= now < made + LIFE_S


def discard(folder: Path) -> None:
    """No later start uses it: the hosts of one have failed."""
    kind = _kind_of(folder)
    with one_at_a_time(_lock_file(kind), f"another run is making {kind}: waiting for it", lambda _: None):
        if folder.exists():
            _put_aside(folder)


def tidy() -> None:
    """Removes what is expired, what is left of runs that were killed, and what exceeds KEPT and LIMIT_GIB.

    A set of hosts of which a snapshot is just being made is left for the next time.
    """
    mounted = _mounted()
    kinds = {kind for folder in cache_folder().glob(f"{_PREFIX}*") if (kind := _kind_of(folder))}
    held: list[Path] = []
    for kind in sorted(kinds):
        with _try_lock(_lock_file(kind)) as free:
            if not free:
                continue
            of_kind = [folder for folder in cache_folder().glob(f"{kind}-*") if _kind_of(folder) == kind]
            whole = sorted((folder for folder in of_kind if _NAME.fullmatch(folder.name)), key=_last_use)
            held += whole[-KEPT:]
            for folder in {*whole[:-KEPT], *(each for each in whole if not is_usable(each, time.time()))}:
                if _is_idle(folder, mounted):
                    _put_aside(folder)
            for rest in (each for each in cache_folder().glob(f"{kind}-*") if _kind_of(each) == kind):
                if rest.name.endswith(".part") or (rest.name.endswith(".gone") and _original(rest) not in mounted):
                    shutil.rmtree(rest, ignore_errors=True)
    _keep_below_limit([folder for folder in held if folder.exists()], mounted)


def _keep_below_limit(folders: list[Path], mounted: set[str]) -> None:
    sizes = {folder: _size(folder) for folder in folders}
    total = sum(sizes.values())
    for folder in sorted(folders, key=_last_use)[:-1]:
        if total <= LIMIT_GIB * (1 << 30):
            return
        if not _is_idle(folder, mounted):
            continue
        with _try_lock(_lock_file(_kind_of(folder))) as free:
            if free and folder.exists():
                shutil.rmtree(_put_aside(folder), ignore_errors=True)
                total -= sizes[folder]


def _is_idle(folder: Path, mounted: set[str]) -> bool:
    return folder.name not in mounted and _last_use(folder) < time.time() - GRACE_S


def _put_aside(folder: Path) -> Path:
    """By its name a folder is whole or not there, also when this process is killed while it removes it."""
    aside = folder.with_name(f"{folder.name}.{uuid.uuid4().hex[:8]}.gone")
    folder.rename(aside)
    return aside


def _original(aside: Path) -> str:
    return aside.name.partition(".")[0]


def _kind_of(folder: Path) -> str:
    """ "" for what is no snapshot and nothing left of one."""
    matched = _NAME.match(folder.name)
    return matched[1] if matched else ""


def _lock_file(kind: str) -> Path:
    return cache_folder() / f"{kind}.lock"


@contextmanager
def _try_lock(path: Path) -> Iterator[bool]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _last_use(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:  # another process has removed it
        return 0.0


def _size(folder: Path) -> int:
    """Bytes on the disk."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.lstat().st_blocks * 512
    return total


def _mounted() -> set[str]:
    """Names of the folders that some overlay, in any mount namespace of this machine, stands on."""
    namespaces: set[int] = set()
    names: set[str] = set()
    for process in sorted(_PROC.iterdir()):
        if not process.name.isdecimal():
            continue
        with suppress(OSError):  # it has ended
            namespace = (process / "ns/mnt").stat().st_ino
            if namespace not in namespaces:
                namespaces.add(namespace)
                names |= {found[0] for found in _NAME.finditer((process / "mountinfo").read_text())}
    return names
