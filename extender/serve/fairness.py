"""Whose request is answered next. Pure: time is an argument. Used only while more than one waits.

Each request shall be answered within the time that twice as many of its own cost take as there may be connections; the
one whose time is up first is next. So what is cheap goes before what is dear and came a little sooner, and nothing is
put off for ever. This time goes by what was answered since, and by no clock: on a machine that is slower than was
thought all would be beyond their time, and be answered in the order they came.

Who asks seldom goes before a crowd that asks without a pause. Each answer is charged with as much as that rule gives it
by how long it took, and what is charged is forgotten as time passes. Who has more than PAST_S of it asks much and comes
after all who have not, whose time begins when it is forgotten. So one that asks seldom takes half of an equal share of
the time at most, and all of them together half of the time. A client begins as one that asks much, or who connects anew
for each call would be taken for another.

Among those that ask much there is one more difference. Those few that have been here longest, of all that have had
verdicts, have a quarter of that time: a kube-scheduler that works is one of them before a crowd comes. Beside others
that ask alike one of them waits for a tenth of what it would otherwise, and each of them for two or three answers of
each other of them. For all others it is twice as long as it would be, at most, and their own time holds as it did: what
is cheap goes before what is dear.

That alone would let a crowd go before another one until its time is up, at each of its calls. So the one that has
waited longest is next as soon as those that went before it have cost as much as it will. Beside a crowd that asks cheap
things a dear one waits for as long as its own answer takes, and one of each of the others; one that asks seldom waits
for what is answered just then, and for the one that has waited longest.
"""

import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")

# Seconds that things cost, about; only their ratios matter.
REQUEST_S = 5e-5
BYTE_S = 2e-9
NAME_S = 3e-7  # to look up and to write back; names are told by their commas

SENIORS = 8
SENIOR_SHARE = 0.25  # of the time that others have
PAST_S = 3.0  # with 128 connections six answers of 2 ms in a row
NEW_S = 2 * PAST_S  # so that one that has come some seconds ago still asks much


def cost_s(body: bytes | bytearray) -> float:
    """An estimate of what the answer to it takes."""
    return REQUEST_S + BYTE_S * len(body) + NAME_S * body.count(b",")


Waiting = tuple[bool, float, int, float, T]
"""Whether it asks much, when its time is up, its number, its cost in seconds, and who it is."""


class Fairness(Generic[T]):
    """Each client at most once at a time. connections: how many there may be. waiting: those who do, the one that has
    waited longest first; to be read by others as whether there is anyone."""

    def __init__(self, connections: int) -> None:
        self._patience = 2 * connections
        self.waiting: OrderedDict[int, Waiting[T]] = OrderedDict()
        self._by_time: list[Waiting[T]] = []  # a heap of the same, and of some that have had their turn
        self._came = 0
        self._work_s = 0.0  # what all those cost that have had their turn: the clock by which times are up
        self._passed_s = 0.0  # what those cost that went before the one that has waited longest

    def __len__(self) -> int:
        return len(self.waiting)

    def put(
        self, client: T, cost_s: float, monotonic: float, charged_until: float = 0.0, *, senior: bool = False
    ) -> None:
        """charged_until: what charged() gave for it last; NEW_S from its beginning before. senior: one of those
        SENIORS that have been here longest."""
        self._came += 1
        asks_much = charged_until >= monotonic + PAST_S
        rests_s = 0.0 if asks_much else max(0.0, charged_until - monotonic)
        due = self._work_s + rests_s + self._patience * cost_s * (SENIOR_SHARE if senior else 1.0)
        self.waiting[self._came] = one = (asks_much, due, self._came, cost_s, client)
        heapq.heappush(self._by_time, one)
        if len(self._by_time) > 2 * self._patience:  # most have had their turn, as those that have waited longest
            self._by_time = list(self.waiting.values())
            heapq.heapify(self._by_time)

    def charged(self, charged_until: float, took_s: float, monotonic: float) -> float:
        """The same after an answer that took so long, by the clock: a slow machine is slow for all."""
        return min(max(monotonic, charged_until), monotonic + PAST_S) + self._patience * took_s

    def take(self) -> T:
        """The next one. Raises LookupError without any."""
        waiting = self.waiting
        if not waiting:
            raise LookupError("nobody waits")
        oldest = next(iter(waiting.values()))
        first = oldest
        if self._passed_s < oldest[3]:
            first = heapq.heappop(self._by_time)
            while first[2] not in waiting:
                first = heapq.heappop(self._by_time)
        self._passed_s = 0.0 if first is oldest else self._passed_s + first[3]
        self._work_s += first[3]
        del waiting[first[2]]
        if not waiting:
            self._by_time.clear()
        return first[4]


class Readable:
    """By descriptors, as epoll names them. One that is given to another connection meanwhile keeps its place."""

    def __init__(self) -> None:
        self._left: list[int] = []  # who were ready and not looked at

    def chosen(
        self, events: Iterable[tuple[int, int]], goes_first: Callable[[int], bool], most: int
    ) -> list[tuple[int, int]]:
        """events: of all that are ready, with what epoll says of them."""
        given = dict(events)
        there = {fd: given[fd] for fd in self._left if fd in given} | given
        chosen = dict.fromkeys([fd for fd in there if goes_first(fd)][: most // 2])
        for fd in there:
            if len(chosen) == most:
                break
            chosen[fd] = None
        self._left = [fd for fd in there if fd not in chosen]
        return [(fd, there[fd]) for fd in chosen]

    def left(self, fds: Iterable[int]) -> None:
        """Of those chosen last these were not looked at after all."""
        self._left = list(dict.fromkeys([*fds, *self._left]))
