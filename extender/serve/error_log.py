"""Logs each kind of connection error once a minute, because clients can cause errors again and again. Pure."""

import math
from collections.abc import Callable

AGAIN_S = 60.0


class ErrorLog:
    """Limits the error log, for one thread. monotonic: the clock."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._told_at: dict[str, float] = {}

    def may_tell(self, what: str) -> bool:
        """Returns whether this error may be logged now. what: one of a few constant texts."""
        monotonic = self._monotonic()
        if monotonic - self._told_at.get(what, -math.inf) < AGAIN_S:
            return False
        self._told_at[what] = monotonic
        return True
