"""What is seen of the cluster, kept as evidence: pods, nodes and heartbeats in, the evidence of changed nodes out.

No verdicts here. Writers (the reflectors' threads) hold one lock over memory work only. The decider is woken when
something has changed, takes the evidence of all changed nodes at once, and learns when time alone will change more.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from extender.cluster import observed
from extender.cluster.heartbeat import Heartbeats
from extender.policy.evidence import HealthPod, NodeEvidence, ObservedNode
from kube import contract

LEASE_WATCH_STALE_S = 120.0  # a Lease watch that has been silent for so long closes no node, nor keeps one closed
LEASES_AWAITED_S = 2.0  # of the first list of Leases, once nodes and pods are there
LEASE_LOOKS_APART_S = 0.5  # ages are looked at no more often: with thousands of Leases some are always about to be due


class LeaseWatch(Protocol):
    """What is asked of the reflector of Leases. last_word, list_began: monotonic seconds, None before the first."""

    last_word: float | None
    list_began: float | None

    @property
    def counters(self) -> Mapping[str, int]: ...


@dataclass(frozen=True, slots=True)
class Batch:
    """evidence: of the nodes that have changed since the last batch; None for a node that is no more.

    due_at: monotonic seconds at which to take the next one although nothing may happen; infinite if it needs none.
    """

    evidence: dict[str, NodeEvidence | None]
    due_at: float


class Index:
    """on_change(): called from any thread, outside the lock, when there is something to take; must not block.

    gate: its name. daemon_set: name of its DaemonSet, None = any. heartbeat_limit_s: age of a Lease beyond which its
    node is lost. lease_watch(): what fills us with Leases, None without. on_read_due(): as on_change, when
    leases_due_at() has become now.
    """

    def __init__(
        self,
        *,
        daemon_set: str | None,
        gate: str = "health",
        heartbeat_limit_s: float,
        on_change: Callable[[], None],
        on_read_due: Callable[[], None] = lambda: None,
        lease_watch: Callable[[], LeaseWatch | None] = lambda: None,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._gate = gate
        self._daemon_set = daemon_set
        self._on_change = on_change
        self._on_read_due = on_read_due
        self._lease_watch = lease_watch
        self._monotonic = monotonic
        self._wall = wall
        self._lock = threading.Lock()
        self._nodes: dict[str, ObservedNode] = {}
        self._nodes_listed = False
        self._pods: dict[str, HealthPod] = {}  # by uid
        self._pods_on: dict[str, dict[str, HealthPod]] = {}  # node -> uid -> pod
        self._pods_listed = False
        self._listed_at: float | None = None  # both, monotonic
        self._beats = Heartbeats(heartbeat_limit_s)
        self._leases_listed = False
        self._leases_read_at = -math.inf  # beside the watch
        self._lost: set[str] = set()
        self._looked_at = -math.inf  # when the ages of the Leases were looked at, monotonic
        self._look_now = False  # a Lease has changed more than its age
        self._changed: dict[str, None] = {}  # a set that keeps its order

    # Stores of the reflectors.

    def replace_pods(self, pods: Sequence[observed.Pod]) -> None:
        with self._lock:
            self._beats.heard(self._monotonic())
            before, before_on = self._pods, self._pods_on
            self._pods, self._pods_on = {}, {}
            for pod in pods:
                kept = self._health_pod(pod, before.get(pod.metadata.uid))
                if kept is not None:
                    self._keep_pod(kept)
            nodes = {**before_on, **self._pods_on}
            self._change(node for node in nodes if before_on.get(node) != self._pods_on.get(node))
            self._pods_listed = True
            self._note_listed()
        self._wake(listed=True)

    def upsert_pod(self, pod: observed.Pod) -> None:
        with self._lock:
            self._beats.heard(self._monotonic())
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
            self._beats.heard(self._monotonic())
            before = self._nodes
            self._nodes = {node.metadata.name: self._observed(node) for node in nodes}
            names = {**before, **self._nodes}
            self._change(name for name in names if before.get(name) != self._nodes.get(name))
            self._nodes_listed = True
            self._note_listed()
        self._wake(listed=True)

    def upsert_node(self, node: observed.Node) -> None:
        name = node.metadata.name
        with self._lock:
            self._beats.heard(self._monotonic())
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
        watch = self._lease_watch()
        listed = [observed.listed_renewal(lease) for lease in leases]
        with self._lock:
            self._beats.replace(
                listed,
                self._monotonic(),
                began=None if watch is None else watch.list_began,
                after_failures=watch is not None and any(name.startswith("errors.") for name in watch.counters),
            )
            self._leases_listed = self._look_now = True
        self._on_change()

    def upsert_lease(self, lease: observed.Lease) -> None:
        """Hundreds of times a second: wakes nobody but for a node that was lost, or an age that is due earlier."""
        renewal = observed.renewal(lease)
        with self._lock:
            earlier = self._beats.renewed(renewal, self._monotonic())
            if renewal.node in self._lost:
                self._look_now = True
            elif not earlier:
                return
        self._on_change()

    def remove_lease(self, lease: observed.Lease) -> None:
        name = lease.metadata.name
        with self._lock:
            self._beats.heard(self._monotonic())
            self._beats.forget(name)
            if name not in self._lost:
                return
            self._look_now = True
        self._on_change()

    # The reader of Leases beside their watch.

    def leases_due_at(self) -> float:
        """Monotonic seconds at which a list of the Leases beside their watch is wanted; infinite while none is."""
        with self._lock:
            return self._beats.read_due_at()

    def read_leases(self, leases: Sequence[observed.Lease], began: float) -> None:
        """All Leases, asked for at `began` (monotonic)."""
        renewals = [observed.renewal(lease) for lease in leases]
        with self._lock:
            self._leases_read_at = began
            self._look_now |= self._beats.read_due_at() == -math.inf
            self._beats.read(renewals, began, self._monotonic())
            if not self._look_now:
                return
        self._on_change()

    def leases_unread(self) -> None:
        """They could not be had."""
        with self._lock:
            self._beats.failed()

    def heard_since(self) -> bool:
        """Whether the API server was heard of since then."""
        with self._lock:
            return not self._beats.unheard

    # The decider.

    def take(self, also: Iterable[str] = ()) -> Batch | None:
        """The evidence of all changed nodes, and of these; they count as unchanged from now on.

        None before both lists are there: on half of the evidence all nodes would be closed.
        """
        with self._lock:
            if self._listed_at is None or self._leases_awaited():
                return None
            due_at = self._look_at_leases()
            self._change(also)
            batch = Batch({name: self._evidence(name) for name in self._changed}, due_at)
            self._changed = {}
            read_due = self._beats.read_due_at() == -math.inf
        if read_due:
            self._on_read_due()
        return batch

    def give_back(self, names: Iterable[str]) -> None:
        """These could not be decided on: they are in the next batch again."""
        with self._lock:
            self._change(names)

    # For people.

    def beats(self) -> dict[str, float]:
        """By name of its Lease: monotonic seconds when a kubelet was last seen to beat."""
        with self._lock:
            return self._beats.seen()

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
        deleted_s = observed.deleted_s(pod)
        return observed.health_pod(pod, self._daemon_set, node_uid, deleted_s, self._deleted_at(deleted_s, earlier))

    def _deleted_at(self, deleted_s: float | None, earlier: HealthPod | None) -> float:
        """By the monotonic clock, and always the same."""
        if deleted_s is None:
            return -math.inf
        if earlier is not None and earlier.deleted:
            return earlier.deleted_at
        return self._monotonic() - max(0.0, self._wall() - deleted_s)

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
        pods = tuple(self._pods_on.get(name, {}).values())
        return NodeEvidence(node, {self._gate: pods}, name in self._lost)

    def _change(self, names: Iterable[str]) -> None:
        self._changed.update(dict.fromkeys(names))

    def _note_listed(self) -> None:
        if self._listed_at is None and self._nodes_listed and self._pods_listed:
            self._listed_at = self._monotonic()

    def _leases_awaited(self) -> bool:
        """A process that starts shall not open for a moment what the one before knew to be lost."""
        if self._leases_listed or self._lease_watch() is None or self._listed_at is None:
            return False
        return self._monotonic() < self._listed_at + LEASES_AWAITED_S

    def _look_at_leases(self) -> float:
        """Finds who is lost, or no longer, if it is time to look; when to look again."""
        monotonic = self._monotonic()
        watch = self._lease_watch()
        contact = -math.inf if watch is None or watch.last_word is None else watch.last_word
        stale_at = max(contact, self._leases_read_at) + LEASE_WATCH_STALE_S
        if self._look_now or monotonic >= self._leases_due_at(stale_at):
            self._looked_at, self._look_now = monotonic, False
            lost = self._beats.lost(monotonic, self._only_its_lease) if monotonic <= stale_at else set[str]()
            self._change(lost ^ self._lost)
            self._lost = lost
        return self._leases_due_at(stale_at)

    def _only_its_lease(self, name: str) -> bool:
        node = self._nodes.get(name)
        return node is not None and node.ready != contract.STATUS_UNKNOWN

    def _leases_due_at(self, stale_at: float) -> float:
        due_at = self._beats.due_at()
        if self._lost:
            due_at = min(due_at, stale_at)
        return max(due_at, self._looked_at + LEASE_LOOKS_APART_S)

    # After the lock.

    def _wake(self, *, listed: bool = False) -> None:
        """listed: an empty list says something too, namely that it is there."""
        if (listed or self._changed) and self._listed_at is not None:
            self._on_change()
