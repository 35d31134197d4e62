"""The node's heartbeat: its Lease in kube-node-lease. Mirrors component-helpers apimachinery/lease/controller.go.

Renewed every quarter of its duration (+ up to 4 %), with the object of the last success and without reading it; a
conflict reads it again. Five tries without a pause; a Lease that is not there is made, with back-off (0.2 s to 7 s).
"""

import json
import logging
import random as random_module
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from kube import paths
from kube.contract import NAMESPACE_NODE_LEASE
from kube.errors import AlreadyExists, Conflict, CredentialsInvalid, KubeError, NotFound
from kube.times import format_micro_time

log = logging.getLogger(__name__)

Json = dict[str, Any]

RENEW_FRACTION = 0.25
JITTER = 0.04
TRIES = 5
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 7.0
STUCK_AFTER_S = 60.0


class LeaseClient(Protocol):
    """The part of kube.client.Client that is used."""

    def get(self, path: str, *, deadline_s: float | None = None) -> bytes: ...
    def create(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes: ...
    def replace(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes: ...


class LeaseKeeper:
    """A Service."""

    name = "node lease"

    def __init__(
        self,
        client: LeaseClient,
        node_name: str,
        *,
        duration_s: int,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self._client = client
        self._node_name = node_name
        self._duration_s = duration_s
        self._wall = wall
        self._monotonic = monotonic
        self._random = random
        self._latest: Json | None = None
        self._failing = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._last_turn = monotonic()

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="node-lease", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """The Lease stays as it is: it runs out by itself."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=1.0)

    def healthy(self, monotonic: float) -> bool:
        alive = self._thread is not None and self._thread.is_alive()
        return alive and monotonic - self._last_turn < self._duration_s + STUCK_AFTER_S

    @property
    def period_s(self) -> float:
        return self._duration_s * RENEW_FRACTION

    def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            self._last_turn = self._monotonic()
            try:
                self.renew()
                pause_s = self.period_s * (1 + JITTER * self._random())
                if self._failing:
                    log.info("node lease is renewed again", extra={"node": self._node_name})
                self._failing = False
            except Exception as e:
                if not isinstance(e, KubeError | CredentialsInvalid):
                    log.exception("node lease failed")
                if not self._failing:
                    log.warning("node lease not renewed", extra={"node": self._node_name, "cause": str(e)})
                self._failing = True
                pause_s = min(LONGEST_PAUSE_S, self.period_s, max(FIRST_PAUSE_S, pause_s * 2))
            if self._stop.wait(pause_s):
                return

    def renew(self) -> None:
        """Makes the Lease or renews it. Raises KubeError after the last try."""
        for attempt in range(TRIES):
            try:
                self._renew_once()
                return
            except NotFound:
                self._latest = None
                if attempt == TRIES - 1:
                    raise
            except KubeError as e:
                if isinstance(e, Conflict):
                    self._latest = None
                if attempt == TRIES - 1 or self._stop.is_set():
                    raise

    def _renew_once(self) -> None:
        deadline_s = min(10.0, self.period_s)
        path = paths.lease(NAMESPACE_NODE_LEASE, self._node_name)
        if self._latest is None:
            try:
                self._latest = _object(self._client.get(path, deadline_s=deadline_s))
            except NotFound:
                self._create(deadline_s)
                return
        wanted = {**self._latest, "spec": {**(self._latest.get("spec") or {}), **self._spec()}}
        self._latest = _object(self._client.replace(path, json.dumps(wanted).encode(), deadline_s=deadline_s))

    def _create(self, deadline_s: float) -> None:
        metadata: Json = {"name": self._node_name, "namespace": NAMESPACE_NODE_LEASE}
        try:
            node = _object(self._client.get(paths.node(self._node_name), deadline_s=deadline_s))
            uid = node.get("metadata", {}).get("uid", "")
            # The Lease goes with its Node.
            metadata["ownerReferences"] = [
                {"apiVersion": "v1", "kind": "Node", "name": self._node_name, "uid": uid},
            ]
        except NotFound:
            log.info("node lease made before its node", extra={"node": self._node_name})
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": self._spec(),
        }
        try:
            made = self._client.create(
                paths.leases(NAMESPACE_NODE_LEASE), json.dumps(lease).encode(), deadline_s=deadline_s
            )
        except AlreadyExists:
            self._latest = None
            raise
        self._latest = _object(made)

    def _spec(self) -> Json:
        return {
            "holderIdentity": self._node_name,
            "leaseDurationSeconds": self._duration_s,
            "renewTime": format_micro_time(self._wall()),
        }


def _object(raw: bytes) -> Json:
    value: Any = json.loads(raw)
    return value if isinstance(value, dict) else {}
