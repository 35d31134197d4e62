"""Pure: whose kubelet has stopped renewing its Lease, by our own clock.

As in the node lifecycle controller (kubernetes pkg/controller/nodelifecycle, tryUpdateNodeHealth), `renewTime` is only
compared for change: a beat happened when we saw it change, so the clocks of nodes do not matter. Ages are measured up
to the last contact of the Lease watch, so a watch that is silent ages nobody.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

# A kubelet renews after a quarter of its lease duration. Below one and a half of that, every node would flap.
INTERVALS_MIN = 1.5
RENEWS_PER_DURATION = 4
# Without any beat for longer than this, beats could not be written or not be seen: an API server was away, our watch
# was cut. Kubelets jitter by 4 %, so even a single living node moves its Lease within it.
INTERVALS_QUIET = 1.25


@dataclass(frozen=True, slots=True)
class Beat:
    """One node's Lease: its renewTime text, when we last saw that change, the age beyond which the node is lost, and
    the time without any node's beat beyond which ages mean nothing."""

    renew_time: str
    seen_at: float
    limit_s: float
    quiet_s: float


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
                beat = self._beat(renewed, duration_s, now)
            self._beats[node] = beat
        self._moved_at = now

    def saw(self, node: str, renew_time: str, duration_s: float, now: float) -> None:
        beat = self._beats.get(node)
        if beat is None or beat.renew_time != renew_time:
            self._end_quiet(now)
            self._beats[node] = self._beat(renew_time, duration_s, now)
            self._moved_at = now

    def forget(self, node: str) -> None:
        self._beats.pop(node, None)

    def age_s(self, node: str, contact: float) -> float | None:
        """Seconds from the last beat to the last contact of the watch; None without a Lease."""
        beat = self._beats.get(node)
        return None if beat is None else max(0.0, contact - beat.seen_at)

    def lost(self, contact: float) -> set[str]:
        """Nodes whose beat is too old at `contact`, the monotonic time of the watch's last line.

        While no Lease at all moves the fault is not the nodes': no more are lost then, and after the limit none.
        """
        if not self.enabled:
            return set()
        quiet_s = contact - self._moved_at
        self._lost = {
            node
            for node, beat in self._beats.items()
            if contact - beat.seen_at > beat.limit_s
            and quiet_s <= (beat.limit_s if node in self._lost else beat.quiet_s)
        }
        return self._lost

    def _end_quiet(self, now: float) -> None:
        """The first beat after a time without any: kubelets need some seconds to come back (client-go's lease
        controller tries again after up to 7 s), and each gets them. What was lost before stays so until it moves."""
        quiet_s = now - self._moved_at
        if quiet_s <= 1.0:  # beats are frequent: nothing to look at
            return
        for node, beat in self._beats.items():
            if quiet_s > beat.quiet_s and node not in self._lost:
                self._beats[node] = replace(beat, seen_at=now)

    def _beat(self, renew_time: str, duration_s: float, now: float) -> Beat:
        interval_s = duration_s / RENEWS_PER_DURATION
        limit_s = max(self._limit_s, INTERVALS_MIN * interval_s)
        return Beat(renew_time, now, limit_s, quiet_s=INTERVALS_QUIET * interval_s)
