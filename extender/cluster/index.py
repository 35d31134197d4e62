"""What is seen of the cluster, kept as evidence: pods, nodes and heartbeats in, the evidence of changed nodes out.

No verdicts here. Writers (the reflectors' threads) hold one lock over memory work only. The decider is woken when
something has changed, takes the evidence of all changed nodes at once, and learns when time alone will change more.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from extender.cluster import observed
from extender.cluster.heartbeat import Heartbeats
from extender.policy.evidence import HealthPod, NodeEvidence, ObservedNode

LEASE_WATCH_STALE_S = 120.0  # a Lease watch that has been silent for so long closes no node, nor keeps one closed
LEASE_LOOKS_APART_S = 1.0  # ages are looked at no more often: with thousands of Leases some are always about to be due


@dataclass(frozen=True, slots=True)
class Batch:
    """evidence: of the nodes that have changed since the last batch; None for a node that is no more.

    due_at: monotonic seconds at which to take the next one although nothing may happen; infinite if it needs none.
    """

    evidence: dict[str, NodeEvidence | None]
    due_at: float


class Index:
    """on_change(): called from any thread, outside the lock, when there is something to take; must not block.

    daemon_set: name of the gate's DaemonSet, None = any. heartbeat_limit_s: age of a Lease beyond which its node is
    lost. lease_contact(): monotonic time of the Lease watch's last word, None before the first or without a watch.
    """

    def __init__(
        self,
        *,
        daemon_set: str | None,
        heartbeat_limit_s: float,
        on_change: Callable[[], None],
        lease_contact: Callable[[], float | None] = lambda: None,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._daemon_set = daemon_set
        self._on_change = on_change
        self._lease_contact = lease_contact
        self._monotonic = monotonic
        self._wall = wall
        self._lock = threading.Lock()
        self._nodes: dict[str, ObservedNode] = {}
        self._nodes_listed = False
        self._pods: dict[str, HealthPod] = {}  # by uid
        self._pods_on: dict[str, dict[str, HealthPod]] = {}  # node -> uid -> pod
        self._pods_listed = False
        self._beats = Heartbeats(heartbeat_limit_s)
        self._lost: set[str] = set()
        self._looked_at = -math.inf  # when the ages of the Leases were looked at, monotonic
        self._look_now = False  # a Lease has changed more than its age
        self._changed: dict[str, None] = {}  # a set that keeps its order

    # Stores of the reflectors.

    def replace_pods(self, pods: Sequence[observed.Pod]) -> None:
        with self._lock:
            before, before_on = self._pods, self._pods_on
            self._pods, self._pods_on = {}, {}
            for pod in pods:
                kept = self._health_pod(pod, before.get(pod.metadata.uid))
                if kept is not None:
                    self._keep_pod(kept)
            nodes = {**before_on, **self._pods_on}
            self._change(node for node in nodes if before_on.get(node) != self._pods_on.get(node))
            self._pods_listed = True
        self._wake(listed=True)

    def upsert_pod(self, pod: observed.Pod) -> None:
        with self._lock:
            before = self._pods.get(pod.metadata.uid)
            after = self._health_pod(pod, before)
            if after == before:
                return
            if before is not None:
                self._drop_pod(before)
                self._change([before.node])
            if after is not None:
                self._keep_pod(after)
                self._change([after.node])
        self._wake()

    def remove_pod(self, pod: observed.Pod) -> None:
        with self._lock:
            before = self._pods.get(pod.metadata.uid)
            if before is not None:
                self._drop_pod(before)
                self._change([before.node])
        self._wake()

    def replace_nodes(self, nodes: Sequence[observed.Node]) -> None:
        with self._lock:
            before = self._nodes
            self._nodes = {node.metadata.name: self._observed(node) for node in nodes}
            names = {**before, **self._nodes}
            self._change(name for name in names if before.get(name) != self._nodes.get(name))
            self._nodes_listed = True
        self._wake(listed=True)

    def upsert_node(self, node: observed.Node) -> None:
        name = node.metadata.name
        with self._lock:
            seen = self._observed(node)
            if self._nodes.get(name) == seen:
                return
            self._nodes[name] = seen
            self._change([name])
        self._wake()

    def remove_node(self, node: observed.Node) -> None:
        name = node.metadata.name
        with self._lock:
            if self._nodes.pop(name, None) is not None:
                self._change([name])
        self._wake()

    def replace_leases(self, leases: Sequence[observed.Lease]) -> None:
        with self._lock:
            self._beats.replace((observed.renewal(lease) for lease in leases), self._monotonic())
            self._look_now = True
        self._on_change()

    def upsert_lease(self, lease: observed.Lease) -> None:
        """Hundreds of times a second: wakes nobody but for a node that was lost, or an age that is due earlier."""
        node, renew_time, duration_s = observed.renewal(lease)
        with self._lock:
            earlier = self._beats.renewed(node, renew_time, duration_s, self._monotonic())
            if node in self._lost:
                self._look_now = True
            elif not earlier:
                return
        self._on_change()

    def remove_lease(self, lease: observed.Lease) -> None:
        name = lease.metadata.name
        with self._lock:
            self._beats.forget(name)
            if name not in self._lost:
                return
            self._look_now = True
        self._on_change()

    # The decider.

    def take(self, also: Iterable[str] = ()) -> Batch | None:
        """The evidence of all changed nodes, and of these; they count as unchanged from now on.

        None before both lists are there: on half of the evidence all nodes would be closed.
        """
        contact = self._lease_contact()
        with self._lock:
            if not (self._nodes_listed and self._pods_listed):
                return None
            due_at = self._look_at_leases(contact)
            self._change(also)
            batch = Batch({name: self._evidence(name) for name in self._changed}, due_at)
            self._changed = {}
            return batch

    def give_back(self, names: Iterable[str]) -> None:
        """These could not be decided on: they are in the next batch again."""
        with self._lock:
            self._change(names)

    # For people.

    def heartbeat_ages_s(self) -> dict[str, float]:
        contact = self._lease_contact()
        if contact is None:
            return {}
        with self._lock:
            ages = {name: self._beats.age_s(name, contact) for name in self._nodes}
        return {name: age_s for name, age_s in ages.items() if age_s is not None}

    # Under the lock.

    def _observed(self, node: observed.Node) -> ObservedNode:
        known = self._nodes.get(node.metadata.name)
        if known is not None and known.uid == node.metadata.uid:
            return observed.observed_node(node, known.born_at)
        return observed.observed_node(node, self._monotonic() - observed.age_s(node, self._wall()))

    def _health_pod(self, pod: observed.Pod, earlier: HealthPod | None) -> HealthPod | None:
        node_uid = earlier.node_uid if earlier is not None and earlier.node == pod.spec.node_name else ""
        node = self._nodes.get(pod.spec.node_name)
        if not node_uid and node is not None:
            node_uid = node.uid
        return observed.health_pod(pod, self._daemon_set, node_uid)

    def _keep_pod(self, pod: HealthPod) -> None:
        self._pods[pod.uid] = pod
        self._pods_on.setdefault(pod.node, {})[pod.uid] = pod

    def _drop_pod(self, pod: HealthPod) -> None:
        del self._pods[pod.uid]
        on_node = self._pods_on[pod.node]
        del on_node[pod.uid]
        if not on_node:
            del self._pods_on[pod.node]

    def _evidence(self, name: str) -> NodeEvidence | None:
        node = self._nodes.get(name)
        if node is None:
            return None
        return NodeEvidence(node, tuple(self._pods_on.get(name, {}).values()), name in self._lost)

    def _change(self, names: Iterable[str]) -> None:
        self._changed.update(dict.fromkeys(names))

    def _look_at_leases(self, contact: float | None) -> float:
        """Finds who is lost, or no longer, if it is time to look; when to look again."""
        monotonic = self._monotonic()
        if self._look_now or monotonic >= self._leases_due_at(contact):
            self._looked_at, self._look_now = monotonic, False
            stale = contact is None or monotonic - contact > LEASE_WATCH_STALE_S
            lost = set() if contact is None or stale else self._beats.lost(contact)
            self._change(lost ^ self._lost)
            self._lost = lost
        return self._leases_due_at(contact)

    def _leases_due_at(self, contact: float | None) -> float:
        due_at = self._beats.due_at()
        if self._lost and contact is not None:
            due_at = min(due_at, contact + LEASE_WATCH_STALE_S)
        return max(due_at, self._looked_at + LEASE_LOOKS_APART_S)

    # After the lock.

    def _wake(self, *, listed: bool = False) -> None:
        """listed: an empty list says something too, namely that it is there."""
        if (listed or self._changed) and self._nodes_listed and self._pods_listed:
            self._on_change()
