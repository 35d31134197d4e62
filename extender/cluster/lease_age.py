"""Pure: which kubelet has stopped renewing its Lease, by the extender's own clock.

As in the node lifecycle controller (kubernetes pkg/controller/nodelifecycle, tryUpdateNodeHealth), `renewTime` is only
compared for change: a heartbeat happened when its change was observed, so clocks of nodes do not matter.

*When ages count.* An age by the own clock needs two facts besides, each no older than BLIND_LIMIT_S. First, everything
was read: a line or a list of the Lease watch, or an additional list in which this Lease has not moved (`read`; without
it a lone kubelet that dies would leave nothing to read, and its node open). Second, kubelets could write: the API
server has answered something. A living kubelet's Lease is then at most 10.4 + 12.5 s old, below 24 s. After a longer
gap of either kind (API server away, watch cut, extender stopped with lines unread) each node has RETURN_S to renew
before its age counts again; client-go's lease controller retries after at most 7 s.

*Lists.* A list is no sign of life: a Lease that has not moved keeps its age, so repeated lists give no node more time.
If a Lease moved between two lists, the difference of both `renewTime`s says when. That compares the kubelet's clock
with itself. It is accepted only within the unobserved time, and not if `managedFields` and the Date of the answer show
that the move was seconds later: then that clock was set back. An additional list in which no Lease has moved proves
that no line was unread: of two agents the living one may be late, and the dead one is still detected in time.

*First list.* It shows ages, too. `managedFields` hold the API server's clock; by comparing Leases with it, a node that
died before the extender started is lost at once. Without that clock `renewTime` is compared, which is the kubelet's
clock and may be wrong by any amount: such a node is lost only after BLIND_LIMIT_S more without a move. The same holds
for `managedFields` compared with the Date of the answer, which gives the age of a Lease if no other node lives: a proxy
may have written the Date, or the API server itself may have been away. A first list after failures comes while kubelets
return: RETURN_S again.

*Many at once.* Two silent nodes are dead. A silent fifth of a cluster more likely cannot reach its API server (a load
balancer, one of three API servers, a webhook that refuses Leases). So many together are not lost by silence alone; the
second signal is the node lifecycle controller's, which turns the Node's Ready to Unknown after 50 s.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from extender.policy.deadlines import Deadlines
from kube.times import parse_time

# A kubelet renews after a quarter of its lease duration, plus or minus 4 %, and so does an agent. With a limit below
# one and a half of that every node would flap; after one and a quarter without a renewal a node is late.
RENEWS_PER_DURATION = 4
INTERVALS_MIN = 1.5
INTERVALS_LATE = 1.25
INTERVALS_ALIVE = 1.1
INTERVAL_S = 10.0  # of kubelets by default
DURATION_MAX_S = 400.0  # the node lifecycle controller gives up a node with a longer duration in any case

BLIND_LIMIT_S = 12.5
BLIND_LIMIT_MIN_S = 4.0
RETURN_S = BLIND_LIMIT_S  # not longer, or lists every 20 s would postpone it for ever
READ_EARLY_S = 1.5  # how long before BLIND_LIMIT_S an additional list is requested
FRESH_S = 2.0  # and before a node is lost, to see which others are late
FRESH_LEASES_MAX = 500  # what a list of one page can tell; where there are more Leases, one moves at any time

MANY = 3  # and more than this share of the nodes; or all of two and more
MANY_SHARE = 0.2
TOGETHER_S = 60.0  # a node that was lost so long before belongs to another event

WHOLE_SECOND_S = 1.0  # times in managedFields have no fraction
DATED_S = 2 * WHOLE_SECOND_S  # an age by the Date of an answer may be too low by so much
STEP_S = 2.0  # a kubelet's clock may drift by so much in some seconds; more means that it was set


class Renewal(msgspec.Struct, frozen=True, gc=False):
    """One Lease. renew_time: RFC 3339 text by the kubelet's clock. duration_s: its lease duration.

    written: the last write by the API server's clock, whole seconds; "" if it was not read.
    """

    node: str
    renew_time: str
    duration_s: float
    written: str = ""


class LeaseAge(msgspec.Struct, frozen=True, gc=False):
    """The age of one node's Lease: its renewTime text, when it changed, its duration; the age from which the node is
    lost, and the age from which it is late."""

    renew_time: str
    seen_at: float
    duration_s: float
    limit_s: float
    late_s: float


class LeaseAges:
    """The ages of all Leases. Not thread-safe: its owner holds a lock.

    limit_s: age from which a node is lost, or so many `intervals` of its own Lease if those are longer.
    """

    def __init__(self, limit_s: float, intervals: float = INTERVALS_MIN) -> None:
        self._limit_s = limit_s
        self._intervals = intervals
        self._blind_limit_s = max(BLIND_LIMIT_MIN_S, min(BLIND_LIMIT_S, limit_s - INTERVALS_ALIVE * INTERVAL_S))
        self._read_after_s = self._blind_limit_s - READ_EARLY_S
        self._beats: dict[str, LeaseAge] = {}
        self._expiry = Deadlines()  # when each age reaches its limit
        self._aged: set[str] = set()  # nodes whose age has reached it; lost nodes are among these
        self._lost: set[str] = set()
        self._listed = False
        self._heard_at = math.inf  # last answer of the API server; infinite: nothing yet
        self._read_at = math.inf  # until then all heartbeats are known
        self._returning_since = -math.inf  # when kubelets could write again, or reading went on
        self._unmoved: set[str] = set()  # by the last additional list
        self._unmoved_at = -math.inf
        # when an additional list was requested in which nothing had moved: no line was unread
        self._still_at = -math.inf
        self._many = False
        self._wanted = False  # an additional list, at once

    def replace(
        self,
        leases: Sequence[Renewal],
        monotonic: float,
        *,
        began: float | None = None,
        after_failures: bool = False,
        ahead_s: float | None = None,
    ) -> None:
        """Takes a whole list. began: when it was requested. after_failures: whether earlier requests had failed.
        ahead_s: how far the API server's clock is ahead, by the Date of its answer, if there is one."""
        as_of = monotonic if began is None else min(began, monotonic)
        self.answered(monotonic)
        if not self._listed and after_failures:
            self._returning_since = monotonic
        before, self._beats = self._beats, {}
        lost = set()
        # A Lease that has moved did so since the last time all heartbeats were known, whatever the clocks of several
        # API servers say.
        moved_after = min(self._read_at, as_of) if self._listed else -math.inf
        by_server = _behind_the_newest(leases, "written")
        by_kubelets = _behind_the_newest((one for one in leases if one.node not in by_server), "renew_time")
        for lease in leases:
            node, beat = lease.node, before.get(lease.node)
            if beat is None or beat.renew_time != lease.renew_time:
                beat = self._beat(lease, as_of, beat)
                unsure_s = beat.limit_s - max(self._blind_limit_s, beat.late_s)  # by then a living node has renewed
                dated_s = _age_by_date(lease, as_of, ahead_s)
                if node in by_server:
                    age_s = max(by_server[node] - WHOLE_SECOND_S, min(dated_s or 0.0, unsure_s))
                else:
                    age_s = min(by_kubelets.get(node, 0.0), unsure_s)
                seen_at = max(as_of - max(0.0, age_s), moved_after)
                own = _by_its_own_clock(before.get(node), lease)
                earliest = moved_after if dated_s is None else max(moved_after, as_of - dated_s - DATED_S)
                if earliest - STEP_S <= own <= as_of + STEP_S:  # otherwise that clock was set in the meantime
                    seen_at = min(seen_at, max(own, moved_after))
                beat = replace(beat, seen_at=seen_at)
            elif node in self._lost:
                lost.add(node)
            self._beats[node] = beat
        self._lost, self._aged, self._listed, self._read_at = lost, set(), True, as_of
        self._expiry = Deadlines((node, beat.seen_at + beat.limit_s) for node, beat in self._beats.items())

    def renewed(self, lease: Renewal, monotonic: float) -> bool:
        """Takes a line of the watch; it is a heartbeat if renewTime has changed. Returns whether due_at() may be
        earlier now."""
        if monotonic - max(self._read_at, self._still_at) > self._blind_limit_s:
            self._returning_since = monotonic  # more lines may be unread
        self._read_at = monotonic
        self.answered(monotonic)
        node = lease.node
        before = self._beats.get(node)
        if before is not None and before.renew_time == lease.renew_time:
            return False
        self._beats[node] = beat = self._beat(lease, monotonic, before)
        self._aged.discard(node)
        return self._expiry.set(node, monotonic + beat.limit_s)

    def forget(self, node: str) -> None:
        self._beats.pop(node, None)
        self._aged.discard(node)
        self._expiry.drop(node)

    def answered(self, monotonic: float) -> None:
        """Records that the API server has sent or answered something."""
        if monotonic - self._heard_at > self._blind_limit_s:
            self._returning_since = monotonic
        self._heard_at = monotonic

    @property
    def unanswered(self) -> bool:
        """Returns whether nothing was received since failed()."""
        return self._heard_at == -math.inf

    def failed(self) -> None:
        """Records that the API server did not answer."""
        self._heard_at = -math.inf

    def read(self, leases: Iterable[Renewal], began: float, monotonic: float) -> None:
        """Takes an additional list, requested at `began`. A Lease that has moved in it moves when its line comes."""
        self.answered(monotonic)
        self._wanted = False
        self._unmoved_at = began
        self._unmoved, moved = set(), False
        for lease in leases:
            beat = self._beats.get(lease.node)
            if beat is not None and beat.renew_time == lease.renew_time:
                self._unmoved.add(lease.node)
            else:
                moved = True
        if not moved:
            self._still_at = began

    def read_due_at(self) -> float:
        """Returns when such a list is needed, because ages would no longer count without it; infinite if it is of no
        use."""
        if not len(self._lost) < len(self._beats):
            return math.inf
        return -math.inf if self._wanted else max(self._read_at, self._unmoved_at) + self._read_after_s

    def seen(self) -> dict[str, float]:
        """Returns the monotonic time of the last heartbeat, by node."""
        return {node: beat.seen_at for node, beat in self._beats.items()}

    def lost(self, monotonic: float, only_signal: Callable[[str], bool] = lambda _: True) -> set[str]:
        """Returns the nodes whose Lease is too old. A lost node stays lost until its Lease moves or is deleted.

        only_signal(node): whether only the Lease shows that the node is lost; False for a node without a Node object.
        """
        self._aged.update(self._expiry.due(monotonic))
        self._lost &= self._aged
        old = [node for node in self._aged - self._lost if self._is_old(node, monotonic)]
        known_from = self._known_from(monotonic)
        silent = [node for node in old if self._known_at(node) >= known_from or self._was_old(node, monotonic)]
        self._wanted = len(silent) < len(old) and any(self._tells(node, monotonic) for node in old)
        self._many = (bool(silent) or self._many) and self._are_many(monotonic, only_signal)
        if self._many:
            # Nodes that return one by one must not make the others few: their time begins when the outage is over.
            self._returning_since = monotonic
            silent = [node for node in silent if not only_signal(node)]
        self._lost.update(silent)
        return set(self._lost)

    def due_at(self) -> float:
        """Returns the earliest time at which lost() may return something else; minus infinity: at any time. As of its
        last call.

        Iterates over nothing.
        """
        if len(self._aged) == len(self._lost):
            return self._expiry.next_at()
        if self._many:
            return -math.inf
        return min(self._expiry.next_at(), self._returning_since + RETURN_S)

    def _is_old(self, node: str, monotonic: float) -> bool:
        beat = self._beats[node]
        return monotonic >= max(beat.seen_at + beat.limit_s, self._returning_since + RETURN_S)

    def _was_old(self, node: str, monotonic: float) -> bool:
        """Returns whether the node was lost by the last complete knowledge: later lines cannot change that, as long as
        BLIND_LIMIT_S is kept. So is a node that died before the start, while other lists are slow."""
        known_at = self._known_at(node)
        return known_at >= monotonic - self._blind_limit_s and self._is_old(node, known_at)

    def _known_at(self, node: str) -> float:
        """Until then its heartbeats are known."""
        return max(self._read_at, self._unmoved_at) if node in self._unmoved else self._read_at

    def _known_from(self, monotonic: float) -> float:
        """A lost node has not moved until then: it had its time since its last heartbeat, and its time to return."""
        if len(self._beats) <= FRESH_LEASES_MAX:
            return monotonic - FRESH_S
        return max(monotonic - self._blind_limit_s, self._returning_since + RETURN_S - FRESH_S)

    def _tells(self, node: str, monotonic: float) -> bool:
        """Returns whether another list could show something of the node; not if the last one showed that its watch is
        behind."""
        return node in self._unmoved or monotonic - self._unmoved_at >= self._read_after_s

    def _are_many(self, monotonic: float, only_signal: Callable[[str], bool]) -> bool:
        """Iterates over all Leases, only while some node is about to be lost."""
        late = nodes = 0
        for node, beat in self._beats.items():
            if node in self._lost and monotonic - beat.seen_at > beat.limit_s + TOGETHER_S:
                continue
            if not only_signal(node):
                continue
            nodes += 1
            if self._known_at(node) - beat.seen_at > beat.late_s:
                late += 1
        return late >= 2 and (late == nodes or (late >= MANY and late > MANY_SHARE * nodes))

    def _beat(self, lease: Renewal, seen_at: float, before: LeaseAge | None) -> LeaseAge:
        duration_s = lease.duration_s
        if before is not None and before.duration_s == duration_s:
            return LeaseAge(lease.renew_time, seen_at, duration_s, before.limit_s, before.late_s)
        interval_s = min(duration_s, DURATION_MAX_S) / RENEWS_PER_DURATION
        limit_s = max(self._limit_s, self._intervals * interval_s, INTERVALS_ALIVE * interval_s + self._blind_limit_s)
        late_s = max(INTERVALS_LATE * interval_s, limit_s / 2)
        return LeaseAge(lease.renew_time, seen_at, duration_s, limit_s, late_s)


def _behind_the_newest(leases: Iterable[Renewal], time: Literal["written", "renew_time"]) -> dict[str, float]:
    """Returns by how much each Lease is older than the newest one by this time, if it can be read."""
    times = {lease.node: _seconds(getattr(lease, time)) for lease in leases}
    known = {node: at for node, at in times.items() if at is not None}
    newest = max(known.values(), default=0.0)
    return {node: newest - at for node, at in known.items()}


def _age_by_date(lease: Renewal, as_of: float, ahead_s: float | None) -> float | None:
    """Returns the age of the Lease at `as_of` in whole seconds, rounded down. None: unknown."""
    written = _seconds(lease.written)
    return None if ahead_s is None or written is None else as_of + ahead_s - written - WHOLE_SECOND_S


def _by_its_own_clock(before: LeaseAge | None, after: Renewal) -> float:
    """Returns when the Lease moved, by the own clock: the previous heartbeat plus the difference of the kubelet's
    times. Infinite: unknown."""
    earlier, later = (None, None) if before is None else (_seconds(before.renew_time), _seconds(after.renew_time))
    return math.inf if before is None or earlier is None or later is None else before.seen_at + later - earlier


def _seconds(text: str) -> float | None:
    try:
        return parse_time(text)
    except (msgspec.ValidationError, OverflowError):
        return None
