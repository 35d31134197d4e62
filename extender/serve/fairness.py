"""Whose bytes are read next, and whose request is answered next, if several wait. Pure: time is an argument.

Order of answers. Each request has a due time: it grows with the request's own estimated cost times twice the number of
connections. The earliest due time is next. So cheap requests go before expensive ones that came a little sooner, and no
request waits for ever. Due times are measured in work done since and not in seconds: on a slow machine all requests
would be overdue and answered in the order of arrival.

Clients that ask seldom go first. Each answer charges its client with the answer's duration times twice the number of
connections, and charges expire with time. A client with more than PAST_S of charge counts as busy and comes after all
others. So a client that asks seldom takes at most half of an equal share of the time, and all of them together half of
the time. A client counts as busy when it connects, because a client may open a new connection for each call.

Seniors go before other busy clients. Seniors are the few clients that have been connected longest of those that have
received verdicts; a working kube-scheduler is one of them before a crowd arrives. Their due time is a quarter of that
of others. Among equal requests a senior waits for a tenth of the usual time, and other clients wait at most twice as
long as without seniors.

The request that has waited longest is next as soon as the answers before it have cost as much as its own. Without this
rule a crowd could go before another client until the due time of each of its calls. So an expensive request among cheap
ones waits for as long as its own answer takes plus one answer of each other client.
"""

import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")

# Estimated costs in seconds; only their ratios matter.
REQUEST_S = 5e-5
BYTE_S = 2e-9
NAME_S = 3e-7  # to look up and to write back; names are counted by their commas

SENIORS = 8
SENIOR_SHARE = 0.25  # of the due time of other clients
PAST_S = 3.0  # six answers of 2 ms in a row with 128 connections
NEW_S = 2 * PAST_S  # so that a client that connected some seconds ago still counts as busy


def cost_s(body: bytes | bytearray) -> float:
    """Returns the estimated cost of answering this body."""
    return REQUEST_S + BYTE_S * len(body) + NAME_S * body.count(b",")


Waiting = tuple[bool, float, int, float, T]
"""Whether it asks much, when its time is up, its number, its cost in seconds, and who it is."""


class Fairness(Generic[T]):
    """The order of answers. Each client is in it at most once at a time.

    connections: the most that there may be. waiting: the waiting clients, the one that has waited longest first; others
    read it to see whether any client waits.
    """

    def __init__(self, connections: int) -> None:
        self._patience = 2 * connections
        self.waiting: OrderedDict[int, Waiting[T]] = OrderedDict()
        self._by_time: list[Waiting[T]] = []  # a heap of the same, and of some that were answered
        self._came = 0
        self._work_s = 0.0  # the cost of all answered requests: the clock of due times
        self._passed_s = 0.0  # the cost of the requests that were answered before the one that has waited longest

    def __len__(self) -> int:
        return len(self.waiting)

    def put(
        self, client: T, cost_s: float, monotonic: float, charged_until: float = 0.0, *, senior: bool = False
    ) -> None:
        """Adds a waiting client. charged_until: the last result of charged(); NEW_S after its connection before the
        first one. senior: whether it is one of the SENIORS."""
        self._came += 1
        asks_much = charged_until >= monotonic + PAST_S
        rests_s = 0.0 if asks_much else max(0.0, charged_until - monotonic)
        due = self._work_s + rests_s + self._patience * cost_s * (SENIOR_SHARE if senior else 1.0)
        self.waiting[self._came] = one = (asks_much, due, self._came, cost_s, client)
        heapq.heappush(self._by_time, one)
        if len(self._by_time) > 2 * self._patience:  # most were answered already, as those that had waited longest
            self._by_time = list(self.waiting.values())
            heapq.heapify(self._by_time)

    def charged(self, charged_until: float, took_s: float, monotonic: float) -> float:
        """Returns the new charged_until after an answer that took took_s seconds by the clock: a slow machine is slow
        for all."""
        return min(max(monotonic, charged_until), monotonic + PAST_S) + self._patience * took_s

    def take(self) -> T:
        """Returns the next client. Raises LookupError without any."""
        waiting = self.waiting
        if not waiting:
            raise LookupError("no client waits")
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
    """The order of reading, if more connections have bytes than one turn of the loop reads.

    Connections are read in the order in which they became ready, except for a few that go first. Those take at most
    half of a turn, so no connection waits for more than twice as long. A descriptor that a new connection reuses keeps
    its place.
    """

    def __init__(self) -> None:
        self._left: list[int] = []  # ready connections that were not read

    def chosen(
        self, events: Iterable[tuple[int, int]], goes_first: Callable[[int], bool], most: int
    ) -> list[tuple[int, int]]:
        """Returns the events to handle in this turn. events: all ready descriptors with their events."""
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
        """Records that these descriptors, chosen last, were not read."""
        self._left = list(dict.fromkeys([*fds, *self._left]))
