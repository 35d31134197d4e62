"""How long to wait before the next try: doubling, limit, jitter, what a server asked for, reset. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Backoff:
    """A value: keep the one that `next` gives back. Delays double from first_s to limit_s; each is longer by up to
    `jitter` of itself. The first `next` later than reset_after_s after reset_at (monotonic) starts anew, as client-go's
    Backoff.DelayWithReset. at_least_limit_s: the longest pause that a server may ask for."""

    first_s: float
    limit_s: float
    jitter: float = 0.0
    at_least_limit_s: float = 300.0
    reset_after_s: float = float("inf")
    reset_at: float = 0.0
    failures: int = 0  # since the last reset

    def next(
        self, random: Callable[[], float], at_least_s: float | None = None, *, monotonic: float = 0.0
    ) -> tuple[float, Self]:
        """The seconds to wait now, and the value after. at_least_s: the server's Retry-After; random: 0 to 1."""
        now = self.reset(monotonic) if monotonic - self.reset_at > self.reset_after_s else self
        delay_s = min(now.first_s * 2.0 ** min(now.failures, 64), now.limit_s) * (1 + now.jitter * random())
        return max(delay_s, min(at_least_s or 0.0, now.at_least_limit_s)), replace(now, failures=now.failures + 1)

    def reset(self, monotonic: float = 0.0) -> Self:
        """From the start again, as after a success."""
        return replace(self, failures=0, reset_at=monotonic)
