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
from extender.cluster.agents import AgentBeats
from extender.cluster.health_pods import Found, HealthPods, PodList, Speakers
from extender.cluster.heartbeat import Heartbeats
from extender.cluster.observed import NOTHING_MORE, Texts, Wanted
from extender.policy.evidence import HealthPod, NodeEvidence, ObservedNode
from kube import contract

LEASE_WATCH_STALE_S = 120.0  # a Lease watch that has been silent for so long closes no node, nor keeps one closed
AWAITED_S = 2.0  # first lists of what is not required, once nodes and pods are there
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

    speakers: the health pods of each gate; their lists are told by `lists`, each of which must be there before anything
    is given out. wanted: what gates read of conditions. heartbeat_limit_s: age of a Lease beyond which its node is
    lost. lease_watch(): what fills us with Leases, None without. on_read_due(): as on_change, when leases_due_at() has
    become now. awaited(): whether something beside the Leases is worth waiting for before anything is given out.
    agents: the heartbeats of the agents on the nodes, None where they are not looked at.
    """

    def __init__(
        self,
        *,
        speakers: Sequence[Speakers],
        heartbeat_limit_s: float,
        on_change: Callable[[], None],
        wanted: Wanted = NOTHING_MORE,
        on_read_due: Callable[[], None] = lambda: None,
        lease_watch: Callable[[], LeaseWatch | None] = lambda: None,
        awaited: Callable[[], bool] = lambda: False,
        agents: AgentBeats | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._speakers = tuple(speakers)
        self._wanted = wanted
        self._on_change = on_change
        self._on_read_due = on_read_due
        self._lease_watch = lease_watch
        self._others_awaited = awaited
        self._agents = agents
        self._silent: frozenset[str] = frozenset()
        self._monotonic = monotonic
        self._wall = wall
        self._lock = threading.Lock()
        self._nodes: dict[str, ObservedNode] = {}
        self._nodes_listed = False
        self._texts = Texts()
        self._pods = {
            pods: HealthPods(dict.fromkeys(one.daemon_set for one in speakers if one.pods == pods))
            for pods in dict.fromkeys(one.pods for one in speakers)
        }
        self._unlisted = set(self._pods)
        self._listed_at: float | None = None  # all of them and the nodes, monotonic
        self._given_out = False
        self._beats = Heartbeats(heartbeat_limit_s)
        self._leases_listed = False
        self._leases_read_at = -math.inf  # beside the watch
        self._lost: set[str] = set()
        self._looked_at = -math.inf  # when the ages of the Leases were looked at, monotonic
        self._look_now = False  # a Lease has changed more than its age
        self._changed: dict[str, None] = {}  # a set that keeps its order

    # Stores of the reflectors.

    @property
    def lists(self) -> Mapping[str, PodList]:
        """What is to be listed and watched of pods, by a name; each is filled by the three methods that take one."""
        first = {pods: next(one.gate for one in self._speakers if one.pods == pods) for pods in self._pods}
        return {"pods" if place == 0 else f"pods/{first[pods]}": pods for place, pods in enumerate(first)}

    def replace_pods(self, of: PodList, pods: Sequence[observed.Pod]) -> None:
        with self._lock:
            self._beats.heard(self._monotonic())
            kept = self._pods[of]
            found = [one for pod in pods if (one := self._found(kept, pod)) is not None]
            self._change(kept.replace(found))
            self._unlisted.discard(of)
            self._note_listed()
        self._wake(listed=True)

    def upsert_pod(self, of: PodList, pod: observed.Pod) -> None:
        with self._lock:
            self._beats.heard(self._monotonic())
            kept = self._pods[of]
            changed = kept.upsert(pod.metadata.uid, self._found(kept, pod))
            if not changed:
                return
            self._change(changed)
        self._wake()

    def remove_pod(self, of: PodList, pod: observed.Pod) -> None:
        with self._lock:
            self._change(self._pods[of].remove(pod.metadata.uid))
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

    def take(self, also: Iterable[str] = (), *, everything: bool = False) -> Batch | None:
        """The evidence of all changed nodes, and of these, or of each there is; they count as unchanged from now on.

        None before all lists are there: on half of the evidence all nodes would be closed.
        """
        with self._lock:
            if self._listed_at is None or self._awaited():
                return None
            due_at = min(self._look_at_leases(), self._look_at_agents())
            self._change(also)
            if everything:
                self._change(self._nodes)
            batch = Batch({name: self._evidence(name) for name in self._changed}, due_at)
            self._changed, self._given_out = {}, True
            read_due = self._beats.read_due_at() == -math.inf
        if read_due:
            self._on_read_due()
        return batch

    def give_back(self, names: Iterable[str]) -> None:
        """These could not be decided on: they are in the next batch again."""
        with self._lock:
            self._change(names)

    # For people.

    def silent(self) -> list[Speakers]:
        """Of which no health pod is on any node, though there are nodes. None before all lists are there."""
        with self._lock:
            if self._listed_at is None or not self._nodes:
                return []
            return [one for one in self._speakers if not self._pods[one.pods].any_of(one.daemon_set)]

    def beats(self) -> dict[str, float]:
        """By name of its Lease: monotonic seconds when a kubelet was last seen to beat."""
        with self._lock:
            return self._beats.seen()

    # Under the lock.

    def _observed(self, node: observed.Node) -> ObservedNode:
        known = self._nodes.get(node.metadata.name)
        if known is not None and known.uid == node.metadata.uid:
            born_at = known.born_at
        else:
            born_at = self._monotonic() - observed.age_s(node, self._wall())
        return observed.observed_node(node, born_at, self._wanted, self._texts)

    def _found(self, kept: HealthPods, pod: observed.Pod) -> Found | None:
        """None for a pod that speaks for no node, or to no gate."""
        daemon_set = observed.daemon_set(pod)
        if not pod.spec.node_name or not kept.wanted(daemon_set):
            return None
        earlier = kept.earlier(pod.metadata.uid)
        node_uid = earlier.node_uid if earlier is not None and earlier.node == pod.spec.node_name else ""
        node = self._nodes.get(pod.spec.node_name)
        if not node_uid and node is not None:
            node_uid = node.uid
        deleted_s = observed.deleted_s(pod)
        deleted_at = self._deleted_at(deleted_s, earlier)
        seen = observed.health_pod(pod, node_uid, deleted_s, deleted_at, self._wanted, self._texts)
        return Found(seen, self._texts.one(daemon_set))

    def _deleted_at(self, deleted_s: float | None, earlier: HealthPod | None) -> float:
        """By the monotonic clock, and always the same."""
        if deleted_s is None:
            return -math.inf
        if earlier is not None and earlier.deleted:
            return earlier.deleted_at
        return self._monotonic() - max(0.0, self._wall() - deleted_s)

    def _evidence(self, name: str) -> NodeEvidence | None:
        node = self._nodes.get(name)
        if node is None:
            return None
        pods = {one.gate: self._pods[one.pods].on(one.daemon_set, name) for one in self._speakers}
        return NodeEvidence(node, pods, name in self._lost, name in self._silent)

    def _change(self, names: Iterable[str]) -> None:
        self._changed.update(dict.fromkeys(names))

    def _note_listed(self) -> None:
        if self._listed_at is None and self._nodes_listed and not self._unlisted:
            self._listed_at = self._monotonic()

    def _awaited(self) -> bool:
        """A process that starts shall not open for a moment what the one before knew to be lost or held, nor close what
        that one knew to be exempt; nor wait for long."""
        if self._given_out or self._listed_at is None or self._monotonic() >= self._listed_at + AWAITED_S:
            return False
        leases = not self._leases_listed and self._lease_watch() is not None
        agents = self._agents is not None and not self._agents.listed
        return leases or agents or self._others_awaited()

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

    def _look_at_agents(self) -> float:
        """As for Leases, of the agents on the nodes; after them, as a kubelet that is lost is the second signal."""
        if self._agents is None:
            return math.inf
        silent, due_at = self._agents.look(lambda name: self._only_its_lease(name) and name not in self._lost)
        self._change(silent ^ self._silent)
        self._silent = silent
        return due_at

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
