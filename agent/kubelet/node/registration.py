"""Registers the Node and keeps its status true. Mirrors pkg/kubelet/kubelet_node_status.go, v1.36.3.

Registration is tried after 100 ms, doubling to 7 s, until it succeeds; then the status is looked at every `update_s`
(+ up to 4 %) and written when it changed or was last written about five minutes ago; until the node is Ready for the
first time, for two minutes at most, each tenth of a second whether it is by now. A Node that somebody deleted is
registered again.
"""

import contextlib
import logging
import math
import random as random_module
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Protocol

from agent.kubelet.events.event import NORMAL, WARNING, Event, Record, about_node, record_nothing
from agent.kubelet.node import facts as node_facts
from agent.kubelet.node.facts import NodeFacts
from agent.kubelet.node.observed import NOTHING, Observed
from agent.kubelet.node.outage import FAILURES, Outage
from agent.processes.command import RuntimeUnavailable
from agent.wire.model import Node, NodeStatus
from agent.wire.node import parse_node, registration_patch, status_patch, write_node
from component.backoff import Backoff
from component.loop import Loop
from kube import paths
from kube.contract import STATUS_TRUE
from kube.errors import AlreadyExists, Forbidden, KubeError, NotFound
from kube.media_types import STRATEGIC_MERGE_PATCH
from kube.objects import UNREADABLE

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 7.0
TRIES = 5
REPORT_S = 300.0  # nodeStatusReportFrequency
JITTER = 0.04
READY_LOOK_S = 0.1
READY_GRACE_S = 120.0  # nodeReadyGracePeriod
STUCK_AFTER_S = 60.0
REASON_READY, REASON_NOT_READY = "NodeReady", "NodeNotReady"
REASON_SCHEDULABLE, REASON_NOT_SCHEDULABLE = "NodeSchedulable", "NodeNotSchedulable"
REASON_REBOOTED = "NodeRebooted"


class NodeClient(Protocol):
    """The part of kube.client.Client that is used."""

    def get(self, path: str, *, query: Mapping[str, str] = ...) -> bytes: ...
    def create(self, path: str, body: bytes) -> bytes: ...
    def patch(self, path: str, body: bytes, *, content_type: str) -> bytes: ...


class NodeReporter:
    """A Service. `errors` tells why the node is not ready, `found` what else there is to report; they must not wait.
    `use_pod_cidr` gives the runtime the block of addresses that the Node has; may raise RuntimeUnavailable.

    Healthy while it is alive and progresses; an API server that is away does not make it unhealthy.
    """

    name = "node status"

    def __init__(
        self,
        client: NodeClient,
        facts: NodeFacts,
        errors: Callable[[], Sequence[str]],
        *,
        update_s: float,
        found: Callable[[], Observed] = lambda: NOTHING,
        record: Record = record_nothing,
        use_pod_cidr: Callable[[str], None] = lambda _cidr: None,
        get_on_exists_only: bool = False,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self._client = client
        self._facts = facts
        self._errors = errors
        self._found = found
        self._update_s = update_s
        self._record = record
        self._get_on_exists_only = get_on_exists_only
        self._use_pod_cidr = use_pod_cidr
        self._pod_cidr = ""  # that the runtime has
        self._unschedulable = False  # as it was told
        self._rebooted = False  # the Event of it was sent
        self._unknown: frozenset[str] = frozenset()  # to the API server, which drops it: no change each time
        self._wall = wall
        self._monotonic = monotonic
        self._random = random
        self._registered = threading.Event()
        self._reported_at: float | None = None  # monotonic
        self._delay_s = 0.0
        self._next_turn = math.inf  # monotonic, of a regular report
        self._ready_by = math.inf  # monotonic: until then it is watched whether the node becomes Ready
        self._known: Node | None = None  # as it was read or written last
        self._watched: Node | None = None
        self._outage = Outage(
            failed="node status not written",
            over="node status update succeeded again",
            node=facts.name,
            backoff=Backoff(first_s=2 * FIRST_PAUSE_S, limit_s=LONGEST_PAUSE_S),  # the loop has paused once already
            random=random,
        )
        self._loop = Loop(
            "node-status", self.turn, stuck_after_s=STUCK_AFTER_S, first_pause_s=FIRST_PAUSE_S, monotonic=monotonic
        )
        # A Service by its loop.
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    @property
    def registered(self) -> bool:
        return self._registered.is_set()

    @property
    def node(self) -> Node | None:
        """As it was read last; None where it is not registered, or is being deleted."""
        node = self._known
        return node if self.registered and node is not None and node.uid and not node.is_being_deleted else None

    def known_node(self) -> Node:
        """As it was last read or written, else as it would be created. From any thread."""
        return self._known or self._new()

    def read_node(self) -> Node | None:
        """As the API server has it, which is waited for; None where it cannot be read. From any thread."""
        try:
            return parse_node(self._client.get(paths.node(self._facts.name)))
        except NotFound:
            return self._new()
        except FAILURES:
            return None

    def turn(self) -> float:
        """Registers the Node if it is not, and reports; returns the seconds until the next turn."""
        monotonic = self._monotonic()
        if self._watched is not None and monotonic < min(self._next_turn, self._ready_by):
            if self.report_readiness(self._watched):
                self._watched, self._ready_by = None, monotonic
            pause_s = self._next_turn - monotonic
        else:
            if self._ready_by == math.inf:
                self._ready_by = monotonic + READY_GRACE_S
            pause_s = self._report_in_turn()
            self._next_turn = monotonic + pause_s
            self._watched = self._known if monotonic < self._ready_by else None
            if self._watched is not None and node_facts.ready_status(self._watched.status) == STATUS_TRUE:
                self._watched, self._ready_by = None, monotonic
        return pause_s if self._watched is None else min(pause_s, READY_LOOK_S)

    def _report_in_turn(self) -> float:
        """The seconds until the next one."""
        try:
            if not self.registered:
                self.register()
            self.report()
        except FAILURES as e:
            pause_s = self._outage.failed(e)
            # Once it has reported, a failed report waits for the next regular one, as the kubelet's does.
            return self._update_s if self.registered and self._reported_at is not None else pause_s
        self._outage.succeeded()
        return self._update_s * (1 + JITTER * self._random())

    def register(self) -> None:
        """Creates the Node, or puts right what an existing one was registered with. Raises one of FAILURES."""
        facts = self._facts
        new = self._new()
        try:
            self._client.create(paths.nodes(), write_node(new))
            log.info("node registered", extra={"node": facts.name})
        except (AlreadyExists, Forbidden) as e:
            if self._get_on_exists_only and isinstance(e, Forbidden):
                raise
            try:
                node = self._get()
            except NotFound:
                raise e from None  # it was not "exists": the create itself is forbidden
            labels, annotations = node_facts.label_changes(facts, node), node_facts.annotation_changes(facts, node)
            body = registration_patch(labels, annotations, *node_facts.resource_changes(new.status, node.status))
            if body:
                self._client.patch(paths.node_status(facts.name), body, content_type=STRATEGIC_MERGE_PATCH)
            log.info("node was registered before", extra={"node": facts.name})
        self._registered.set()

    def report(self) -> bool:
        """Writes the status if it is due, in up to five tries; True if it was written. Raises one of FAILURES."""
        for attempt in range(TRIES):
            self._loop.progressed()
            try:
                return self._report_once(from_memory=attempt == 0)
            except NotFound:
                if attempt == 0:  # the cache of the API server may not have a new Node yet
                    continue
                self._registered.clear()
                raise
            except KubeError:
                if attempt == TRIES - 1 or self._loop.stopping:
                    raise
        return False

    def _report_once(self, *, from_memory: bool) -> bool:
        node = self._get(paths.FROM_MEMORY if from_memory else {})
        self._tell_of_orders(node)
        changed = self._pod_cidr_changed(node)
        new = self._status(node.status)
        changed = changed or node_facts.changed(node.status, new)
        changed = changed or bool(node_facts.required_labels(self._facts, node))
        first = self._reported_at is None
        if not changed and not first:
            if self._monotonic() - (self._reported_at or 0.0) < REPORT_S + self._delay_s:
                return False
            self._unknown = frozenset()  # it may be a newer one by now
            new = self._status(node.status)
        # The first report, and one after a change, spreads the nodes of a cluster by +-50 %.
        self._delay_s = REPORT_S * (self._random() - 0.5) if changed or first else 0.0
        self._patch(node, new)
        return True

    def report_readiness(self, old: Node) -> bool:
        """Writes the status if it makes the node Ready; True once it is. `old`: as it was read last."""
        ready = node_facts.ready_status(old.status)
        if ready in ("", STATUS_TRUE):
            return bool(ready)
        self._tell_of_orders(old)
        self._pod_cidr_changed(old)
        new = self._status(old.status)
        if node_facts.ready_status(new) != STATUS_TRUE:
            return False
        try:
            self._patch(old, new)
        except FAILURES:
            with contextlib.suppress(*FAILURES):
                self.report()
        return True

    def _new(self) -> Node:
        return node_facts.new_node(self._facts, self._errors(), self._wall(), self._found())

    def _pod_cidr_changed(self, node: Node) -> bool:
        """Gives it to the runtime; True also where that does not take it (updatePodCIDR)."""
        cidr = ",".join(node.pod_cidrs)
        if cidr in ("", self._pod_cidr):
            return False
        try:
            self._use_pod_cidr(cidr)
        except RuntimeUnavailable as e:
            log.warning("runtime did not take the addresses of pods", extra={"podCIDR": cidr, "error": str(e)})
        else:
            log.info("addresses of pods changed", extra={"podCIDR": cidr, "before": self._pod_cidr})
            self._pod_cidr = cidr
        return True

    def _status(self, old: NodeStatus) -> NodeStatus:
        if (text := node_facts.reboot(self._facts, old)) and not self._rebooted:
            self._rebooted = True
            self._record(Event(about_node(self._facts.name), WARNING, REASON_REBOOTED, text))
        new = node_facts.node_status(self._facts, old, self._errors(), self._wall(), self._found())
        return replace(new, **{name: getattr(old, name) for name in self._unknown})

    def _patch(self, old: Node, new: NodeStatus) -> None:
        labels = node_facts.required_labels(self._facts, old)
        body = status_patch(new, old.status, labels)
        answer = self._client.patch(paths.node_status(self._facts.name), body, content_type=STRATEGIC_MERGE_PATCH)
        with contextlib.suppress(*UNREADABLE):
            self._unknown |= node_facts.dropped(new, parse_node(answer).status)
        self._reported_at = self._monotonic()
        self._known = replace(old, labels={**old.labels, **labels}, status=new)
        before, after = node_facts.ready_status(old.status), node_facts.ready_status(new)
        if before != after:
            log.info("node readiness changed", extra={"node": self._facts.name, "ready": after})
            self._tell(REASON_READY if after == STATUS_TRUE else REASON_NOT_READY)
        for reason in node_facts.pressure_changes(old.status, new):
            self._tell(reason)

    def _tell_of_orders(self, node: Node) -> None:
        """Somebody has cordoned it, or ended that."""
        if node.unschedulable != self._unschedulable:
            self._unschedulable = node.unschedulable
            self._tell(REASON_NOT_SCHEDULABLE if node.unschedulable else REASON_SCHEDULABLE)

    def _tell(self, reason: str) -> None:
        text = f"Node {self._facts.name} status is now: {reason}"
        self._record(Event(about_node(self._facts.name), NORMAL, reason, text))

    def _get(self, query: Mapping[str, str] = MappingProxyType({})) -> Node:
        node = parse_node(self._client.get(paths.node(self._facts.name), query=query))
        self._known = node
        return node
