"""Pure: how often something may be done. Time is an argument."""

import math
from dataclasses import dataclass, field


@dataclass(slots=True)
class RateLimit:
    """A token bucket: per_s tokens a second, at most `most` kept; full at first. Not thread-safe."""

    per_s: float
    most: float
    _tokens: float = field(default=math.inf, init=False)
    _at: float = field(default=-math.inf, init=False)

    def free_at(self, monotonic: float) -> float:
        """Returns when the next token is there; now or earlier if there is one. Ignores half a billionth of a token."""
        self._fill(monotonic)
        return monotonic + max(0.0, 1 - self._tokens - 1e-9) / self.per_s

    def take(self, monotonic: float) -> None:
        """Takes a token. Call free_at() before."""
        self._fill(monotonic)
        self._tokens = max(0.0, self._tokens - 1)

    def full(self, monotonic: float) -> bool:
        """Returns whether the bucket is full, so that it may be dropped."""
        self._fill(monotonic)
        return self._tokens >= self.most

    def _fill(self, monotonic: float) -> None:
        gained = 0.0 if math.isinf(self._at) else max(0.0, monotonic - self._at) * self.per_s
        self._tokens = min(self.most, self._tokens + gained)
        self._at = monotonic
