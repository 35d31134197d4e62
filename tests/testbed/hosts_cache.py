"""Folders made once and found again by the hash of all that went into them, under the user's cache folder."""

import fcntl
import hashlib
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.testbed.binaries import Progress, cache_folder

_PROGRESS_EVERY_S = 5.0


class HostsError(Exception):
    """Ring 3 cannot do what was asked; str = cause and remedy, one line."""


def key_of(parts: Iterable[str | bytes]) -> str:
    """16 hexadecimal digits; the order of the parts counts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()[:16]


def key_of_file(path: Path) -> str:
    """16 hexadecimal digits of the content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def cached(kind: str, key: str, build: Callable[[Path], None], progress: Progress) -> Path:
    """The folder `<kind>-<key>` of the cache; `build` fills a new one, which gets its name only when it is complete.

    Older folders of the same kind stay: two checkouts may need different ones. `make clean` does not touch them either.
    """
    folder = cache_folder() / f"{kind}-{key}"
    if folder.exists():
        return folder
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / f"{kind}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"another run is making the {kind}: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():  # the holder of the lock before us may have made it
            work = folder.with_name(f"{folder.name}.part")
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            build(work)
            work.rename(folder)
    return folder


def run(argv: list[str], *, what: str, log: Path, progress: Progress, environ: dict[str, str] | None = None) -> None:
    """Runs to the end, a line of progress every few seconds, output to `log`. Raises HostsError with its last lines."""
    started = time.monotonic()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        try:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environ)
        except OSError as e:
            remedy = "run python -m tests.testbed.packages as root"
            raise HostsError(f"{what}: {argv[0]} cannot be run ({e.strerror}); {remedy}") from e
        try:
            while True:
                try:
                    code = child.wait(timeout=_PROGRESS_EVERY_S)
                    break
                except subprocess.TimeoutExpired:
                    progress(f"{what}: {time.monotonic() - started:.0f} s")
        finally:
            if child.poll() is None:
                child.terminate()
                child.wait()
    if code != 0:
        last = log.read_text(errors="replace").strip().splitlines()[-3:]
        raise HostsError(f"{what} failed with code {code}: {' / '.join(last)[-400:]} (whole output: {log})")
    progress(f"{what}: done in {time.monotonic() - started:.1f} s")
