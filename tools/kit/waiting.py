"""Waiting for what another thread or process does: as short as it takes, never without a limit."""

import time
from collections.abc import Callable
from typing import TypeVar

from tools.kit.causes import rename, spent_on

T = TypeVar("T")
PATIENT_S = 30.0
"""For what takes no time of its own: on a machine with ten times as much to do as it can, seconds pass at any place."""


def wait_for(look: Callable[[], T | None], *, timeout_s: float, every_s: float = 0.05) -> T | None:
    """Calls `look` until it returns something true; that, or None when the time is over."""
    started = time.monotonic()
    with spent_on("polling"):
        found = _wait_for(look, started + timeout_s, every_s)
    if not found:
        rename("polling", "timeout waited out", time.monotonic() - started)
    return found


def _wait_for(look: Callable[[], T | None], deadline: float, every_s: float) -> T | None:
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() >= deadline:
            return None
        time.sleep(every_s)


def wait_until(
    condition: Callable[[], object],
    what: str | Callable[[], object] = "",
    *,
    timeout_s: float = PATIENT_S,
    every_s: float = 0.005,
) -> None:
    """Returns once `condition` holds. Raises AssertionError with `what` was waited for, or what it says then."""
    if not wait_for(condition, timeout_s=timeout_s, every_s=every_s):
        raise AssertionError(f"waited {timeout_s:g} s in vain: {what() if callable(what) else what}")
