"""Events in, node -> reason out. The verdict is made when something changes, so that a request only looks names up.

Writers (reflector threads, the clock) hold one lock over memory work only and tell others after they have let it go.
Readers take no lock: `reasons` is replaced as a whole after a list and written key by key on events.

The kick's bookkeeping lives here because it is about order. A node that was refused to some pod and is released must be
kicked, whatever the interleaving:

    a request:   releases read; reasons read; refusals remembered; releases read again; changed -> look again
    a release:   reason written; releases counted; refusals looked at

If the release looked too early to see the refusal, then it had counted before, so the request sees the count changed.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from extender.cluster import observed
from extender.cluster.heartbeat import Heartbeats
from extender.policy.verdict import OPEN, HealthPod, Memory, NodeFacts, Verdict, judge
from kube import contract

log = logging.getLogger(__name__)

UNKNOWN_NODE = contract.CLOSED_NO_HEALTH_POD  # not in the cache yet, or no node at all
LEASES_SILENT_S = 120.0  # a Lease watch that has told nothing for so long closes no node, nor keeps one closed
REFUSED_LIMIT = 50_000  # names remembered; beyond it those of no known node are dropped


@dataclass(frozen=True, slots=True)
class NodeState:
    """since: monotonic seconds of the last change between open and closed, or of the reason."""

    verdict: Verdict
    memory: Memory
    since: float


@dataclass(frozen=True, slots=True)
class _Change:
    node: str
    verdict: Verdict


class NodeIndex:
    """on_release(node): called from any thread, outside the lock, when a refused node has opened; must not block.

    daemon_set: name of the gate's DaemonSet, None = any. lease_contact(): monotonic time of the Lease watch's last
    word, None before the first.
    """

    def __init__(
        self,
        *,
        daemon_set: str | None,
        missing_grace_s: float,
        heartbeat_limit_s: float,
        on_release: Callable[[str], None],
        lease_contact: Callable[[], float | None] = lambda: None,
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.reasons: dict[str, str] = {}
        self.releases = 0
        self.built = False
        self._daemon_set = daemon_set
        self._missing_grace_s = missing_grace_s
        self._on_release = on_release
        self._lease_contact = lease_contact
        self._now = now
        self._wall = wall
        self._lock = threading.Lock()
        self._nodes: dict[str, NodeFacts] | None = None
        self._pods: dict[str, dict[str, HealthPod]] | None = None
        self._node_of_pod: dict[str, str] = {}
        self._states: dict[str, NodeState] = {}
        self._waiting: set[str] = set()
        self._beats = Heartbeats(heartbeat_limit_s)
        self._lost: set[str] = set()
        self._refused: dict[str, str] = {}
        # To be kicked once although we refused it to nobody: the process before us may have refused a node that has
        # opened since. One kick wakes every refused pod.
        self._wake = ""

    # What the request path calls: no lock, no clock, no log.

    def remember_refusals(self, refused: Mapping[str, str], releases_before: int) -> None:
        """To be called with what a request is about to refuse and the `releases` it read before it looked names up."""
        self._refused.update(refused)
        if self.releases != releases_before:
            for node in refused:
                if self.reasons.get(node, UNKNOWN_NODE) == OPEN and self._refused.pop(node, None) is not None:
                    self._on_release(node)

    # Stores of the reflectors.

    def replace_pods(self, pods: Sequence[observed.Pod]) -> None:
        with self._lock:
            known = self._pods or {}
            self._pods, self._node_of_pod = {}, {}
            for pod in pods:
                self._keep_pod(pod, known.get(pod.spec.node_name, {}))
            changes = self._judge_all()
        self._tell(changes)

    def upsert_pod(self, pod: observed.Pod) -> None:
        with self._lock:
            if self._pods is None:
                self._pods = {}
            before = self._drop_pod(pod.metadata.uid)
            known = self._pods.get(pod.spec.node_name, {}) if before is None else {before.uid: before}
            after = self._keep_pod(pod, known)
            changes = self._judge(side.node for side in (before, after) if side is not None)
        self._tell(changes)

    def remove_pod(self, pod: observed.Pod) -> None:
        with self._lock:
            before = self._drop_pod(pod.metadata.uid)
            changes = [] if before is None else self._judge([before.node])
        self._tell(changes)

    def replace_nodes(self, nodes: Sequence[observed.Node]) -> None:
        with self._lock:
            self._nodes = {node.metadata.name: self._facts(node) for node in nodes}
            changes = self._judge_all()
        self._tell(changes)

    def upsert_node(self, node: observed.Node) -> None:
        with self._lock:
            facts = self._facts(node)
            if self._nodes is None:
                self._nodes = {}
            if self._nodes.get(facts.name) == facts:
                return
            self._nodes[facts.name] = facts
            changes = self._judge([facts.name])
        self._tell(changes)

    def remove_node(self, node: observed.Node) -> None:
        name = node.metadata.name
        with self._lock:
            if self._nodes is not None:
                self._nodes.pop(name, None)
            changes = self._judge([name])
        self._tell(changes)

    def replace_leases(self, leases: Sequence[observed.Lease]) -> None:
        with self._lock:
            self._beats.replace((observed.heartbeat(lease) for lease in leases), self._now())
        self.tick()

    def upsert_lease(self, lease: observed.Lease) -> None:
        node, renew_time, duration_s = observed.heartbeat(lease)
        with self._lock:
            self._beats.saw(node, renew_time, duration_s, self._now())
            back = node in self._lost
        if back:
            self.tick()

    def remove_lease(self, lease: observed.Lease) -> None:
        with self._lock:
            self._beats.forget(lease.metadata.name)
        self.tick()

    # The clock.

    def tick(self) -> None:
        """Verdicts that change without an event: a grace that ends, a heartbeat that grows old. Once a second."""
        contact = self._lease_contact()
        with self._lock:
            now = self._now()
            deaf = contact is None or now - contact > LEASES_SILENT_S
            lost = set() if contact is None or deaf else self._beats.lost(contact)
            affected = lost ^ self._lost
            self._lost = lost
            for name in self._waiting:
                state = self._states.get(name)
                if state is None or state.verdict.changes_at is None or state.verdict.changes_at <= now:
                    affected.add(name)
            changes = self._judge(affected)
            if len(self._refused) > REFUSED_LIMIT:
                for name in [name for name in self._refused.copy() if name not in self._states]:
                    self._refused.pop(name, None)
        self._tell(changes)

    # For people and metrics.

    def states(self) -> dict[str, NodeState]:
        with self._lock:
            return dict(self._states)

    def heartbeat_ages_s(self) -> dict[str, float]:
        contact = self._lease_contact()
        if contact is None or not self._beats.enabled:
            return {}
        with self._lock:
            ages = {name: self._beats.age_s(name, contact) for name in self._states}
        return {name: age_s for name, age_s in ages.items() if age_s is not None}

    # Under the lock.

    def _facts(self, node: observed.Node) -> NodeFacts:
        known = (self._nodes or {}).get(node.metadata.name)
        if known is not None and known.uid == node.metadata.uid:
            return observed.node_facts(node, known.born_at)
        return observed.node_facts(node, self._now() - observed.age_s(node, self._wall()))

    def _keep_pod(self, pod: observed.Pod, known: Mapping[str, HealthPod]) -> HealthPod | None:
        earlier = known.get(pod.metadata.uid)
        node = (self._nodes or {}).get(pod.spec.node_name)
        node_uid = earlier.node_uid if earlier is not None and earlier.node == pod.spec.node_name else ""
        if not node_uid and node is not None:
            node_uid = node.uid
        kept = observed.health_pod(pod, self._daemon_set, node_uid)
        if kept is not None and self._pods is not None:
            self._pods.setdefault(kept.node, {})[kept.uid] = kept
            self._node_of_pod[kept.uid] = kept.node
        return kept

    def _drop_pod(self, uid: str) -> HealthPod | None:
        node = self._node_of_pod.pop(uid, None)
        if node is None or self._pods is None:
            return None
        on_node = self._pods[node]
        dropped = on_node.pop(uid, None)
        if not on_node:
            del self._pods[node]
        return dropped

    def _state_of(self, name: str, now: float) -> NodeState | None:
        node = (self._nodes or {}).get(name)
        if node is None:
            return None
        before = self._states.get(name)
        verdict, memory = judge(
            node,
            tuple((self._pods or {}).get(name, {}).values()),
            Memory() if before is None else before.memory,
            heartbeat_lost=name in self._lost,
            now=now,
            missing_grace_s=self._missing_grace_s,
        )
        unchanged = before is not None and before.verdict.reason == verdict.reason
        return NodeState(verdict, memory, before.since if before is not None and unchanged else now)

    def _judge(self, names: Iterable[str]) -> list[_Change]:
        """Verdicts of some nodes, written one by one. Nothing before both lists are there: it would close all nodes."""
        if not self.built:
            return []
        now = self._now()
        changes = []
        for name in set(names):
            state = self._state_of(name, now)
            old = self.reasons.get(name)
            if state is None:
                self.reasons.pop(name, None)
                self._states.pop(name, None)
                self._waiting.discard(name)
                continue
            self._states[name] = state
            self._wait_for(name, state)
            if state.verdict.reason != old:
                self.reasons[name] = state.verdict.reason
                changes.append(_Change(name, state.verdict))
        return self._counted(changes)

    def _judge_all(self) -> list[_Change]:
        """Verdicts of all nodes after a list, in a new map that takes the old one's place at once."""
        if self._nodes is None or self._pods is None:
            return []
        now = self._now()
        old_reasons = self.reasons
        states = {name: state for name in self._nodes if (state := self._state_of(name, now)) is not None}
        self._states = states
        self._waiting = {name for name, state in states.items() if state.verdict.changes_at is not None}
        self.reasons = {name: state.verdict.reason for name, state in states.items()}
        first, self.built = not self.built, True
        if first:
            self._wake = next((name for name, reason in self.reasons.items() if reason == OPEN), "")
            return []
        return self._counted(
            [
                _Change(name, state.verdict)
                for name, state in states.items()
                if old_reasons.get(name, UNKNOWN_NODE) != state.verdict.reason
            ]
        )

    def _counted(self, changes: list[_Change]) -> list[_Change]:
        """Counts the release after the reasons are written and before anybody looks at the refusals."""
        if any(change.verdict.reason == OPEN for change in changes):
            self.releases += 1
        return changes

    def _wait_for(self, name: str, state: NodeState) -> None:
        if state.verdict.changes_at is None:
            self._waiting.discard(name)
        else:
            self._waiting.add(name)

    # After the lock.

    def _tell(self, changes: Sequence[_Change]) -> None:
        wake, self._wake = self._wake, ""
        if wake:
            self._on_release(wake)
        for change in changes:
            if change.verdict.reason == OPEN and self._refused.pop(change.node, None) is not None:
                self._on_release(change.node)
        for change in changes:
            verdict = change.verdict
            if verdict.reason == OPEN:
                log.info("node opened", extra={"node": change.node, "pod": verdict.pod})
            else:
                log.info(
                    "node closed",
                    extra={"node": change.node, "reason": verdict.reason, "pod": verdict.pod, "why": verdict.evidence},
                )
