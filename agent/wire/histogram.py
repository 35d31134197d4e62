"""How long things took, counted by upper bounds as Prometheus does. Pure; who shares one guards it."""

from bisect import bisect_left
from collections.abc import Sequence

DEFAULT_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Histogram:
    def __init__(self, bounds: Sequence[float] = DEFAULT_BOUNDS) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def samples(self) -> list[tuple[str, dict[str, str], float]]:
        """(what is added to the name, what to the labels, value)."""
        found: list[tuple[str, dict[str, str], float]] = []
        count = 0
        for bound, more in zip((*self._bounds, None), self._counts, strict=True):
            count += more
            found.append(("_bucket", {"le": "+Inf" if bound is None else f"{bound:g}"}, float(count)))
        return [*found, ("_sum", {}, self._sum), ("_count", {}, float(count))]
