"""Pure: which name is due when, the earliest first. Used for what time alone changes: a grace, a kubelet's Lease.

Setting a later time costs one store into a dictionary: the heap keeps the earlier entry, and finds out when it is that
entry's turn. So there is one entry a name, however often its time moves on. Those of dropped names go when they are
more than all others.
"""

import heapq
import math
from collections.abc import Iterable

SPARE = 64  # entries, for which alone nothing is made anew


class Deadlines:
    """Times by name, all of the same clock. Not thread-safe: its owner holds a lock, or is one thread."""

    def __init__(self, times: Iterable[tuple[str, float]] = ()) -> None:
        self._at = dict(times)
        self._enter_all()

    def __len__(self) -> int:
        return len(self._at)

    def set(self, name: str, at: float) -> bool:
        """Whether next_at() is earlier now."""
        self._at[name] = at
        if at >= self._entered.get(name, math.inf):
            return False
        self._enter(name, at)
        return self._heap[0] == (at, name)

    def drop(self, name: str) -> None:
        self._at.pop(name, None)

    def next_at(self) -> float:
        """Nothing is due before; infinite without any. May be too early, as it knows dropped and moved times too."""
        return self._heap[0][0] if self._heap else math.inf

    def due(self, at: float) -> list[str]:
        """Names whose time is `at` or earlier; they are forgotten."""
        found = []
        while self._heap and self._heap[0][0] <= at:
            entered_at, name = heapq.heappop(self._heap)
            if self._entered.get(name) != entered_at:
                continue  # an earlier entry of this name has spoken for it
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
