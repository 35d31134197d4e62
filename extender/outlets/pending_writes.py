"""Pure: which Events wait to be written, and when. Time is an argument.

At most one waits for each object, the newest. All together are rate-limited, and so are those of each object. A cause
that was written for a Pod is not written again. An Event that has waited for long is dropped as outdated.
"""

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from component.backoff import Backoff
from extender.outlets.event_text import EventText
from extender.outlets.rate_limit import RateLimit
from extender.policy.deadlines import Deadlines

WAITING_MAX = 1000
REMEMBERED_MAX = 20_000  # objects
CAUSES_MAX = 8  # of one Pod that are distinguished
STALE_S = 300.0
OF_ONE_PER_S, OF_ONE_MOST = 1 / 60, 5.0
DENIALS_MAX = 3  # of different objects in a row: then not one namespace is at fault
DENIED_S = 300.0  # asking more often does not grant a missing right
RETRY = Backoff(first_s=0.5, limit_s=30.0, jitter=0.5)


class Waiting(NamedTuple):
    """A waiting Event. since: monotonic; wall: when it happened. unique: a unique text, the same in each try to write
    it."""

    occasion: EventText
    since: float
    wall: float
    unique: str


class PendingWrites:
    """Waiting Events, for one thread. The caller answers each take() with written(), refused() or failed()."""

    def __init__(self, *, per_second: float, random: Callable[[], float]) -> None:
        self._random = random
        self._bucket = RateLimit(per_second, max(1.0, 2 * per_second))
        self._waiting: dict[str, Waiting] = {}  # by uid, in order of arrival
        self._resting: dict[str, Waiting] = {}  # Events of objects that have reached their limit
        self._rests_end = Deadlines()
        self._told: OrderedDict[str, set[str]] = OrderedDict()
        self._buckets: OrderedDict[str, RateLimit] = OrderedDict()
        self._not_before = -math.inf
        self._denials: set[str] = set()
        self._retry = RETRY
        self.dropped = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting) + len(self._resting)

    def add(self, entry: Waiting) -> None:
        occasion = entry.occasion
        uid = occasion.about.uid
        told = self._told.get(uid, set())
        if occasion.cause and (occasion.cause in told or len(told) >= CAUSES_MAX):
            return
        of = self._resting if uid in self._resting else self._waiting
        if uid not in of and self.waiting >= WAITING_MAX:
            self.dropped += 1
            return
        if (before := of.get(uid)) is not None:
            self._was_not_told(before)
        of[uid] = entry
        if occasion.cause:
            self._told[uid] = told | {occasion.cause}
            self._told.move_to_end(uid)
            _bound(self._told)

    def take(self, monotonic: float) -> Waiting | None:
        """Returns the oldest Event if it is time."""
        for uid in self._rests_end.due(monotonic):
            if (entry := self._resting.pop(uid, None)) is not None:
                self._waiting[uid] = entry
        while self._waiting and self._free_at(monotonic) <= monotonic:
            uid = next(iter(self._waiting))
            entry = self._waiting.pop(uid)
            if monotonic - entry.since > STALE_S:
                self._was_not_told(entry)
                self.dropped += 1
                continue
            free_at = self._of_one(uid).free_at(monotonic)
            if free_at <= monotonic:
                return entry
            self._resting[uid] = entry
            self._rests_end.set(uid, free_at)
        return None

    def next_at(self, monotonic: float) -> float:
        """Returns monotonic seconds; infinite while nothing waits."""
        return max(monotonic if self._waiting else self._rests_end.next_at(), self._free_at(monotonic))

    def written(self, entry: Waiting, monotonic: float) -> None:
        self._bucket.take(monotonic)
        self._of_one(entry.occasion.about.uid).take(monotonic)
        self._denials.clear()
        self._retry = RETRY

    def refused(self, entry: Waiting, monotonic: float, *, denied: bool) -> None:
        """Drops the Event. denied: the server reports a missing right, possibly in one namespace only."""
        self._bucket.take(monotonic)
        self.dropped += 1
        if denied:
            self._denials.add(entry.occasion.about.uid)
        if len(self._denials) >= DENIALS_MAX:
            self._denials.clear()
            self._not_before = monotonic + DENIED_S

    def failed(self, entry: Waiting, monotonic: float, retry_after_s: float | None) -> None:
        """Keeps the Event, behind the others, unless a newer one of its object waits; all of them pause."""
        self._bucket.take(monotonic)
        pause_s, self._retry = self._retry.next(self._random, retry_after_s)
        self._not_before = monotonic + pause_s
        self._waiting.setdefault(entry.occasion.about.uid, entry)

    def forget_nodes(self) -> None:
        """Drops Events on Nodes: another replica writes them from now on."""
        for entries in (self._waiting, self._resting):
            for uid in [uid for uid, entry in entries.items() if entry.occasion.about.kind == "Node"]:
                del entries[uid]

    def _was_not_told(self, entry: Waiting) -> None:
        """Forgets the cause, so that it is written when it comes again."""
        self._told.get(entry.occasion.about.uid, set()).discard(entry.occasion.cause)

    def _free_at(self, monotonic: float) -> float:
        return max(self._bucket.free_at(monotonic), self._not_before)

    def _of_one(self, uid: str) -> RateLimit:
        bucket = self._buckets.setdefault(uid, RateLimit(OF_ONE_PER_S, OF_ONE_MOST))
        self._buckets.move_to_end(uid)
        _bound(self._buckets)
        return bucket


def _bound(remembered: "OrderedDict[str, set[str]] | OrderedDict[str, RateLimit]") -> None:
    while len(remembered) > REMEMBERED_MAX:
        remembered.popitem(last=False)
