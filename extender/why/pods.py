"""Pure: the records of pods, bounded by their number and by their total size, in names of nodes.

Pods without a refusal are dropped first, then those for which kube-scheduler has not called for the longest time: for a
waiting pod it calls at least every five minutes, and whenever something changes. The newest pods without a refusal
stay: a gate by `podStarts` looks them up seconds later, and a flood of refused pods must not displace them.
"""

from array import array
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from extender.why.entries import PodRecord

PODS_MAX = 25_000
NAMES_MAX = 1_000_000  # of NAME_BYTES each
# One in so many is dropped in addition, so that the oldest are searched for only now and then: iterating a dictionary
# from the front passes every deleted entry.
SPARE_OF = 200
RESERVED_OF = 10  # one place in so many is for pods without a refusal
FORGET_AFTER_S = 3600.0  # after the last call: the pod was placed, or is gone, or fits closed nodes only


class Pods:
    """All records. names: their total size, as PodRecord.names."""

    def __init__(self, *, pods_max: int = PODS_MAX, names_max: int = NAMES_MAX) -> None:
        self._pods_max = pods_max
        self._names_max = names_max
        # Each with the one that was asked about longest ago at the front.
        self._accepted: dict[str, PodRecord] = {}
        self._refused: dict[str, PodRecord] = {}
        self.names = 0
        self._accepted_names = 0  # the part of pods without a refusal
        self._more: dict[str, int] = {}  # size by key, for the few whose names are not all in their codes

    def __len__(self) -> int:
        return len(self._accepted) + len(self._refused)

    def __iter__(self) -> Iterator[PodRecord]:
        yield from self._accepted.values()
        yield from self._refused.values()

    def get(self, key: str) -> PodRecord | None:
        return self._refused.get(key) or self._accepted.get(key)

    def put(self, record: PodRecord) -> int:
        """Stores a record. Returns its size, as PodRecord.names."""
        key, names = f"{record.namespace}/{record.name}", record.names
        self._take_out(key)
        self.names += names
        if names != len(record.codes):
            self._more[key] = names - len(record.codes)
        if record.codes or record.unknown_count or record.unanswered:
            self._refused[key] = record
        else:
            self._accepted[key] = record
            self._accepted_names += names
        return names

    def drop(self, keys: Iterable[str]) -> None:
        """Drops records, with few look-ups: dropped records are in no processor cache."""
        refused, more, names = self._refused, self._more, 0
        for key in keys:
            record = None if key in more else refused.pop(key, None)
            if record is None:
                self._take_out(key)
            else:
                names += len(record.codes)
        self.names -= names

    def _take_out(self, key: str) -> None:
        record = self._refused.pop(key, None)
        accepted = record is None
        if record is None:
            record = self._accepted.pop(key, None)
            if record is None:
                return
        names = len(record.codes) + (self._more.pop(key, 0) if self._more else 0)
        self.names -= names
        if accepted:
            self._accepted_names -= names

    def too_many(self, most: int) -> list[str]:
        """Returns keys of records that must be dropped to keep the bounds, and a few more; the first `most`."""
        over, names_over = len(self) - self._pods_max, self.names - self._names_max
        if over > 0:
            over += self._pods_max // SPARE_OF
        old = max(0, len(self._accepted) - self._pods_max // RESERVED_OF)
        if names_over <= 0:
            return list(islice(chain(islice(self._accepted, old), self._refused), max(0, min(most, over))))
        names_over += self._names_max // SPARE_OF
        found: list[str] = []
        for items, left in (
            (islice(self._accepted.items(), old), self._accepted_names),
            (self._refused.items(), self.names),
        ):
            for key, record in items:
                if len(found) >= most or (over <= 0 and (names_over <= 0 or left <= 0)):
                    break
                found.append(key)
                over -= 1
                names_over -= record.names
                left -= record.names
        return found

    def aged(self, monotonic: float, most: int) -> list[str]:
        """Returns keys of pods without a call for FORGET_AFTER_S, the first few."""
        found: list[str] = []
        for pods in (self._accepted, self._refused):
            for key, record in pods.items():
                if len(found) >= most or monotonic - record.last <= FORGET_AFTER_S:
                    break
                found.append(key)
        return found

    def refused_on(self, number: int) -> Iterator[PodRecord]:
        """Returns pods that were refused the node of this number in their last answered attempt, the latest first."""
        for record in reversed(self._refused.values()):
            if record.refused and number in array("I", record.nodes)[: record.refused]:
                yield record


def numbers_of(nodes: bytes) -> "array[int]":
    return array("I", nodes)
