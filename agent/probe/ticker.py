"""A ticker as Go has it: fixed phase, one tick is kept for a slow reader, the others are dropped."""

import math


class Ticker:
    """Times are seconds of one monotonic clock. Not safe for threads: its only reader owns it."""

    def __init__(self, period_s: float, monotonic: float) -> None:
        self._period_s = period_s
        self._due = monotonic + period_s

    def wait_s(self, monotonic: float) -> float:
        """Seconds until the next tick; 0 when one is waiting."""
        return max(0.0, self._due - monotonic)

    def take(self, monotonic: float) -> bool:
        """Takes the waiting tick, if there is one. The next comes at the next multiple of the period."""
        if monotonic < self._due:
            return False
        missed = math.floor((monotonic - self._due) / self._period_s)
        self._due += (missed + 1) * self._period_s
        return True

    def reset(self, monotonic: float) -> None:
        """A full period from `monotonic`; a waiting tick is dropped."""
        self._due = monotonic + self._period_s
