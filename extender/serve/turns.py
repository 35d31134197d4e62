"""Whose request is answered next. Pure. Used only while more than one waits.

Start-time fair queueing: everyone's requests cost what they are estimated to cost, and the one whose request ends first
in a fair share of the thread is next. So what is cheap goes before what is dear, nobody is put off for ever, and a
client of many dear requests falls behind one of few cheap ones. What a client can make another one wait is what that
one's own request costs, once for each client that asks, and one dear answer that has begun.
"""

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)

REQUEST_COST = 2**14  # of a request without a body, in bytes of body that take as long
NAME_COST = 64  # of a name to look up, beside its bytes


def cost_of(body: bytes | bytearray) -> int:
    """An estimate, in bytes of a body that holds no names. Names are told by their commas."""
    return REQUEST_COST + len(body) + NAME_COST * body.count(b",")


class Turns(Generic[T]):
    """Each client at most once at a time."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, T]] = []  # end of its share, order of coming, begin of its share
        self._ends: dict[T, int] = {}  # of its last share, of clients that may be ahead of `_now`
        self._now = 0
        self._came = 0

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, client: T, cost: int) -> None:
        begin = max(self._now, self._ends.get(client, 0))
        self._came += 1
        self._ends[client] = begin + cost
        heapq.heappush(self._heap, (begin + cost, self._came, begin, client))

    def take(self) -> T:
        """The next one. Raises IndexError without any."""
        _, _, begin, client = heapq.heappop(self._heap)
        self._now = max(self._now, begin)
        if not self._heap:  # nobody waits: what was used until now is forgotten
            self._ends.clear()
            self._now = 0
        return client
