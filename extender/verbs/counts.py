"""Counts of requests, answers and lost connections. Pure: plain numbers, which can be read, sent and added up anywhere.

No key holds a node, a pod or any text of a request, so the code fixes the number of time series.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

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


class Lost(StrEnum):
    """Why the server closed a connection that its client did not close.

    PLACES: it was the first to be evicted of too many connections. BYTES: it was the first to be evicted of connections
    that hold too many bytes. DESCRIPTORS: its descriptor was given to a new connection. REFUSED: it was new, and there
    was no descriptor for it. FAILED: it was new, and the kernel or OpenSSL lacked another resource.
    """

    PLACES = "places"
    BYTES = "bytes"
    DESCRIPTORS = "descriptors"
    REFUSED = "refused"
    FAILED = "failed"


def _no_results() -> dict[str, int]:
    return {result.value: 0 for result in RequestResult}


@dataclass(slots=True)
class Counts:
    """Counts that one thread writes and any thread may read. All but others, removed and lost are of the verb `filter`.

    results: requests by RequestResult. refused: names filtered out, by reason, counted once per request and name.
    durations: answers by the first of BUCKETS_S that is not exceeded; the last number counts answers above all of them.
    others: requests by verb and RequestResult. removed: nodes removed from preemption, by reason. lost: connections
    that the server closed, by Lost.
    """

    results: dict[str, int] = field(default_factory=_no_results)
    refused: dict[str, int] = field(default_factory=dict)
    durations: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))
    duration_s: float = 0.0
    others: dict[str, dict[str, int]] = field(default_factory=lambda: {verb: _no_results() for verb in OTHER_VERBS})
    removed: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=lambda: {cause.value: 0 for cause in Lost})

    @property
    def calls(self) -> int:
        return sum(self.results.values())

    @property
    def unanswered(self) -> int:
        """The number of calls without a verdict."""
        return self.calls - self.results[RequestResult.ANSWERED] - self.results[RequestResult.EXEMPT]

    def count(self, result: RequestResult) -> None:
        self.results[result] += 1

    def count_other(self, verb: str, result: RequestResult) -> None:
        self.others[verb][result.value] += 1

    def answered_in(self, seconds: float) -> None:
        """Counts the duration of an answer. seconds: from the complete body to the complete answer."""
        self.durations[bisect_left(BUCKETS_S, seconds)] += 1
        self.duration_s += seconds

    def refuse(self, reasons: Mapping[str, int]) -> None:
        """Counts refused names. reasons: number of names by reason."""
        for reason, number in reasons.items():  # a few at most
            self.refused[reason] = self.refused.get(reason, 0) + number

    def remove(self, reasons: Iterable[str]) -> None:
        for reason in reasons:
            self.removed[reason] = self.removed.get(reason, 0) + 1

    def lose(self, cause: Lost, number: int = 1) -> None:
        self.lost[cause.value] += number


LATELY_S = 600.0
LOOKS_APART_S = 10.0
_LOOKS_MAX = int(LATELY_S / LOOKS_APART_S) + 1


class Pace(NamedTuple):
    """Rate and latency of the calls of the last LATELY_S seconds.

    p99_s: the bucket bound that 99 of 100 answers keep; None without answers, infinite above the last of BUCKETS_S.
    last_s: seconds since the last call, None if there was none.
    """

    per_s: float = 0.0
    p99_s: float | None = None
    last_s: float | None = None


class _Look(NamedTuple):
    monotonic: float
    calls: int
    durations: tuple[int, ...]


class Lately:
    """The calls of the last ten minutes, computed from counts that a caller samples about once a second. One thread
    calls note(); any thread may read."""

    def __init__(self) -> None:
        self._looks: tuple[_Look, ...] = ()
        self._calls = 0
        self._called_at: float | None = None

    def note(self, counts: Counts, monotonic: float) -> None:
        calls = counts.calls
        if not self._looks or calls < self._calls:  # another process, which counts from zero
            self._looks = (_Look(monotonic, calls, tuple(counts.durations)),)
        elif calls > self._calls:
            self._called_at = monotonic
        self._calls = calls
        if monotonic - self._looks[-1].monotonic >= LOOKS_APART_S:
            look = _Look(monotonic, calls, tuple(counts.durations))
            self._looks = (*self._looks[1 - _LOOKS_MAX :], look)

    def over(self, counts: Counts, monotonic: float) -> Pace:
        """Returns rate and latency until now. counts: the newest counts."""
        looks = [look for look in self._looks if look.monotonic >= monotonic - LATELY_S - LOOKS_APART_S]
        calls = counts.calls
        if not looks or monotonic <= looks[0].monotonic or calls < looks[0].calls:
            return Pace()
        first = looks[0]
        took = [after - before for before, after in zip(first.durations, counts.durations, strict=True)]
        last_s = None if self._called_at is None else max(0.0, monotonic - self._called_at)
        return Pace((calls - first.calls) / (monotonic - first.monotonic), _bound(took, 0.99), last_s)


def _bound(took: list[int], share: float) -> float | None:
    """Returns the bucket bound that this share of the answers keeps. took: number of answers by bucket."""
    wanted, seen = share * sum(took), 0
    for number, bound in zip(took, (*BUCKETS_S, math.inf), strict=True):
        seen += number
        if number and seen >= wanted:
            return bound
    return None
