"""So many at once, then one in so many seconds: for lines of log, and for writes. Pure; not for several threads."""

from dataclasses import dataclass


@dataclass(slots=True)
class RateLimit:
    """burst: how many may be taken at once; one more after each every_s, up to burst again. left_out: how many were
    refused before the last one that was given."""

    burst: int
    every_s: float
    left_out: int = 0
    _used: float = 0.0
    _at: float = 0.0
    _refused: int = 0

    def take(self, monotonic: float) -> bool:
        """Takes one, if there is one."""
        if self.wait_s(monotonic) > 0:
            self._refused += 1
            return False
        self._used += 1.0
        self.left_out, self._refused = self._refused, 0
        return True

    def spend(self, monotonic: float) -> None:
        """One that did not ask: those after it wait for so much longer."""
        self.wait_s(monotonic)
        self._used += 1.0

    def wait_s(self, monotonic: float, *, left: int = 0) -> float:
        """Seconds until the next may be taken; 0 now. left: how many are to be there still when it is."""
        if self._used:
            self._used = max(0.0, self._used - max(0.0, monotonic - self._at) / self.every_s)
        self._at = monotonic
        return max(0.0, round((self._used - self.burst + 1 + left) * self.every_s, 6))
