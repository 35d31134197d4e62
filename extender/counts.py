"""Counts of the verbs. Pure: plain numbers, so that they can be read, sent and added up anywhere.

No key holds a node, a pod or any text of a request: the number of series is fixed by the code.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

OTHER_VERBS = ("preempt", "prioritize", "bind")
BUCKETS_S = (0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class RequestResult(StrEnum):
    """How a request ended."""

    ANSWERED = "answered"
    EXEMPT = "exempt"
    NOT_SYNCED = "not_synced"
    STALE = "stale"
    UNANSWERABLE = "unanswerable"
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    ENCODED = "encoded"
    TIMEOUT = "timeout"


def _no_results() -> dict[str, int]:
    return {result.value: 0 for result in RequestResult}


@dataclass(slots=True)
class Counts:
    """From one thread; other threads may read at any time. All but others and removed is of the verb `filter`.

    results: requests by RequestResult. refused: names filtered out, by reason, counted once per request and name.
    durations: answers by the first of BUCKETS_S they fit in, the last number being those that fit in none.
    others: requests by verb and RequestResult. removed: nodes that preemption was kept from, by reason.
    """

    results: dict[str, int] = field(default_factory=_no_results)
    refused: dict[str, int] = field(default_factory=dict)
    durations: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    duration_s: float = 0.0
    others: dict[str, dict[str, int]] = field(default_factory=lambda: {verb: _no_results() for verb in OTHER_VERBS})
    removed: dict[str, int] = field(default_factory=dict)

    def count(self, result: RequestResult) -> None:
        self.results[result] += 1

    def count_other(self, verb: str, result: RequestResult) -> None:
        self.others[verb][result.value] += 1

    def answered_in(self, seconds: float) -> None:
        """seconds: from the complete body to the complete answer."""
        self.durations[bisect_left(BUCKETS_S, seconds)] += 1
        self.duration_s += seconds

    def refuse(self, reasons: Iterable[str]) -> None:
        given = list(reasons)
        for reason in set(given):  # there are a few at most
            self.refused[reason] = self.refused.get(reason, 0) + given.count(reason)

    def remove(self, reasons: Iterable[str]) -> None:
        for reason in reasons:
            self.removed[reason] = self.removed.get(reason, 0) + 1
