"""The node's heartbeat: its Lease in kube-node-lease. Mirrors component-helpers apimachinery/lease/controller.go.

Renewed every quarter of its duration (+ up to 4 %), with the object of the last success and without reading it; a
conflict reads it again. It is made once its Node is there, which owns it; one without an owner gets it with the next
renewal, and is not renewed before its Node is there. Five tries without a pause, then a back-off of 0.2 s to 7 s.
"""

import logging
import random as random_module
import time
from collections.abc import Callable
from typing import Protocol

from agent.model import LeaseSpec, Node
from agent.node.outage import FAILURES, Outage
from agent.wire.lease import LeaseObject, has_owner, new_lease, parse_lease, renewed_lease
from agent.wire.node import parse_node
from component.backoff import Backoff
from component.loop import Loop
from kube import paths
from kube.contract import NAMESPACE_NODE_LEASE
from kube.errors import AlreadyExists, Conflict, KubeError, NotFound

log = logging.getLogger(__name__)

RENEW_FRACTION = 0.25
JITTER = 0.04
TRIES = 5
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 7.0
DEADLINE_S = 10.0  # of a request, at most
NO_NODE_PAUSE_S = 0.5  # the kubelet waits a whole period here
STUCK_AFTER_S = 60.0  # longer than the requests of one try


class _NoNodeError(Exception):
    """The Node is not registered yet."""


class LeaseClient(Protocol):
    """The part of kube.client.Client that is used."""

    def get(self, path: str, *, deadline_s: float | None = None) -> bytes: ...
    def create(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes: ...
    def replace(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes: ...


class LeaseKeeper:
    """A Service. When it stops the Lease stays as it is: it runs out by itself."""

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
        self._path, self._node_path = paths.lease(NAMESPACE_NODE_LEASE, node_name), paths.node(node_name)
        self._duration_s = duration_s
        self._wall = wall
        self._random = random
        self._latest: LeaseObject | None = None
        self._outage = Outage(
            failed="node lease not renewed",
            over="node lease renewal succeeded again",
            node=node_name,
            backoff=Backoff(first_s=FIRST_PAUSE_S, limit_s=min(LONGEST_PAUSE_S, self.period_s)),
            random=random,
        )
        self._loop = Loop("node-lease", self.turn, stuck_after_s=STUCK_AFTER_S, monotonic=monotonic)
        # A Service by its loop.
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    @property
    def period_s(self) -> float:
        return self._duration_s * RENEW_FRACTION

    def turn(self) -> float:
        """One renewal; returns the seconds until the next."""
        try:
            self.renew()
        except _NoNodeError:
            return NO_NODE_PAUSE_S  # a Lease that is made before its Node would never go with it
        except FAILURES as e:
            return self._outage.failed(e)
        self._outage.succeeded()
        return self.period_s * (1 + JITTER * self._random())

    def renew(self) -> None:
        """Makes the Lease or renews it, in up to five tries. Raises what the last one raised: one of FAILURES, or that
        its Node is not there."""
        for attempt in range(TRIES):
            self._loop.progressed()
            known = self._latest is not None
            try:
                self._renew_once()
                return
            except _NoNodeError:
                self._latest = None
                if not known:
                    raise  # else it may have got an owner since it was read
            except NotFound:
                self._latest = None
                if attempt == TRIES - 1:
                    raise
            except KubeError as e:
                if isinstance(e, Conflict):
                    self._latest = None
                if attempt == TRIES - 1 or self._loop.stopping:
                    raise

    def _renew_once(self) -> None:
        deadline_s = min(DEADLINE_S, self.period_s)
        if self._latest is None:
            try:
                self._latest = parse_lease(self._client.get(self._path, deadline_s=deadline_s))
            except NotFound:
                self._create(deadline_s)
                return
        node = None if has_owner(self._latest) else self._node(deadline_s)
        body = renewed_lease(self._latest, self._spec(), owner=node)
        self._latest = parse_lease(self._client.replace(self._path, body, deadline_s=deadline_s))

    def _create(self, deadline_s: float) -> None:
        path = paths.leases(NAMESPACE_NODE_LEASE)
        lease = new_lease(self._spec(), self._node(deadline_s))
        try:
            made = self._client.create(path, lease, deadline_s=deadline_s)
        except AlreadyExists:
            self._latest = None
            raise
        self._latest = parse_lease(made)

    def _node(self, deadline_s: float) -> Node:
        try:
            return parse_node(self._client.get(self._node_path, deadline_s=deadline_s))
        except NotFound as e:
            raise _NoNodeError from e

    def _spec(self) -> LeaseSpec:
        return LeaseSpec(holder_identity=self._node_name, duration_s=self._duration_s, renew_time=self._wall())
