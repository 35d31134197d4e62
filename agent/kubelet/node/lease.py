"""The node's heartbeat: its Lease in kube-node-lease. Mirrors component-helpers apimachinery/lease/controller.go.

Renewed every quarter of its duration (+ up to 4 %), with the object of the last success and without reading it: five
tries without a pause. Then, and after a conflict, the Lease is read again, or made: with a back-off of 0.2 s to 7 s
until that succeeds. Then five more tries, and the next renewal. The Lease is made once its Node is there, which owns
it; one without an owner gets it with the next renewal, and is not renewed before its Node is there.
"""

import random as random_module
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Protocol

from agent.kubelet.node.outage import FAILURES, Outage
from agent.wire.lease import LeaseObject, has_owner, new_lease, parse_lease, renewed_lease
from agent.wire.model import LeaseSpec, Node
from agent.wire.node import parse_node
from component.backoff import Backoff
from component.loop import Loop
from kube import paths
from kube.contract import NAMESPACE_NODE_LEASE
from kube.errors import Conflict, NotFound

RENEW_FRACTION = 0.25
JITTER = 0.04
TRIES = 5
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 7.0
DEADLINE_S = 10.0  # of a request, at most
_BACKOFF = Backoff(first_s=FIRST_PAUSE_S, limit_s=LONGEST_PAUSE_S)
NO_NODE_PAUSE_S = 0.5  # the kubelet waits a whole period here
STUCK_AFTER_S = 60.0  # longer than the requests of one try


_Pauses = Generator[float, None, None]
"""The seconds to wait before it goes on."""


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
        self._renewal: _Pauses | None = None
        self._outage = Outage(
            failed="node lease not renewed",
            over="node lease renewal succeeded again",
            node=node_name,
            backoff=_BACKOFF,
            random=random,
        )
        self._loop = Loop("node-lease", self.turn, stuck_after_s=STUCK_AFTER_S, monotonic=monotonic)
        # A Service by its loop.
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    @property
    def _deadline_s(self) -> float:
        return min(DEADLINE_S, self.period_s)

    @property
    def period_s(self) -> float:
        return self._duration_s * RENEW_FRACTION

    def turn(self) -> float:
        """Begins a renewal or goes on with it, up to where it waits; returns for how many seconds."""
        renewal, self._renewal = self._renewal or self._renewed(), None
        try:
            for pause_s in renewal:
                self._renewal = renewal
                return pause_s
        except _NoNodeError:
            return NO_NODE_PAUSE_S  # a Lease that is made before its Node would never go with it
        return self.period_s * (1 + JITTER * self._random())

    def _renewed(self) -> _Pauses:
        """sync. Raises _NoNodeError."""
        if self._latest is not None:
            with suppress(_NoNodeError):  # it may have got an owner since it was read
                if (yield from self._updated(self._latest)):
                    return
        self._latest = None
        self._latest, made = yield from self._ensured()
        if not made:
            yield from self._updated(self._latest)

    def _updated(self, base: LeaseObject) -> Generator[float, None, bool]:
        """retryUpdateLease. Raises _NoNodeError."""
        for _ in range(TRIES):
            if self._loop.stopping:
                return False
            self._loop.progressed()
            try:
                node = None if has_owner(base) else self._node()
                body = renewed_lease(base, self._spec(), owner=node)
                self._latest = parse_lease(self._client.replace(self._path, body, deadline_s=self._deadline_s))
            except Conflict as e:
                self._outage.failed(e)
                base, _ = yield from self._ensured()
            except FAILURES as e:
                self._outage.failed(e)
            else:
                self._outage.succeeded()
                return True
        return False

    def _ensured(self) -> Generator[float, None, tuple[LeaseObject, bool]]:
        """backoffEnsureLease: the Lease, and whether it was made. Raises _NoNodeError."""
        backoff = _BACKOFF
        while True:
            self._loop.progressed()
            try:
                return self._read_or_made()
            except FAILURES as e:
                self._outage.failed(e)
            pause_s, backoff = backoff.next(self._random)
            yield pause_s

    def _read_or_made(self) -> tuple[LeaseObject, bool]:
        with suppress(NotFound):
            return parse_lease(self._client.get(self._path, deadline_s=self._deadline_s)), False
        lease, path = new_lease(self._spec(), self._node()), paths.leases(NAMESPACE_NODE_LEASE)
        made = parse_lease(self._client.create(path, lease, deadline_s=self._deadline_s))
        self._outage.succeeded()
        return made, True

    def _node(self) -> Node:
        try:
            return parse_node(self._client.get(self._node_path, deadline_s=self._deadline_s))
        except NotFound as e:
            raise _NoNodeError from e

    def _spec(self) -> LeaseSpec:
        return LeaseSpec(holder_identity=self._node_name, duration_s=self._duration_s, renew_time=self._wall())
