"""Whose request is answered next. Pure: time is an argument. Used only while more than one waits.

Each request shall be answered within the time that twice as many of its own cost take as there may be connections; the
one whose time is up first is next. So what is cheap goes before what is dear and came a little sooner, and nothing is
put off for ever.

That alone would let a crowd of cheap ones go before a dear one until its time is up, at each of its calls. So the one
that has waited longest is next as soon as those that went before it have cost as much as it will. Beside a crowd that
asks cheap things a dear one waits for as long as its own answer takes, and one of each of the others.
"""

import heapq
from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")

# Seconds that things cost, about; only their ratios matter.
REQUEST_S = 5e-5
BYTE_S = 2e-9
NAME_S = 3e-7  # to look up and to write back; names are told by their commas


def cost_s(body: bytes | bytearray) -> float:
    """An estimate of what the answer to it takes."""
    return REQUEST_S + BYTE_S * len(body) + NAME_S * body.count(b",")


Waiting = tuple[float, int, float, T]
"""When its time is up, its number, its cost in seconds, and who it is."""


class Turns(Generic[T]):
    """Each client at most once at a time. connections: how many there may be."""

    def __init__(self, connections: int) -> None:
        self._patience = 2 * connections
        self.waiting: list[Waiting[T]] = []  # a heap; to be read by others as whether there is anyone
        self._by_age: OrderedDict[int, Waiting[T]] = OrderedDict()  # the same
        self._came = 0
        self._passed_s = 0.0  # what those cost that went before the one that has waited longest

    def __len__(self) -> int:
        return len(self.waiting)

    def put(self, client: T, cost_s: float, monotonic: float) -> None:
        self._came += 1
        one = (monotonic + self._patience * cost_s, self._came, cost_s, client)
        self._by_age[self._came] = one
        heapq.heappush(self.waiting, one)

    def take(self) -> T:
        """The next one. Raises IndexError without any."""
        first, oldest = self.waiting[0], next(iter(self._by_age.values()))
        if first is not oldest and self._passed_s >= oldest[2]:
            self.waiting.remove(oldest)
            heapq.heapify(self.waiting)
            first = oldest
        else:
            heapq.heappop(self.waiting)
        self._passed_s = 0.0 if first is oldest else self._passed_s + first[2]
        del self._by_age[first[1]]
        return first[3]
