"""Pure: on which nodes pods fail to start that start elsewhere. Such a node passes every check, and swallows every pod.

Told are three things of a pod: it is bound and does not run yet; its kubelet has rejected it; it is neither any more.
What fails is a pod that was rejected, whose container cannot be made, or that has no sandbox `stuck_s` after it was
bound. What starts is one that came out of this without having been deleted or stuck.

An owner (the controller of pods) accuses a node while

    it fails there: a pod is stuck there, or one failed within the last `within_s`
    and none of it has started there since
    and when it was first seen to do both, it had started on another node within `within_s`
    and it starts on at least as many nodes as it fails on

The last two keep out poison: pods that fail wherever they are put, or were tried nowhere else. There are pods that
fail now and then wherever they are put, too, and of many owners some always fail on a node by chance: by what each
owner that has tried the node does on all others, so many are to be expected there. A node that `owners` owners accuse,
and twice as many more as are to be expected, is a black hole. It stops being one as its owners' pods start there, or
fail no more; nobody has to tell.
Owners without a name of their own (bare pods) and those whose pods are not free to go elsewhere accuse nobody.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from extender.deadlines import Deadlines

V = TypeVar("V")

# Of what goes beyond them the oldest is forgotten, which accuses nobody.
PENDING_MAX = 20_000  # pods that are bound and do not run, of which 150,000 pods have a few hundred
REJECTED_MAX = 20_000
FAILING_MAX = 2_000  # owners
STARTED_MAX = 20_000  # owners
NODES_MAX = 32  # of an owner on which it starts; one that fails on more starts on fewer
NAMED_MAX = 3  # owners in a text
BEYOND = 2  # chosen: so many times what is to be expected is chance


@dataclass(frozen=True, slots=True)
class StartRule:
    owners: int = 3
    within_s: float = 300.0
    stuck_s: float = 30.0


class Attempt(NamedTuple):
    """A pod that was bound to a node. owner: the uid of its controller. name: of that, for people.

    able: its sandbox is there. broken: why it cannot go on, "" if nothing says so. waits: for a volume that is attached
    from elsewhere, so that it is not stuck for want of a sandbox.
    """

    uid: str
    node: str
    owner: str
    name: str
    able: bool = False
    broken: str = ""
    waits: bool = False


@dataclass(slots=True)
class _Pending:
    """stuck_at: from when on it has taken too long, infinite once its sandbox is there."""

    attempt: Attempt
    stuck_at: float
    stuck: bool = False


@dataclass(slots=True)
class _Failing:
    """An owner on a node. last: when it failed; stuck: pods that fail now."""

    name: str
    why: str
    last: float
    stuck: set[str] = field(default_factory=set)
    accuses: bool = False

    def over(self, since: float) -> bool:
        return not self.stuck and self.last < since


NO_SANDBOX = "without a sandbox"


class Starts:
    """Not thread-safe: its owner holds a lock. Times are monotonic seconds and never go back."""

    def __init__(self, rule: StartRule) -> None:
        self._rule = rule
        self._pending: dict[str, _Pending] = {}
        self._stuck_at = Deadlines()  # by uid of a pending pod
        self._rejected: dict[str, None] = {}  # by uid, so that each fails once: until it is gone, which may take days
        self._failing: dict[str, dict[str, _Failing]] = {}  # by owner and node, as failed last
        self._started: dict[str, dict[str, float]] = {}  # alike, as started last

    # What is told.

    def bound(self, attempt: Attempt, at: float) -> None:
        """It is bound, and does not run. at: since when, if it was not known before."""
        known = self._pending.get(attempt.uid)
        if known is None:
            if len(self._pending) >= PENDING_MAX:
                self._forget(next(iter(self._pending)), at)
            known = self._pending[attempt.uid] = _Pending(attempt, at + self._rule.stuck_s)
            if not (attempt.able or attempt.waits):
                self._stuck_at.set(attempt.uid, known.stuck_at)
        known.attempt = attempt
        if attempt.broken:
            self._stick(attempt, attempt.broken, at)
        elif attempt.able:
            self._stuck_at.drop(attempt.uid)
            known.stuck_at = math.inf
            if known.stuck:
                known.stuck = False
                self._came_loose(attempt, at)

    def rejected(self, attempt: Attempt, at: float) -> None:
        """Its kubelet will not have it. Told again, it is the same failure."""
        self._forget(attempt.uid, at)
        if attempt.uid in self._rejected:
            return
        _bounded(self._rejected, REJECTED_MAX)
        self._rejected[attempt.uid] = None
        self._fail(attempt, attempt.broken, at)

    def ended(self, uid: str, *, deleted: bool, at: float) -> None:
        """It is neither pending nor rejected any more: it runs or has run; or else was deleted, or nobody knows."""
        self._rejected.pop(uid, None)
        known = self._pending.get(uid)
        if known is None:
            return
        owner, node = known.attempt.owner, known.attempt.node
        self._forget(uid, at)
        if deleted:
            return
        failing = self._failing.get(owner, {})
        if known.stuck or at >= known.stuck_at:
            # Who deletes a stuck pod by force makes it look as if it had started: that shall accuse nobody.
            if node in failing and not failing[node].stuck:
                self._drop_failing(owner, node)
            return
        self._drop_failing(owner, node)
        nodes = self._started.pop(owner, {})
        nodes.pop(node, None)
        _bounded(nodes, NODES_MAX)
        _bounded(self._started, STARTED_MAX)
        nodes[node] = at
        self._started[owner] = nodes

    @property
    def known(self) -> frozenset[str]:
        """Those of which ended() is to be told."""
        return frozenset((*self._pending, *self._rejected))

    # What follows.

    def look(self, at: float, heard: float) -> Mapping[str, str]:
        """The nodes that are black holes, with what is to be seen there, for people.

        heard: when the server last told how things are. A pod that was due to run later than that may run by now.
        """
        for uid in self._stuck_at.due(min(at, heard)):
            known = self._pending.get(uid)
            if known is not None:
                self._stick(known.attempt, NO_SANDBOX, at)
        self._expire(at - self._rule.within_s)
        accused: dict[str, list[_Failing]] = {}
        tried = list[tuple[Mapping[str, _Failing], Mapping[str, float]]]()
        for owner, nodes in self._failing.items():
            started = self._started.get(owner, {})
            elsewhere = {node: since for node, since in started.items() if node not in nodes}
            poison = len(elsewhere) < len(nodes)
            fresh = bool(elsewhere) and max(elsewhere.values()) >= at - self._rule.within_s
            if not poison:
                tried.append((nodes, elsewhere))
            for node, failing in nodes.items():
                failing.accuses = not poison and (failing.accuses or fresh)
                if failing.accuses:
                    accused.setdefault(node, []).append(failing)
        enough = {node: these for node, these in accused.items() if len(these) >= self._rule.owners}
        expected = _expected(tried) if enough else {}
        return {
            node: _text(these)
            for node, these in enough.items()
            if len(these) >= self._rule.owners + int(BEYOND * expected.get(node, 0.0))
        }

    def due_at(self) -> float:
        """Before which time alone makes nothing stuck; infinite if it never does."""
        return self._stuck_at.next_at()

    def over_at(self) -> float:
        """When the next failure stops counting; infinite if none does."""
        ends = [one.last for nodes in self._failing.values() for one in nodes.values() if not one.stuck]
        return min(ends, default=math.inf) + self._rule.within_s

    def sizes(self) -> Mapping[str, int]:
        return {
            "pending": len(self._pending),
            "rejected": len(self._rejected),
            "failing": len(self._failing),
            "started": len(self._started),
        }

    # Inside.

    def _stick(self, attempt: Attempt, why: str, at: float) -> None:
        known = self._pending[attempt.uid]
        known.stuck = True
        failing = self._fail(attempt, why, at)
        failing.stuck.add(attempt.uid)

    def _came_loose(self, attempt: Attempt, at: float) -> None:
        """It can go on, or is gone: it has failed until now."""
        failing = self._failing.get(attempt.owner, {}).get(attempt.node)
        if failing is not None and attempt.uid in failing.stuck:
            failing.stuck.discard(attempt.uid)
            failing.last = max(failing.last, at)

    def _fail(self, attempt: Attempt, why: str, at: float) -> _Failing:
        nodes = self._failing.pop(attempt.owner, {})
        _bounded(self._failing, FAILING_MAX)
        self._failing[attempt.owner] = nodes
        failing = nodes.get(attempt.node)
        if failing is None:
            if len(nodes) > NODES_MAX:
                del nodes[next(iter(nodes))]
            failing = nodes[attempt.node] = _Failing(attempt.name, why, at)
        failing.last = max(failing.last, at)
        failing.why = why or failing.why
        return failing

    def _forget(self, uid: str, at: float) -> None:
        known = self._pending.pop(uid, None)
        self._stuck_at.drop(uid)
        if known is not None and known.stuck:
            self._came_loose(known.attempt, at)

    def _drop_failing(self, owner: str, node: str) -> None:
        nodes = self._failing.get(owner, {})
        if nodes.pop(node, None) is not None and not nodes:
            del self._failing[owner]

    def _expire(self, since: float) -> None:
        for owner in list(self._failing):
            nodes = self._failing[owner]
            for node in [node for node, failing in nodes.items() if failing.over(since)]:
                del nodes[node]
            if not nodes:
                del self._failing[owner]
        for owner, started in list(self._started.items()):
            if max(started.values()) >= since:
                break  # who comes after has started later
            if owner not in self._failing:
                del self._started[owner]


def _expected(tried: Sequence[tuple[Mapping[str, object], Mapping[str, object]]]) -> Mapping[str, float]:
    """By node, how many owners are to be expected to fail there. tried: of each owner the nodes on which it fails, and
    those on which it starts; for each of them counts what it does on the others."""
    found = defaultdict[str, float](float)
    for fails, starts in tried:
        others = max(1, len(fails) + len(starts) - 1)
        for_failing, for_starting = (len(fails) - 1) / others, len(fails) / others
        if for_failing:
            for node in fails:
                found[node] += for_failing
        for node in starts:
            found[node] += for_starting
    return found


def _bounded(entries: dict[str, V], limit: int) -> None:
    """Makes room for one."""
    while len(entries) >= limit:
        del entries[next(iter(entries))]


def _text(these: list[_Failing]) -> str:
    named = sorted(f"{one.name} ({one.why})" for one in these)
    more = len(named) - NAMED_MAX
    return f"pods of {len(named)} owners fail to start here and start elsewhere: {', '.join(named[:NAMED_MAX])}" + (
        f" and {more} more" if more > 0 else ""
    )
