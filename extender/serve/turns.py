"""Whose request is answered next. Pure: time is an argument. Used only while more than one waits.

Each request shall be answered within the time that twice as many of its own cost take as there may be connections; the
one whose time is up first is next. So what is cheap goes before what is dear and came a little sooner, nothing is put
off for ever, and what a whole crowd can make a client wait is what its own request costs, twice for each connection,
and the rest of one dear answer that has begun.
"""

import heapq
from typing import Generic, TypeVar

T = TypeVar("T")

# Seconds that things cost, about; only their ratios matter.
REQUEST_S = 5e-5
BYTE_S = 2e-9
NAME_S = 3e-7  # to look up and to write back; names are told by their commas


def cost_s(body: bytes | bytearray) -> float:
    """An estimate of what the answer to it takes."""
    return REQUEST_S + BYTE_S * len(body) + NAME_S * body.count(b",")


class Turns(Generic[T]):
    """Each client at most once at a time. connections: how many there may be."""

    def __init__(self, connections: int) -> None:
        self._patience = 2 * connections
        self.waiting: list[tuple[float, int, T]] = []  # a heap; to be read by others as whether there is anyone
        self._came = 0

    def __len__(self) -> int:
        return len(self.waiting)

    def put(self, client: T, cost_s: float, monotonic: float) -> None:
        self._came += 1
        heapq.heappush(self.waiting, (monotonic + self._patience * cost_s, self._came, client))

    def take(self) -> T:
        """The next one. Raises IndexError without any."""
        return heapq.heappop(self.waiting)[2]
