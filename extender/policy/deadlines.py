"""Pure: which name is due when, the earliest first. For changes that only time causes: a grace period, a kubelet's
Lease.

Setting a later time costs one dictionary store: the heap keeps the earlier entry, and finds out when that entry is due.
So there is one entry a name, however often its time moves. Entries of dropped names are removed when they outnumber all
others.
"""

import heapq
import math
from collections.abc import Iterable

SPARE = 64  # dropped entries that alone cause no new heap


class Deadlines:
    """Times by name, all of the same clock. Not thread-safe: its owner holds a lock, or is one thread."""

    def __init__(self, times: Iterable[tuple[str, float]] = ()) -> None:
        self._at = dict(times)
        self._enter_all()

    def __len__(self) -> int:
        return len(self._at)

    def set(self, name: str, at: float) -> bool:
        """Sets the time of a name. Returns whether next_at() is earlier now."""
        self._at[name] = at
        if at >= self._entered.get(name, math.inf):
            return False
        self._enter(name, at)
        return self._heap[0] == (at, name)

    def drop(self, name: str) -> None:
        self._at.pop(name, None)

    def next_at(self) -> float:
        """Returns a time before which nothing is due; infinite if empty. It may be too early, because of dropped and
        moved times."""
        return self._heap[0][0] if self._heap else math.inf

    def due(self, at: float) -> list[str]:
        """Returns the names whose time is `at` or earlier, and removes them."""
        found = []
        while self._heap and self._heap[0][0] <= at:
            entered_at, name = heapq.heappop(self._heap)
            if self._entered.get(name) != entered_at:
                continue  # an earlier entry of this name was used already
            del self._entered[name]
            own = self._at.get(name, math.inf)
            if own <= at:
                del self._at[name]
                found.append(name)
            elif own < math.inf:
                self._enter(name, own)
        return found

    def _enter(self, name: str, at: float) -> None:
        self._entered[name] = at
        heapq.heappush(self._heap, (at, name))
        if len(self._heap) > 2 * len(self._at) + SPARE:
            self._enter_all()

    def _enter_all(self) -> None:
        self._entered = dict(self._at)  # name -> time of its entry in the heap, never later than its own time
        self._heap = [(at, name) for name, at in self._at.items()]
        heapq.heapify(self._heap)
