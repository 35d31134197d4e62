"""Pure: gates without any health pod, for longer than a roll-out takes.

The usual cause is a selector that matches nothing: a fault of the configuration that looks like nodes without a health
pod.
"""

import math
from collections.abc import Collection

from extender.cluster.health_pods import GatePods

AFTER_S = 120.0  # a new DaemonSet has its first pods by then


class SilentGates:
    """Gates that are or were silent. Each is returned once, and once when it has health pods again. Not thread-safe."""

    def __init__(self) -> None:
        self._since: dict[GatePods, float] = {}
        self._told: set[GatePods] = set()

    def turn(self, silent: Collection[GatePods], monotonic: float) -> tuple[list[GatePods], list[GatePods]]:
        """Returns the gates to report as silent now, and those that have health pods again. silent: gates without one
        at present."""
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
        """Returns the monotonic time when the next gate must be reported, if nothing changes; infinite if none."""
        return min((at + AFTER_S for one, at in self._since.items() if one not in self._told), default=math.inf)
