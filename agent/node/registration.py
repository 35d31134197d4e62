"""Registers the Node and keeps its status true. Mirrors pkg/kubelet/kubelet_node_status.go, v1.36.3.

Registration is tried after 100 ms, doubling to 7 s, until it succeeds; then the status is looked at every `update_s`
(+ up to 4 %) and written when it changed or was last written about five minutes ago. A Node that somebody deleted
is registered again.
"""

import json
import logging
import random as random_module
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from agent.node import facts as node_facts
from agent.node.facts import Json, NodeFacts
from kube import paths
from kube.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from kube.errors import AlreadyExists, CredentialsInvalid, Forbidden, KubeError, NotFound

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 7.0
TRIES = 5
REPORT_S = 300.0  # nodeStatusReportFrequency
JITTER = 0.04
STUCK_AFTER_S = 60.0


class NodeClient(Protocol):
    """The part of kube.client.Client that is used."""

    def get(self, path: str) -> bytes: ...
    def create(self, path: str, body: bytes) -> bytes: ...
    def patch(self, path: str, body: bytes, *, content_type: str) -> bytes: ...


class NodeReporter:
    """A Service. `errors` tells why the node is not ready; it must not wait."""

    name = "node status"

    def __init__(
        self,
        client: NodeClient,
        facts: NodeFacts,
        errors: Callable[[], Sequence[str]],
        *,
        update_s: float,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self._client = client
        self._facts = facts
        self._errors = errors
        self._update_s = update_s
        self._wall = wall
        self._monotonic = monotonic
        self._random = random
        self._stop = threading.Event()
        self._registered = threading.Event()
        self._thread: threading.Thread | None = None
        self._next_report: float | None = None
        self._failing = False
        self._last_turn = monotonic()

    @property
    def registered(self) -> bool:
        return self._registered.is_set()

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="node-status", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=1.0)

    def healthy(self, monotonic: float) -> bool:
        """Alive and progressing; an API server that is away does not make it unhealthy."""
        alive = self._thread is not None and self._thread.is_alive()
        return alive and monotonic - self._last_turn < self._update_s * (1 + JITTER) + STUCK_AFTER_S

    def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._stop.wait(pause_s):
            self._last_turn = self._monotonic()
            try:
                if not self.registered:
                    self.register()
                self.report()
                pause_s = self._update_s * (1 + JITTER * self._random())
                if self._failing:
                    log.info("node status is written again", extra={"node": self._facts.name})
                self._failing = False
            except Exception as e:
                if not isinstance(e, KubeError | CredentialsInvalid):
                    log.exception("node status failed")
                if not self._failing:
                    log.warning("node status not written", extra={"node": self._facts.name, "cause": str(e)})
                self._failing = True
                limit_s = self._update_s if self.registered else LONGEST_PAUSE_S
                pause_s = min(limit_s, max(FIRST_PAUSE_S, pause_s * 2))

    def register(self) -> None:
        """Creates the Node, or puts the labels of an existing one right. Raises KubeError."""
        facts = self._facts
        body = node_facts.node_object(facts, self._errors(), self._wall())
        try:
            self._client.create(paths.nodes(), json.dumps(body).encode())
            log.info("node registered", extra={"node": facts.name})
        except (AlreadyExists, Forbidden) as e:
            try:
                node = self._get()
            except NotFound:
                raise e from None  # it was not "exists": the create itself is forbidden
            labels = node_facts.missing_labels(facts, node)
            if labels:
                patch = json.dumps({"metadata": {"labels": labels}}).encode()
                self._client.patch(paths.node(facts.name), patch, content_type=MERGE_PATCH)
            log.info("node was registered before", extra={"node": facts.name})
        self._registered.set()

    def report(self) -> bool:
        """Writes the status if it is due, in up to five tries; True if it was written. Raises KubeError."""
        for attempt in range(TRIES):
            self._last_turn = self._monotonic()
            try:
                return self._report_once()
            except NotFound:
                self._registered.clear()
                raise
            except KubeError:
                if attempt == TRIES - 1 or self._stop.is_set():
                    raise
        return False

    def _report_once(self) -> bool:
        old = self._get().get("status") or {}
        new = node_facts.node_status(self._facts, old, self._errors(), self._wall())
        changed = node_facts.changed(old, new)
        monotonic = self._monotonic()
        if not changed and self._next_report is not None and monotonic < self._next_report:
            return False
        body = json.dumps({"status": new}).encode()
        self._client.patch(paths.node_status(self._facts.name), body, content_type=STRATEGIC_MERGE_PATCH)
        # The first report, and one after a change, spreads the nodes of a cluster by +-50 %.
        spread = self._random() - 0.5 if changed or self._next_report is None else 0.0
        self._next_report = monotonic + REPORT_S * (1 + spread)
        before, after = node_facts.ready_status(old), node_facts.ready_status(new)
        if before != after:
            log.info("node readiness changed", extra={"node": self._facts.name, "ready": after})
        return True

    def _get(self) -> Json:
        node: Any = json.loads(self._client.get(paths.node(self._facts.name)))
        return node if isinstance(node, dict) else {}
