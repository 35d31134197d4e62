"""Pure: whose kubelet has stopped renewing its Lease, by our own clock.

As in the node lifecycle controller (kubernetes pkg/controller/nodelifecycle, tryUpdateNodeHealth), `renewTime` is only
compared for change: a beat happened when we saw it change, so the clocks of nodes do not matter.

*When ages count.* An age is our clock's, so it needs two things besides, each no older than BLIND_LIMIT_S. That we have
read all there was to read: a line or a list of the Lease watch, or a list beside it in which this Lease has not moved
(`read`; without it a lone kubelet that dies would leave nothing to read, and its node open). And that kubelets could
write: something was heard of the API server. A kubelet that lives is then at most 10.4 + 12.5 s old, below 24 s. After
a longer time of either kind (API server away, watch cut, ourselves stopped with lines unread) each node has RETURN_S to
move before its age counts again; client-go's lease controller tries again after at most 7 s.

*Lists.* A list is no sign of life: a Lease that has not moved keeps its age, so lists again and again give nobody more
time. What has moved between two of them has moved when its `renewTime` says, by the difference to the one before: that
is the kubelet's clock with itself, and is believed only within what we have not seen, and not where `managedFields` and
the Date of the answer say that it was seconds later: then that clock was set back. One list beside the watch in which
no Lease at all has moved shows that no line was waiting to be read: of two agents the other may beat late, and the dead
one is still found in time. The first list tells ages too, by comparing its own Leases: the API server's clock
stands in `managedFields`, and by it a node that was dead before we started is lost at once. Without that clock
`renewTime` is compared, which is the kubelet's clock and may be wrong by any amount: such a node is lost only when it
has not moved for BLIND_LIMIT_S more. So it is with what `managedFields` say beside the Date of the answer, which tells
the age of a Lease where no other one lives: a proxy may have said it, or the API server been away itself until now, and
who lives moves within that time. A first list that could only be had after failures comes in the seconds in which
kubelets return: RETURN_S again.

*Many at once.* Two nodes that fall silent are dead; a fifth of a cluster more likely cannot reach its API server (a
load balancer, one of three API servers, a webhook that refuses Leases). So many together are not lost by silence alone;
the second signal is the node lifecycle controller's, which turns the Node's own Ready to Unknown after 50 s.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from extender.policy.deadlines import Deadlines
from kube.times import parse_time

# A kubelet renews after a quarter of its lease duration, which varies by 4 %, and an agent does alike. Below one and a
# half of that as a limit, every node would flap; one that has not renewed after one and a quarter is late.
RENEWS_PER_DURATION = 4
INTERVALS_MIN = 1.5
INTERVALS_LATE = 1.25
INTERVALS_ALIVE = 1.1
INTERVAL_S = 10.0  # of kubelets as they are by default
DURATION_MAX_S = 400.0  # the node lifecycle controller gives up a node with a longer one in any case

BLIND_LIMIT_S = 12.5
BLIND_LIMIT_MIN_S = 4.0
RETURN_S = BLIND_LIMIT_S  # not longer, or lists each 20 s would put it off for ever
READ_EARLY_S = 1.5  # how long before it is blind a list beside the watch is wanted
FRESH_S = 2.0  # and before a node is lost, to see who else is late
FRESH_LEASES_MAX = 500  # what a list of one page can tell; where there are more Leases, one moves at any time

MANY = 3  # and more than this share of the nodes; or all of two and more
MANY_SHARE = 0.2
TOGETHER_S = 60.0  # a node that was lost so long before belongs to another event

WHOLE_SECOND_S = 1.0  # times in managedFields have no fraction
DATED_S = 2 * WHOLE_SECOND_S  # by so much an age by the Date of an answer may be too low
STEP_S = 2.0  # by so much a kubelet's clock may be off after some seconds; more, and it was set


class Renewal(msgspec.Struct, frozen=True, gc=False):
    """What one Lease says. renew_time: RFC 3339 text by the kubelet's clock. duration_s: how long it claims to hold.

    written: the same by the API server's clock, whole seconds, of the last write; "" if it was not looked for.
    """

    node: str
    renew_time: str
    duration_s: float
    written: str = ""


class LeaseAge(msgspec.Struct, frozen=True, gc=False):
    """One node's Lease: its renewTime text, when it changed, its duration; the age from which the node is lost, and
    the one above which the beat is late."""

    renew_time: str
    seen_at: float
    duration_s: float
    limit_s: float
    late_s: float


class LeaseAges:
    """Beats of all nodes. Not thread-safe: its owner holds a lock. limit_s: age from which on a node is lost, or so
    many `intervals` of its own Lease where those are longer."""

    def __init__(self, limit_s: float, intervals: float = INTERVALS_MIN) -> None:
        self._limit_s = limit_s
        self._intervals = intervals
        self._blind_limit_s = max(BLIND_LIMIT_MIN_S, min(BLIND_LIMIT_S, limit_s - INTERVALS_ALIVE * INTERVAL_S))
        self._read_after_s = self._blind_limit_s - READ_EARLY_S
        self._beats: dict[str, LeaseAge] = {}
        self._expiry = Deadlines()  # when each beat reaches its limit
        self._aged: set[str] = set()  # beats that have reached it; what is lost is among these
        self._lost: set[str] = set()
        self._listed = False
        self._heard_at = math.inf  # of the API server; infinite: nothing yet
        self._read_at = math.inf  # up to here we know of all beats
        self._returning_since = -math.inf  # when kubelets could write again, or we read again
        self._unmoved: set[str] = set()  # by the last list beside the watch
        self._unmoved_at = -math.inf
        self._still_at = -math.inf  # when such a list was asked for in which nothing had moved: no line was to be read
        self._many = False
        self._wanted = False  # a list beside the watch, at once

    def replace(
        self,
        leases: Sequence[Renewal],
        monotonic: float,
        *,
        began: float | None = None,
        after_failures: bool = False,
        ahead_s: float | None = None,
    ) -> None:
        """A whole list. began: when it was asked for. after_failures: we had to ask more than once. ahead_s: what the
        API server's clock shows more than ours, by the Date of its answer, if that has one."""
        as_of = monotonic if began is None else min(began, monotonic)
        self.heard(monotonic)
        if not self._listed and after_failures:
            self._returning_since = monotonic
        before, self._beats = self._beats, {}
        lost = set()
        # What has moved has done so since we last knew all beats, whatever the clocks of several API servers say.
        moved_after = min(self._read_at, as_of) if self._listed else -math.inf
        by_server = _behind_the_newest(leases, "written")
        by_kubelets = _behind_the_newest((one for one in leases if one.node not in by_server), "renew_time")
        for lease in leases:
            node, beat = lease.node, before.get(lease.node)
            if beat is None or beat.renew_time != lease.renew_time:
                beat = self._beat(lease, as_of, beat)
                unsure_s = beat.limit_s - max(self._blind_limit_s, beat.late_s)  # then who lives has moved
                dated_s = _age_by_date(lease, as_of, ahead_s)
                if node in by_server:
                    age_s = max(by_server[node] - WHOLE_SECOND_S, min(dated_s or 0.0, unsure_s))
                else:
                    age_s = min(by_kubelets.get(node, 0.0), unsure_s)
                seen_at = max(as_of - max(0.0, age_s), moved_after)
                own = _by_its_own_clock(before.get(node), lease)
                earliest = moved_after if dated_s is None else max(moved_after, as_of - dated_s - DATED_S)
                if earliest - STEP_S <= own <= as_of + STEP_S:  # or that clock was set meanwhile
                    seen_at = min(seen_at, max(own, moved_after))
                beat = replace(beat, seen_at=seen_at)
            elif node in self._lost:
                lost.add(node)
            self._beats[node] = beat
        self._lost, self._aged, self._listed, self._read_at = lost, set(), True, as_of
        self._expiry = Deadlines((node, beat.seen_at + beat.limit_s) for node, beat in self._beats.items())

    def renewed(self, lease: Renewal, monotonic: float) -> bool:
        """A line of the watch; it is a beat if renewTime has changed. Whether due_at() may be earlier now."""
        if monotonic - max(self._read_at, self._still_at) > self._blind_limit_s:
            self._returning_since = monotonic  # more lines may wait to be read
        self._read_at = monotonic
        self.heard(monotonic)
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

    def heard(self, monotonic: float) -> None:
        """The API server has told or answered something."""
        if monotonic - self._heard_at > self._blind_limit_s:
            self._returning_since = monotonic
        self._heard_at = monotonic

    @property
    def unheard(self) -> bool:
        """Whether nothing was heard since failed()."""
        return self._heard_at == -math.inf

    def failed(self) -> None:
        """The API server was asked and did not answer."""
        self._heard_at = -math.inf

    def read(self, leases: Iterable[Renewal], began: float, monotonic: float) -> None:
        """A whole list beside the watch, asked for at `began`. What has moved in it moves when its line comes."""
        self.heard(monotonic)
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
        """When such a list is wanted, as without it ages would no longer count; infinite if it is of no use."""
        if not len(self._lost) < len(self._beats):
            return math.inf
        return -math.inf if self._wanted else max(self._read_at, self._unmoved_at) + self._read_after_s

    def seen(self) -> dict[str, float]:
        """By node: monotonic seconds of its last beat."""
        return {node: beat.seen_at for node, beat in self._beats.items()}

    def lost(self, monotonic: float, only_signal: Callable[[str], bool] = lambda _: True) -> set[str]:
        """Nodes whose beat is too old. What is lost stays so until its Lease moves or goes.

        only_signal(node): whether nothing but the Lease says that the node is lost; False too for one without a Node.
        """
        self._aged.update(self._expiry.due(monotonic))
        self._lost &= self._aged
        old = [node for node in self._aged - self._lost if self._is_old(node, monotonic)]
        known_from = self._known_from(monotonic)
        silent = [node for node in old if self._known_at(node) >= known_from or self._was_old(node, monotonic)]
        self._wanted = len(silent) < len(old) and any(self._tells(node, monotonic) for node in old)
        self._many = (bool(silent) or self._many) and self._are_many(monotonic, only_signal)
        if self._many:
            # Those that come back one by one shall not make the others few: their time begins when it is over.
            self._returning_since = monotonic
            silent = [node for node in silent if not only_signal(node)]
        self._lost.update(silent)
        return set(self._lost)

    def due_at(self) -> float:
        """The earliest time at which lost() may give another answer; minus infinity: at any time. As of its last call.

        Walks over nothing.
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
        """By what was known last: what has come since cannot matter, as long as we are not blind. So is who was dead
        before we started, while other lists take their time."""
        known_at = self._known_at(node)
        return known_at >= monotonic - self._blind_limit_s and self._is_old(node, known_at)

    def _known_at(self, node: str) -> float:
        """Up to here we know of its beats."""
        return max(self._read_at, self._unmoved_at) if node in self._unmoved else self._read_at

    def _known_from(self, monotonic: float) -> float:
        """Who is lost has not moved up to here: it has had its time since its last beat, and to return."""
        if len(self._beats) <= FRESH_LEASES_MAX:
            return monotonic - FRESH_S
        return max(monotonic - self._blind_limit_s, self._returning_since + RETURN_S - FRESH_S)

    def _tells(self, node: str, monotonic: float) -> bool:
        """Whether another list would tell something of it; no, if by the last its watch is behind."""
        return node in self._unmoved or monotonic - self._unmoved_at >= self._read_after_s

    def _are_many(self, monotonic: float, only_signal: Callable[[str], bool]) -> bool:
        """A walk over all beats, made only while some node is about to be lost."""
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
    """How much older than the newest each Lease is by this time of it, if it can be read."""
    times = {lease.node: _seconds(getattr(lease, time)) for lease in leases}
    known = {node: at for node, at in times.items() if at is not None}
    newest = max(known.values(), default=0.0)
    return {node: newest - at for node, at in known.items()}


def _age_by_date(lease: Renewal, as_of: float, ahead_s: float | None) -> float | None:
    """How old the Lease was at `as_of`, in whole seconds that are rather too few. None: nothing tells."""
    written = _seconds(lease.written)
    return None if ahead_s is None or written is None else as_of + ahead_s - written - WHOLE_SECOND_S


def _by_its_own_clock(before: LeaseAge | None, after: Renewal) -> float:
    """When the Lease moved, by ours: so long after the beat before as the kubelet says. Infinite: nothing tells."""
    earlier, later = (None, None) if before is None else (_seconds(before.renew_time), _seconds(after.renew_time))
    return math.inf if before is None or earlier is None or later is None else before.seen_at + later - earlier


def _seconds(text: str) -> float | None:
    try:
        return parse_time(text)
    except (msgspec.ValidationError, OverflowError):
        return None
