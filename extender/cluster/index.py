"""The observed state of the cluster as evidence: pods, nodes and heartbeats in, the evidence of changed nodes out.

It knows no verdicts. Writers (the reflectors' threads) hold one lock for memory work only. The decider wakes when
something has changed, takes the evidence of all changed nodes at once, and learns when time alone will change more.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from extender.cluster import observed
from extender.cluster.health_pods import Found, GatePods, HealthPods, PodList
from extender.cluster.heartbeats import Heartbeats
from extender.cluster.observed import NOTHING_MORE, Texts, Wanted
from extender.cluster.pod_starts import PodStarts
from extender.policy.evidence import HealthPod, NodeEvidence, ObservedNode
from kube import contract

log = logging.getLogger(__name__)

AWAITED_S = 5.0  # for the first lists of optional inputs, once nodes and pods are there; three tries of each

Listed = TypeVar("Listed", observed.Pod, observed.Node)
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Batch:
    """The evidence of the nodes that have changed since the last batch; None for a node that is gone.

    due_at: monotonic time at which to take the next one without a change; infinite if that is not needed.
    """

    evidence: dict[str, NodeEvidence | None]
    due_at: float


class Index:
    """The evidence of all nodes. on_change(): called from any thread, outside the lock, when there is something to
    take; must not block.

    speakers: the health pods of each gate; their lists are returned by `lists`, and all must be there before any
    evidence is given out. wanted: the conditions that gates read. kubelets, agents: heartbeats of the kubelets and of
    the agents; starts: how pods start; None if not used. awaited(): whether an optional list is worth waiting for at a
    start.
    """

    def __init__(
        self,
        *,
        speakers: Sequence[GatePods],
        on_change: Callable[[], None],
        wanted: Wanted = NOTHING_MORE,
        kubelets: Heartbeats | None = None,
        agents: Heartbeats | None = None,
        starts: PodStarts | None = None,
        awaited: Callable[[], bool] = lambda: False,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._speakers = tuple(speakers)
        self._wanted = wanted
        self._on_change = on_change
        self._kubelets = kubelets
        self._agents = agents
        self._starts = starts
        self._others_awaited = awaited
        self._lost: frozenset[str] = frozenset()  # by their kubelet's Lease
        self._silent: frozenset[str] = frozenset()  # by their agent's Lease
        self._swallowing: Mapping[str, str] = {}  # by how pods start there
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
        self._listed_at: float | None = None  # when all of them and the nodes were listed, monotonic
        self._given_out = False
        self._changed: dict[str, None] = {}  # a set that keeps its order

    # Stores of the reflectors.

    @property
    def lists(self) -> Mapping[str, PodList]:
        """Returns the pods to list and watch, by a name; the three methods with that name as an argument fill them."""
        first = {pods: next(one.gate for one in self._speakers if one.pods == pods) for pods in self._pods}
        return {"pods" if place == 0 else f"pods/{first[pods]}": pods for place, pods in enumerate(first)}

    def replace_pods(self, of: PodList, pods: Sequence[observed.Pod]) -> None:
        self._heard()
        with self._lock:
            kept = self._pods[of]
            found = _each(lambda pod: self._found(kept, pod), pods)
            self._change(kept.replace([one for one in found if one is not None]))
            self._unlisted.discard(of)
            self._note_listed()
        self._wake(listed=True)

    def upsert_pod(self, of: PodList, pod: observed.Pod) -> None:
        self._heard()
        with self._lock:
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
        self._heard()
        with self._lock:
            before = self._nodes
            self._nodes = {one.name: one for one in _each(self._observed, nodes)}
            names = {**before, **self._nodes}
            self._change(name for name in names if before.get(name) != self._nodes.get(name))
            self._nodes_listed = True
            self._note_listed()
        self._wake(listed=True)

    def upsert_node(self, node: observed.Node) -> None:
        name = node.metadata.name
        self._heard()
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

    # For the decider.

    def take(self, also: Iterable[str] = (), *, everything: bool = False) -> Batch | None:
        """Returns the evidence of all changed nodes, and of `also`, or of every node. They count as unchanged from now
        on.

        Returns None before all lists are there: with half of the evidence all nodes would be closed.
        """
        with self._lock:
            if self._listed_at is None or self._awaited():
                return None
            due_at = min(self._look_at_beats(), self._look_at_starts())
            self._change(also)
            if everything:
                self._change(self._nodes)
            batch = Batch({name: self._evidence(name) for name in self._changed}, due_at)
            self._changed, self._given_out = {}, True
        for beats in self._of_both():
            beats.ask_if_due()
        return batch

    def give_back(self, names: Iterable[str]) -> None:
        """Takes back nodes that could not be decided: they are in the next batch again."""
        with self._lock:
            self._change(names)

    # For logs and the status API.

    def silent(self) -> list[GatePods]:
        """Returns gates without a health pod on any node, if there are nodes. Empty before all lists are there."""
        with self._lock:
            if self._listed_at is None or not self._nodes:
                return []
            return [one for one in self._speakers if not self._pods[one.pods].any_of(one.daemon_set)]

    # Under the lock.

    def _observed(self, node: observed.Node) -> ObservedNode:
        known = self._nodes.get(node.metadata.name)
        if known is not None and known.uid == node.metadata.uid:
            born_at = known.born_at
        else:
            born_at = self._monotonic() - observed.age_s(node, self._wall())
        return observed.observed_node(node, born_at, self._wanted, self._texts)

    def _found(self, kept: HealthPods, pod: observed.Pod) -> Found | None:
        """Returns None for a pod that is on no node, or counts for no gate."""
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
        """Returns the deletion time by the monotonic clock, always the same for one pod."""
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
        return NodeEvidence(node, pods, name in self._lost, name in self._silent, self._swallowing.get(name, ""))

    def _change(self, names: Iterable[str]) -> None:
        self._changed.update(dict.fromkeys(names))

    def _note_listed(self) -> None:
        if self._listed_at is None and self._nodes_listed and not self._unlisted:
            self._listed_at = self._monotonic()

    def _awaited(self) -> bool:
        """Returns whether to wait for optional lists. A new process must not briefly open nodes that the previous one
        knew to be lost or on hold, nor close nodes that are exempt; and it must not wait for long."""
        if self._given_out or self._listed_at is None or self._monotonic() >= self._listed_at + AWAITED_S:
            return False
        return any(beats.awaited for beats in self._of_both()) or self._others_awaited()

    def _look_at_beats(self) -> float:
        """Checks heartbeats if it is time. Returns when to check again.

        Agents come after kubelets, because a lost kubelet is the second signal.
        """
        due_at = agents_due_at = math.inf
        lost, silent = self._lost, self._silent
        if self._kubelets is not None:
            self._lost, due_at = self._kubelets.look(self._only_its_lease)
        if self._agents is not None:
            self._silent, agents_due_at = self._agents.look(
                lambda name: self._only_its_lease(name) and name not in self._lost
            )
        self._change((lost ^ self._lost) | (silent ^ self._silent))
        return min(due_at, agents_due_at)

    def _look_at_starts(self) -> float:
        """Checks starts of pods. Returns when to check again."""
        if self._starts is None:
            return math.inf
        before = self._swallowing
        self._swallowing, due_at = self._starts.look()
        self._change(name for name in {**before, **self._swallowing} if before.get(name) != self._swallowing.get(name))
        return due_at

    def _of_both(self) -> Iterable[Heartbeats]:
        return (beats for beats in (self._kubelets, self._agents) if beats is not None)

    def _only_its_lease(self, name: str) -> bool:
        node = self._nodes.get(name)
        return node is not None and node.ready != contract.STATUS_UNKNOWN

    # Outside the lock.

    def _heard(self) -> None:
        """Records that the kubelets' API server has answered, because it serves pods and nodes, too."""
        if self._kubelets is not None:
            self._kubelets.answered()

    def _wake(self, *, listed: bool = False) -> None:
        """Wakes the decider. listed: also without changed nodes, because an empty list counts as read."""
        if (listed or self._changed) and self._listed_at is not None:
            self._on_change()


def _each(make: Callable[[Listed], Made], listed: Iterable[Listed]) -> Iterator[Made]:
    """Translates each object. An unreadable one counts as unknown; refusing its whole list would hurt all others."""
    for one in listed:
        try:
            yield make(one)
        except Exception:
            meta = one.metadata
            log.exception("an object of a list was left out", extra={"namespace": meta.namespace, "object": meta.name})
