"""Counts the wall seconds of the main thread of a test process by cause, for `build/durations.json`.

Where one cause is inside another, the outer one has the seconds.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

CAUSES = ("control plane start", "host start", "kubeadm", "Ansible", "timeout waited out", "polling", "asleep")
_seconds: dict[str, float] = dict.fromkeys(CAUSES, 0.0)
_inside = False
_real_sleep = time.sleep


@contextmanager
def spent_on(cause: str) -> Iterator[None]:
    """Adds the wall seconds of the block to a cause, which must be one of CAUSES."""
    global _inside
    if cause not in CAUSES:
        raise ValueError(f"{cause!r} is not a cause: {', '.join(CAUSES)}")
    if _inside or threading.current_thread() is not threading.main_thread():
        yield
        return
    _inside, started = True, time.monotonic()
    try:
        yield
    finally:
        _inside = False
        _seconds[cause] += time.monotonic() - started


def rename(was: str, cause: str, seconds: float) -> None:
    """Moves seconds from one cause to another. Does nothing inside an outer cause or outside the main thread."""
    if not _inside and threading.current_thread() is threading.main_thread():
        _seconds[was] -= seconds
        _seconds[cause] += seconds


def seconds() -> dict[str, float]:
    """Returns wall seconds by cause since the process started."""
    return dict(_seconds)


def count_sleeps() -> None:
    """From now on each `time.sleep` of the main thread outside another cause counts as "asleep"."""
    time.sleep = _counted_sleep


def _counted_sleep(duration_s: float, /) -> None:
    with spent_on("asleep"):
        _real_sleep(duration_s)
