"""Pure: detects the nodes on which pods fail to start that start elsewhere. Such a node passes every check.

The caller reports three states of a pod: it is bound and does not run yet; its kubelet has rejected it; it has left
both states. A pod fails that was rejected, whose container cannot be created, or that has no sandbox `stuck_s` after it
was bound. A pod has started when it left these states without being deleted or stuck.

A failure counts only if kube-scheduler asked this extender about the pod, and the answer left the pod that node: a
client that binds its own pods accuses no node. The caller knows that a moment after the pod is bound.

An owner (the controller of pods) accuses a node while

    it fails there: a pod is stuck there, or one failed within the last `within_s`
    and none of its pods has started there since
    and when both were first seen, it had started on another node within `within_s`
    and it starts on at least as many nodes as it fails on

The last two exclude poison: pods that fail wherever they are put, or were tried nowhere else.

Namespaces are counted, not owners: a tenant can make any number of owners. An owner belongs to the namespace of its
pods, so a tenant that names another tenant's owner changes nothing there. A namespace accuses a node while one of its
owners does, and a node that `namespaces` of them accuse is a black hole. Some pods fail now and then wherever they are
put, and of many namespaces some always fail on a node by chance. How many is estimated from what the owners that have
tried the node do on all other nodes; twice as many accusers are needed on top. The namespace that raises the estimate
most is left out, so that none can hide a black hole.

A node stops being a black hole when its owners' pods start there, or fail no more. Owners without a uid (bare pods),
and those whose pods cannot go elsewhere, accuse no node.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from extender.policy.deadlines import Deadlines
from extender.policy.shares import Shares

# Beyond these limits the namespace with the most entries loses its oldest, which then accuses no node.
PENDING_MAX = 20_000  # pods that are bound and do not run, of which 150,000 pods have a few hundred
REJECTED_MAX = 20_000
CLAIMS_MAX = 2_000  # each is looked up once a second, for ten seconds
FAILING_MAX = 2_000  # owners
STARTED_MAX = 20_000  # owners
NODES_MAX = 32  # nodes on which an owner starts; an owner that fails on more nodes starts on fewer
NAMED_MAX = 3  # namespaces in a text
BEYOND = 2  # chosen: twice the expected number of accusers is still chance
# The answer to kube-scheduler is recorded half a second later, and later than that where the recorder is behind.
ASKED_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class StartRule:
    namespaces: int = 3
    within_s: float = 300.0
    stuck_s: float = 30.0


class Attempt(NamedTuple):
    """A pod that was bound to a node."""

    uid: str
    namespace: str
    pod: str  # its name
    node: str
    owner: str  # uid of its controller, as the pod names it
    name: str  # namespace and name of that controller, for humans
    able: bool = False  # its sandbox is there
    broken: str = ""  # why it cannot go on, "" if nothing shows that it cannot
    waits: bool = False  # its own volumes may prevent its sandbox


_Owner = tuple[str, str]  # namespace, uid


@dataclass(slots=True)
class _Pending:
    attempt: Attempt
    stuck_at: float  # when it has taken too long, infinite once its sandbox is there
    stuck: bool = False
    why: str = ""  # why it is stuck
    failed_at: float = -math.inf
    counts: bool = False  # kube-scheduler asked about it


@dataclass(slots=True)
class _Claim:
    """A pod of which it is unknown yet whether kube-scheduler asked about it."""

    attempt: Attempt
    at: float  # when it was bound or rejected
    rejected: bool = False
    until: float = math.inf  # when it is given up; set by the first look-up


@dataclass(slots=True)
class _Failing:
    """An owner on a node."""

    namespace: str
    name: str
    why: str
    last: float  # when it failed
    stuck: set[str] = field(default_factory=set)  # uids of pods that fail now
    accuses: bool = False

    def over(self, since: float) -> bool:
        return not self.stuck and self.last < since


NO_SANDBOX = "without a sandbox"


class Starts:
    """All pods that start. Not thread-safe: its owner holds a lock. Times are monotonic seconds and never go back.

    asked(): whether kube-scheduler is known to have asked about the pod, and the answer left the pod its node.
    """

    def __init__(self, rule: StartRule, asked: Callable[[Attempt], bool]) -> None:
        self._rule = rule
        self._asked = asked
        self._pending = Shares[str, _Pending](PENDING_MAX)  # by uid of the pod
        self._stuck_at = Deadlines()  # by the same
        self._rejected = Shares[str, None](REJECTED_MAX)  # each fails once: until it is gone, which may take days
        self._claims = Shares[str, _Claim](CLAIMS_MAX)  # by uid of the pod
        self._failing = Shares[_Owner, dict[str, _Failing]](FAILING_MAX)  # by owner and node, as failed last
        self._started = Shares[_Owner, dict[str, float]](STARTED_MAX)  # by owner and node, as started last

    # What the caller reports.

    def bound(self, attempt: Attempt, at: float) -> None:
        """The pod is bound, and does not run. at: since when, if it was not known before."""
        known = self._pending.get(attempt.uid)
        if known is None:
            surplus = self._pending.surplus(attempt.uid)
            if surplus is not None:
                self._forget(surplus, at)
            known = _Pending(attempt, at + self._rule.stuck_s)
            self._pending.put(attempt.namespace, attempt.uid, known)
            self._claims.put(attempt.namespace, attempt.uid, _Claim(attempt, at))
            if not (attempt.able or attempt.waits):
                self._stuck_at.set(attempt.uid, known.stuck_at)
        known.attempt = attempt
        if attempt.broken:
            self._stick(known, attempt.broken, at)
        elif attempt.able:
            self._stuck_at.drop(attempt.uid)
            known.stuck_at = math.inf
            if known.stuck:
                known.stuck = False
                self._came_loose(attempt, at)

    def rejected(self, attempt: Attempt, at: float) -> None:
        """Its kubelet rejected the pod. Reported again, it is the same failure."""
        known = self._pending.get(attempt.uid)
        self._forget(attempt.uid, at)
        if attempt.uid in self._rejected:
            return
        self._rejected.put(attempt.namespace, attempt.uid, None)
        if known is not None and known.counts:
            self._fail(attempt, attempt.broken, at)
        else:
            self._claims.put(attempt.namespace, attempt.uid, _Claim(attempt, at, rejected=True))

    def ended(self, uid: str, *, deleted: bool, at: float) -> None:
        """The pod is neither pending nor rejected any more. deleted: it was deleted, or whether it ran is unknown."""
        self._rejected.pop(uid)
        known = self._pending.get(uid)
        if known is None:
            return
        owner, node = _owner(known.attempt), known.attempt.node
        self._forget(uid, at)
        if deleted:
            return
        failing = self._failing.get(owner) or {}
        if known.stuck or at >= known.stuck_at:
            # A stuck pod that is deleted by force looks as if it had started: it must not accuse other nodes.
            if node in failing and not failing[node].stuck:
                self._drop_failing(owner, node)
            return
        self._drop_failing(owner, node)
        nodes = self._started.get(owner) or {}
        nodes.pop(node, None)
        while len(nodes) >= NODES_MAX:
            del nodes[next(iter(nodes))]
        nodes[node] = at
        self._started.put(known.attempt.namespace, owner, nodes)

    @property
    def known(self) -> frozenset[str]:
        """The uids of the pods whose end must be reported by ended()."""
        return frozenset((*self._pending, *self._rejected))

    # What follows.

    def look(self, at: float, reported: float) -> Mapping[str, str]:
        """Returns the nodes that are black holes, with the evidence as a text for humans.

        reported: when the server last reported. A pod that was due to run later than that may run by now.
        """
        for uid in self._stuck_at.due(min(at, reported)):
            known = self._pending.get(uid)
            if known is not None:
                self._stick(known, NO_SANDBOX, at)
        self._confirm(at)
        self._expire(at - self._rule.within_s)
        accused: dict[str, dict[str, list[_Failing]]] = {}  # by node and namespace
        tried = list[tuple[str, Mapping[str, object], Mapping[str, object]]]()
        for owner, nodes in self._failing.items():
            started = self._started.get(owner) or {}
            elsewhere = {node: since for node, since in started.items() if node not in nodes}
            poison = len(elsewhere) < len(nodes)
            fresh = bool(elsewhere) and max(elsewhere.values()) >= at - self._rule.within_s
            if not poison:
                tried.append((owner[0], nodes, elsewhere))
            for node, failing in nodes.items():
                failing.accuses = not poison and (failing.accuses or fresh)
                if failing.accuses:
                    accused.setdefault(node, {}).setdefault(failing.namespace, []).append(failing)
        enough = {node: these for node, these in accused.items() if len(these) >= self._rule.namespaces}
        expected = _expected(tried) if enough else {}
        return {
            node: _text(these)
            for node, these in enough.items()
            if len(these) >= self._rule.namespaces + int(BEYOND * expected.get(node, 0.0))
        }

    def due_at(self) -> float:
        """Returns the time before which time alone makes no pod stuck; infinite if it never does."""
        return self._stuck_at.next_at()

    def over_at(self) -> float:
        """Returns when the next failure stops counting; infinite if none does."""
        ends = [one.last for _, nodes in self._failing.items() for one in nodes.values() if not one.stuck]
        return min(ends, default=math.inf) + self._rule.within_s

    @property
    def claims(self) -> int:
        """Returns whether any pod waits to be known as asked about: look again soon."""
        return len(self._claims)

    def sizes(self) -> Mapping[str, int]:
        return {
            "pending": len(self._pending),
            "rejected": len(self._rejected),
            "claims": len(self._claims),
            "failing": len(self._failing),
            "started": len(self._started),
        }

    # Inside.

    def _stick(self, known: _Pending, why: str, at: float) -> None:
        known.stuck, known.why, known.failed_at = True, why, at
        if known.counts:
            self._fail(known.attempt, why, at).stuck.add(known.attempt.uid)

    def _confirm(self, at: float) -> None:
        """Counts the failures of pods of which it is known by now that kube-scheduler asked about them."""
        for uid, claim in self._claims.items():
            if self._asked(claim.attempt):
                self._claims.pop(uid)
                self._count(claim)
            elif claim.until == math.inf:
                claim.until = at + ASKED_WITHIN_S
            elif at >= claim.until:
                self._claims.pop(uid)

    def _count(self, claim: _Claim) -> None:
        attempt = claim.attempt
        started = (self._started.get(_owner(attempt)) or {}).get(attempt.node, -math.inf)
        if claim.rejected:
            if claim.at > started:
                self._fail(attempt, attempt.broken, claim.at)
            return
        known = self._pending.get(attempt.uid)
        if known is None:
            return
        known.counts = True
        if known.stuck and known.failed_at > started:
            self._fail(attempt, known.why, known.failed_at).stuck.add(attempt.uid)

    def _came_loose(self, attempt: Attempt, at: float) -> None:
        """Records that the pod can go on, or is gone: it has failed until now."""
        failing = (self._failing.get(_owner(attempt)) or {}).get(attempt.node)
        if failing is not None and attempt.uid in failing.stuck:
            failing.stuck.discard(attempt.uid)
            failing.last = max(failing.last, at)

    def _fail(self, attempt: Attempt, why: str, at: float) -> _Failing:
        owner = _owner(attempt)
        nodes = self._failing.get(owner) or {}
        self._failing.put(attempt.namespace, owner, nodes)
        failing = nodes.get(attempt.node)
        if failing is None:
            if len(nodes) > NODES_MAX:
                del nodes[next(iter(nodes))]
            failing = nodes[attempt.node] = _Failing(attempt.namespace, attempt.name, why, at)
        failing.last = max(failing.last, at)
        failing.why = why or failing.why
        return failing

    def _forget(self, uid: str, at: float) -> None:
        known = self._pending.pop(uid)
        self._stuck_at.drop(uid)
        if known is not None and known.stuck:
            self._came_loose(known.attempt, at)

    def _drop_failing(self, owner: _Owner, node: str) -> None:
        nodes = self._failing.get(owner)
        if nodes is not None and nodes.pop(node, None) is not None and not nodes:
            self._failing.pop(owner)

    def _expire(self, since: float) -> None:
        for owner, nodes in self._failing.items():
            for node in [node for node, failing in nodes.items() if failing.over(since)]:
                del nodes[node]
            if not nodes:
                self._failing.pop(owner)
        over = list[_Owner]()
        for owner in self._started:
            if max((self._started.get(owner) or {}).values()) >= since:
                break  # all that follow have started later
            if owner not in self._failing:
                over.append(owner)
        for owner in over:
            self._started.pop(owner)


def _owner(attempt: Attempt) -> _Owner:
    return attempt.namespace, attempt.owner


def _expected(tried: Sequence[tuple[str, Mapping[str, object], Mapping[str, object]]]) -> Mapping[str, float]:
    """By node, how many namespaces are expected to fail there by chance, without the one that is most likely to.

    tried: of each owner its namespace, the nodes on which it fails, and those on which it starts. For each of these
    nodes counts what the owner does on the others.
    """
    spared = defaultdict[str, dict[str, float]](dict)  # by node and namespace: the chance that no owner fails there
    for namespace, fails, starts in tried:
        others = max(1, len(fails) + len(starts) - 1)
        for nodes, failed_elsewhere in ((fails, len(fails) - 1), (starts, len(fails))):
            for node in nodes if failed_elsewhere else ():
                of_node = spared[node]
                of_node[namespace] = of_node.get(namespace, 1.0) * (1.0 - failed_elsewhere / others)
    return {node: sum(1.0 - one for one in sorted(of_node.values())[1:]) for node, of_node in spared.items()}


def _text(these: Mapping[str, Sequence[_Failing]]) -> str:
    """these: by namespace. Names one owner of each."""
    named = sorted(min(f"{one.name} ({one.why})" for one in of_namespace) for of_namespace in these.values())
    more = len(named) - NAMED_MAX
    return f"pods of {len(named)} namespaces fail to start here and start elsewhere: {', '.join(named[:NAMED_MAX])}" + (
        f" and {more} more" if more > 0 else ""
    )
