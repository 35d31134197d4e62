"""Pure: whose kubelet has stopped renewing its Lease, by our own clock.

As in the node lifecycle controller (kubernetes pkg/controller/nodelifecycle, tryUpdateNodeHealth), `renewTime` is only
compared for change: a beat happened when we saw it change, so the clocks of nodes do not matter. Ages are measured up
to the last contact of the Lease watch, so a watch that is silent ages nobody.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from extender.deadlines import Deadlines

# A kubelet renews after a quarter of its lease duration. Below one and a half of that, every node would flap.
INTERVALS_MIN = 1.5
RENEWS_PER_DURATION = 4
# Without any beat for longer than this, beats could not be written or not be seen: an API server was away, our watch
# was cut. Kubelets jitter by 4 %, so even a single living node moves its Lease within it.
INTERVALS_QUIET = 1.25


class Renewal(NamedTuple):
    """What one Lease says. renew_time: RFC 3339 text, only compared. duration_s: how long it claims to hold."""

    node: str
    renew_time: str
    duration_s: float


@dataclass(frozen=True, slots=True)
class Beat:
    """One node's Lease: its renewTime text, when we last saw that change, the age beyond which the node is lost, and
    the time without any node's beat beyond which ages mean nothing."""

    renew_time: str
    seen_at: float
    limit_s: float
    quiet_s: float


class Heartbeats:
    """Beats of all nodes. Not thread-safe: its owner holds a lock. limit_s: age beyond which a node is lost."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._beats: dict[str, Beat] = {}
        self._expiry = Deadlines()  # when each beat reaches its limit
        self._aged: set[str] = set()  # beats that have reached it; what is lost is among these
        self._moved_at = -math.inf
        self._lost: set[str] = set()

    def replace(self, leases: Iterable[tuple[str, str, float]], monotonic: float) -> None:
        """A whole list of Renewals. What happened before is unknown: all get a fresh grace.

        All but a node that was lost and whose Lease still has not moved: a list is no sign of life.
        """
        before = self._beats
        self._beats, self._aged, expiry = {}, set(), []
        for node, renew_time, duration_s in leases:
            beat = before.get(node)
            if beat is None or node not in self._lost or beat.renew_time != renew_time:
                beat = self._beat(renew_time, duration_s, monotonic)
            self._beats[node] = beat
            expiry.append((node, beat.seen_at + beat.limit_s))
        self._expiry = Deadlines(expiry)
        self._moved_at = monotonic

    def renewed(self, node: str, renew_time: str, duration_s: float, monotonic: float) -> bool:
        """The Lease was seen; it is a beat if its renewTime has changed. Whether due_at() may be earlier now."""
        beat = self._beats.get(node)
        if beat is not None and beat.renew_time == renew_time:
            return False
        if monotonic - self._moved_at > 1.0:  # else beats are frequent, and nobody is quiet
            self._end_quiet(monotonic)
        self._moved_at = monotonic
        return self._keep(node, self._beat(renew_time, duration_s, monotonic))

    def forget(self, node: str) -> None:
        self._beats.pop(node, None)
        self._aged.discard(node)
        self._expiry.drop(node)

    def age_s(self, node: str, contact: float) -> float | None:
        """Seconds from the last beat to the last contact of the watch; None without a Lease."""
        beat = self._beats.get(node)
        return None if beat is None else max(0.0, contact - beat.seen_at)

    def lost(self, contact: float) -> set[str]:
        """Nodes whose beat is too old at `contact`, the monotonic time of the watch's last line.

        While no Lease at all moves the fault is not the nodes': no more are lost then, and after the limit none.
        """
        self._aged.update(self._expiry.due(contact))
        quiet_s = contact - self._moved_at
        self._lost = {node for node in self._aged if self._is_lost(node, contact, quiet_s)}
        return self._lost

    def due_at(self) -> float:
        """The earliest contact at which lost() may give another answer; renewals but put it off, or bring a new Lease.

        As of the last call of lost(). Walks over the nodes that have reached their limit, no others.
        """
        if self._aged - self._lost:
            return -math.inf  # the first beat after a time without any decides on them
        first_opens_at = min((self._moved_at + self._beats[node].limit_s for node in self._aged), default=math.inf)
        return min(self._expiry.next_at(), first_opens_at)

    def _is_lost(self, node: str, contact: float, quiet_s: float) -> bool:
        beat = self._beats[node]
        too_old = contact - beat.seen_at > beat.limit_s
        quiet_limit_s = beat.limit_s if node in self._lost else beat.quiet_s
        return too_old and quiet_s <= quiet_limit_s

    def _keep(self, node: str, beat: Beat) -> bool:
        self._beats[node] = beat
        self._aged.discard(node)
        return self._expiry.set(node, beat.seen_at + beat.limit_s)

    def _end_quiet(self, monotonic: float) -> None:
        """The first beat after a time without any: kubelets need some seconds to come back (client-go's lease
        controller tries again after up to 7 s), and each gets them. What was lost before stays so until it moves."""
        quiet_s = monotonic - self._moved_at
        for node, beat in self._beats.items():
            if quiet_s > beat.quiet_s and node not in self._lost:
                self._keep(node, replace(beat, seen_at=monotonic))

    def _beat(self, renew_time: str, duration_s: float, monotonic: float) -> Beat:
        interval_s = duration_s / RENEWS_PER_DURATION
        limit_s = max(self._limit_s, INTERVALS_MIN * interval_s)
        return Beat(renew_time, monotonic, limit_s, quiet_s=INTERVALS_QUIET * interval_s)
