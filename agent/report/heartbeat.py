"""The agent's heartbeat: a Lease named after the node, in the namespace of the health pod whose token writes it, one of
the first entry of node.healthPods that has any.

Renewed every period, up to a tenth earlier or later, so that 5,000 agents do not write together; after a failure again
after half a period, at the latest after a period, so nothing queues up while the API server is away. It goes with its
Node, which becomes its owner when it is made, or as soon as that is known. One whose Lease is silent is dead, or cannot
reach the API server; who reads it tells these apart.
"""

import logging
import random as random_module
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from agent.wire.lease import beat, has_owner, new_beat, parse_lease
from component.loop import Loop
from kube import paths
from kube.errors import AlreadyExists, CredentialsInvalid, Forbidden, Invalid, KubeError, NotFound
from kube.media_types import MERGE_PATCH
from kube.objects import UNREADABLE

log = logging.getLogger(__name__)

JITTER = 0.1
PERIODS_PER_DURATION = 4  # as the kubelet's: who reads it takes a quarter of the duration for the period
NO_WRITER_PAUSE_S = 1.0
STUCK_AFTER_S = 60.0  # two calls, and the look-up of a name, which knows no deadline


class LeaseWriter(Protocol):
    """The part of kube.client.Client that is used, with a token of a health pod."""

    def create(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes: ...
    def patch(self, path: str, body: bytes, *, content_type: str = ..., deadline_s: float | None = None) -> bytes: ...


class Writer(NamedTuple):
    namespace: str
    client: LeaseWriter


class Heartbeat:
    """A Service. `writer()`: by whose right it is written now, None while no health pod asks us to speak. `node_uid()`:
    of the Node, which owns the Lease; "" while it is not known. When it stops the Lease stays: it runs out."""

    name = "heartbeat"

    def __init__(
        self,
        node_name: str,
        writer: Callable[[], Writer | None],
        node_uid: Callable[[], str],
        *,
        period_s: float,
        first_pause_s: float = 0.0,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self._node_name = node_name
        self._writer = writer
        self._node_uid = node_uid
        self._period_s = period_s
        self._duration_s = max(1, round(period_s * PERIODS_PER_DURATION))
        self._wall = wall
        self._random = random
        self._failing = False
        self._owned: dict[str, bool] = {}  # path of the Lease -> whether it has an owner, or may be given none
        self.beats = self.errors = 0
        self._loop = Loop(
            "heartbeat", self.turn, stuck_after_s=STUCK_AFTER_S, first_pause_s=first_pause_s, monotonic=monotonic
        )
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def turn(self) -> float:
        """One beat; returns the seconds until the next."""
        writer = self._writer()
        if writer is None:
            return NO_WRITER_PAUSE_S
        try:
            self._beat(writer)
        except (KubeError, CredentialsInvalid) as e:
            self.errors += 1
            if not self._failing:  # one line an outage
                log.warning("heartbeat not written, will retry", extra={"cause": type(e).__name__, "error": str(e)})
            self._failing = True
            return self._period_s * (0.5 + 0.5 * self._random())
        if self._failing:
            log.info("heartbeat written again")
        self._failing = False
        self.beats += 1
        return self._period_s * (1 + JITTER * (2 * self._random() - 1))

    def _beat(self, writer: Writer) -> None:
        path = paths.lease(writer.namespace, self._node_name)
        owner_uid = "" if self._owned.get(path, True) else self._node_uid()
        try:
            try:
                self._patch(writer, path, owner_uid)
            except (Forbidden, Invalid):
                if not owner_uid:
                    raise
                self._owned[path] = True  # a beat matters more
                self._patch(writer, path, "")
        except NotFound:
            self._create(writer, path)

    def _patch(self, writer: Writer, path: str, owner_uid: str) -> None:
        body = beat(self._node_name, duration_s=self._duration_s, renew_time=self._wall(), owner_uid=owner_uid)
        reply = writer.client.patch(path, body, content_type=MERGE_PATCH, deadline_s=self._period_s)
        if not self._owned.get(path, False):
            try:
                self._owned[path] = has_owner(parse_lease(reply))
            except UNREADABLE:
                self._owned[path] = True

    def _create(self, writer: Writer, path: str) -> None:
        uid = self._node_uid()
        made = new_beat(self._node_name, writer.namespace, uid, duration_s=self._duration_s, renew_time=self._wall())
        self._owned.pop(path, None)
        try:
            writer.client.create(paths.leases(writer.namespace), made, deadline_s=self._period_s)
        except AlreadyExists:
            return  # made just now, by the agent that we replace
