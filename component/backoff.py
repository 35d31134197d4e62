"""How long to wait before the next try: doubling, limit, jitter, and the pause that a server requests. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Backoff:
    """Immutable; `next` returns the next one. Delays double from first_s to limit_s; each is longer by up to `jitter`
    of itself. at_least_limit_s: the longest pause that a server may request."""

    first_s: float
    limit_s: float
    jitter: float = 0.0
    at_least_limit_s: float = 300.0
    failures: int = 0  # since the last reset

    def next(self, random: Callable[[], float], at_least_s: float | None = None) -> tuple[float, Self]:
        """Returns the seconds to wait now, and the next value. at_least_s: the server's Retry-After; random: 0 to 1."""
        delay_s = min(self.first_s * 2.0 ** min(self.failures, 64), self.limit_s) * (1 + self.jitter * random())
        return max(delay_s, min(at_least_s or 0.0, self.at_least_limit_s)), replace(self, failures=self.failures + 1)

    def reset(self) -> Self:
        """Returns the value from the start, as after a success."""
        return replace(self, failures=0)
