"""Pure: whose kubelet has stopped renewing its Lease, by our own clock.

As in the node lifecycle controller (kubernetes pkg/controller/nodelifecycle, tryUpdateNodeHealth), `renewTime` is only
compared for change: a beat happened when we saw it change, so the clocks of nodes do not matter. Ages are measured up
to the last contact of the Lease watch, so a watch that is silent ages nobody.
"""

from collections.abc import Iterable
from dataclasses import dataclass

# A kubelet renews after a quarter of its lease duration. Below one and a half of that, every node would flap.
INTERVALS_MIN = 1.5
RENEWS_PER_DURATION = 4


@dataclass(frozen=True, slots=True)
class Beat:
    """One node's Lease: its renewTime text, when we last saw that change, and the age beyond which the node is lost."""

    renew_time: str
    seen_at: float
    limit_s: float


class Heartbeats:
    """Beats of all nodes. Not thread-safe: its owner holds a lock. limit_s = 0 switches it off."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._beats: dict[str, Beat] = {}
        self._moved_at = float("-inf")
        self._lost: set[str] = set()

    @property
    def enabled(self) -> bool:
        return self._limit_s > 0

    def replace(self, leases: Iterable[tuple[str, str, float]], now: float) -> None:
        """A whole list of (node, renewTime, duration in s). What happened before is unknown: all get a fresh grace.

        All but a node that was lost and whose Lease still has not moved: a list is no sign of life.
        """
        before = self._beats
        self._beats = {}
        for node, renewed, duration_s in leases:
            beat = before.get(node)
            if beat is None or node not in self._lost or beat.renew_time != renewed:
                beat = Beat(renewed, now, self._limit_for(duration_s))
            self._beats[node] = beat
        self._moved_at = now

    def saw(self, node: str, renew_time: str, duration_s: float, now: float) -> None:
        beat = self._beats.get(node)
        if beat is None or beat.renew_time != renew_time:
            self._beats[node] = Beat(renew_time, now, self._limit_for(duration_s))
            self._moved_at = now

    def forget(self, node: str) -> None:
        self._beats.pop(node, None)

    def age_s(self, node: str, contact: float) -> float | None:
        """Seconds from the last beat to the last contact of the watch; None without a Lease."""
        beat = self._beats.get(node)
        return None if beat is None else max(0.0, contact - beat.seen_at)

    def lost(self, contact: float) -> set[str]:
        """Nodes whose beat is too old at `contact`, the monotonic time of the watch's last line.

        Empty when no Lease at all has moved within the limit: then the fault is not the nodes'.
        """
        if not self.enabled:
            return set()
        quiet_s = contact - self._moved_at
        self._lost = {node for node, beat in self._beats.items() if quiet_s <= beat.limit_s < contact - beat.seen_at}
        return self._lost

    def _limit_for(self, duration_s: float) -> float:
        return max(self._limit_s, INTERVALS_MIN * duration_s / RENEWS_PER_DURATION)
