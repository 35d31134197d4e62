"""Waiting for what happens on hosts: each look starts programs there, so it is taken seldom.

Deadlines are generous: load makes a test slower, and never red.
"""

from collections.abc import Callable
from typing import TypeVar

from tools.kit import waiting

T = TypeVar("T")
EVERY_S = 0.3
PATIENT_S = 300.0


def wait_for(look: Callable[[], T | None], *, timeout_s: float = PATIENT_S, every_s: float = EVERY_S) -> T | None:
    """Calls `look` until it returns something true; that, or None when the time is over."""
    return waiting.wait_for(look, timeout_s=timeout_s, every_s=every_s)


def wait_until(
    condition: Callable[[], object], what: str | Callable[[], object] = "", *, timeout_s: float = PATIENT_S
) -> None:
    """Returns once `condition` holds. Raises AssertionError with `what` was waited for, or what it says then."""
    waiting.wait_until(condition, what, timeout_s=timeout_s, every_s=EVERY_S)
