"""Registers the Node and keeps its status true. Mirrors pkg/kubelet/kubelet_node_status.go, v1.36.3.

Registration is tried after 100 ms, doubling to 7 s, until it succeeds; then the status is looked at every `update_s`
(+ up to 4 %) and written when it changed or was last written about five minutes ago. A Node that somebody deleted
is registered again.
"""

import logging
import random as random_module
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from agent.events.event import NORMAL, Event, Record, about_node, record_nothing
from agent.model import Node
from agent.node import facts as node_facts
from agent.node.facts import NodeFacts
from agent.node.outage import FAILURES, Outage
from agent.wire.node import labels_patch, parse_node, status_patch, write_node
from component.backoff import Backoff
from component.loop import Loop
from kube import contract, paths
from kube.errors import AlreadyExists, Forbidden, KubeError, NotFound
from kube.media_types import MERGE_PATCH, STRATEGIC_MERGE_PATCH

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 7.0
TRIES = 5
REPORT_S = 300.0  # nodeStatusReportFrequency
JITTER = 0.04
STUCK_AFTER_S = 60.0
REASON_READY, REASON_NOT_READY = "NodeReady", "NodeNotReady"


class NodeClient(Protocol):
    """The part of kube.client.Client that is used."""

    def get(self, path: str) -> bytes: ...
    def create(self, path: str, body: bytes) -> bytes: ...
    def patch(self, path: str, body: bytes, *, content_type: str) -> bytes: ...


class NodeReporter:
    """A Service. `errors` tells why the node is not ready; it must not wait.

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
        record: Record = record_nothing,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self._client = client
        self._facts = facts
        self._errors = errors
        self._update_s = update_s
        self._record = record
        self._wall = wall
        self._monotonic = monotonic
        self._random = random
        self._registered = threading.Event()
        self._next_report: float | None = None
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

    def turn(self) -> float:
        """Registers the Node if it is not, and reports; returns the seconds until the next turn."""
        try:
            if not self.registered:
                self.register()
            self.report()
        except FAILURES as e:
            pause_s = self._outage.failed(e)
            # Once it has reported, a failed report waits for the next regular one, as the kubelet's does.
            return self._update_s if self.registered and self._next_report is not None else pause_s
        self._outage.succeeded()
        return self._update_s * (1 + JITTER * self._random())

    def register(self) -> None:
        """Creates the Node, or puts the labels of an existing one right. Raises one of FAILURES."""
        facts = self._facts
        try:
            self._client.create(paths.nodes(), write_node(node_facts.new_node(facts, self._errors(), self._wall())))
            log.info("node registered", extra={"node": facts.name})
        except (AlreadyExists, Forbidden) as e:
            try:
                node = self._get()
            except NotFound:
                raise e from None  # it was not "exists": the create itself is forbidden
            labels = node_facts.missing_labels(facts, node)
            if labels:
                self._client.patch(paths.node(facts.name), labels_patch(labels), content_type=MERGE_PATCH)
            log.info("node was registered before", extra={"node": facts.name})
        self._registered.set()

    def report(self) -> bool:
        """Writes the status if it is due, in up to five tries; True if it was written. Raises one of FAILURES."""
        for attempt in range(TRIES):
            self._loop.progressed()
            try:
                return self._report_once()
            except NotFound:
                self._registered.clear()
                raise
            except KubeError:
                if attempt == TRIES - 1 or self._loop.stopping:
                    raise
        return False

    def _report_once(self) -> bool:
        old = self._get().status
        new = node_facts.node_status(self._facts, old, self._errors(), self._wall())
        changed = node_facts.changed(old, new)
        monotonic = self._monotonic()
        if not changed and self._next_report is not None and monotonic < self._next_report:
            return False
        self._client.patch(paths.node_status(self._facts.name), status_patch(new), content_type=STRATEGIC_MERGE_PATCH)
        # The first report, and one after a change, spreads the nodes of a cluster by +-50 %.
        spread = self._random() - 0.5 if changed or self._next_report is None else 0.0
        self._next_report = monotonic + REPORT_S * (1 + spread)
        before, after = node_facts.ready_status(old), node_facts.ready_status(new)
        if before != after:
            log.info("node readiness changed", extra={"node": self._facts.name, "ready": after})
            reason = REASON_READY if after == contract.STATUS_TRUE else REASON_NOT_READY
            text = f"Node {self._facts.name} status is now: {reason}"
            self._record(Event(about_node(self._facts.name), NORMAL, reason, text))
        return True

    def _get(self) -> Node:
        return parse_node(self._client.get(paths.node(self._facts.name)))
