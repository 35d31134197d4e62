"""Errors at connections, each kind in the log once a minute: clients can repeat what brings one about. Pure."""

import math
from collections.abc import Callable

AGAIN_S = 60.0


class ErrorLog:
    """For one thread. monotonic: the clock."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._told_at: dict[str, float] = {}

    def may_tell(self, what: str) -> bool:
        """Whether this is to be logged now. what: one of a few constant texts."""
        monotonic = self._monotonic()
        if monotonic - self._told_at.get(what, -math.inf) < AGAIN_S:
            return False
        self._told_at[what] = monotonic
        return True
