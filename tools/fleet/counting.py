"""Requests, failures and times of many nodes, as counts that can be added up and subtracted. Pure."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

STEP = 1.05  # from one bound of a histogram to the next
LEAST_S = 0.0001


class Times(Counter[int]):
    """A histogram of durations: how many by bound. Exact to five percent."""

    def add(self, seconds: float) -> None:
        self[max(0, math.ceil(math.log(max(seconds, LEAST_S) / LEAST_S, STEP)))] += 1

    def quantile_s(self, fraction: float) -> float:
        """The bound that this share of all durations does not exceed; 0 without any."""
        rank, seen = fraction * self.total(), 0
        for bound in sorted(self):
            seen += self[bound]
            if seen >= rank:
                return float(LEAST_S * STEP**bound)
        return 0.0


class Counts:
    """Of one process. `requests`: by verb and kind of object. `failures`: by cause. `lease`: of renewals, from the
    request to its answer. `late`: how much later than wanted turns began."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.lease, self.late = Times(), Times()

    def as_json(self) -> dict[str, dict[str, int]]:
        return {name: {str(key): n for key, n in dict(counted).items()} for name, counted in vars(self).items()}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Counts":
        found = cls()
        for name in ("requests", "failures"):
            getattr(found, name).update(document.get(name, {}))
        for name in ("lease", "late"):
            getattr(found, name).update({int(key): n for key, n in document.get(name, {}).items()})
        return found

    def plus(self, other: "Counts") -> "Counts":
        found = Counts()
        for name, counted in vars(found).items():
            counted.update(getattr(self, name))
            counted.update(getattr(other, name))
        return found

    def since(self, earlier: "Counts") -> "Counts":
        """What came after `earlier`."""
        found = Counts()
        for name, counted in vars(found).items():
            counted.update(getattr(self, name))
            counted.subtract(getattr(earlier, name))
        return found
