"""Pure: gates to which no health pod at all speaks, for so long that it is no roll-out.

Most often their selector matches nothing: a fault of the configuration that shows as nodes without a health pod.
"""

import math
from collections.abc import Collection

from extender.cluster.health_pods import GatePods

AFTER_S = 120.0  # a DaemonSet that was just made has its first pods by then


class SilentGates:
    """Each is told once, and once that it is heard again. Not thread-safe."""

    def __init__(self) -> None:
        self._since: dict[GatePods, float] = {}
        self._told: set[GatePods] = set()

    def turn(self, silent: Collection[GatePods], monotonic: float) -> tuple[list[GatePods], list[GatePods]]:
        """silent: those of which nothing is found at present. Who is to be told of now, and who is heard again."""
        again = [one for one in self._since if one not in silent]
        back = [one for one in again if one in self._told]
        for one in again:
            del self._since[one]
            self._told.discard(one)
        for one in silent:
            self._since.setdefault(one, monotonic)
        late = [one for one in silent if one not in self._told and monotonic - self._since[one] >= AFTER_S]
        self._told.update(late)
        return late, back

    @property
    def due_at(self) -> float:
        """Monotonic seconds when the next one is to be told of, if nothing changes; infinite if none is."""
        return min((at + AFTER_S for one, at in self._since.items() if one not in self._told), default=math.inf)
