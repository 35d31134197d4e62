"""Looks after the kubelet of this node: its health port, its Lease, what it says of its own node.

The port is asked every LOOK_S; the Lease is read as often as `silence` wants it, by the node's own right to its own
Lease, and `silence` decides what is made of both. The Node is watched, which costs a line in five minutes.
"""

import logging
import math
import random as random_module
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from agent.opinion import kubelet_liveness
from agent.opinion.verdict import KUBELET_LEASE_SILENT, Finding
from agent.probe.http import http_get
from agent.probe.result import HandlerError, HandlerResult
from agent.probe.targets import HttpRequest
from agent.probe.url import parse_url
from agent.wire.condition import REASON_KUBELET_SILENT, REASON_PLEG_UNHEALTHY
from agent.wire.lease import renew_time_of
from agent.wire.node import NodeSaid
from component.loop import Loop
from component.text import one_line
from kube import paths
from kube.contract import NAMESPACE_NODE_LEASE, STATUS_TRUE
from kube.errors import CredentialsInvalid, Forbidden, KubeError, NotFound
from kube.objects import UNREADABLE

log = logging.getLogger(__name__)

LOOK_S = 2.0
PORT_DEADLINE_S = 1.5
LEASE_DEADLINE_S = 3.0
STUCK_AFTER_S = 60.0  # the look-up of the server's name knows no deadline
PLEG = "PLEG is not healthy"  # of a kubelet that is not ready: pkg/kubelet/kubelet.go, skipped pod synchronization
TEXT_LIMIT_BYTES = 256


class Getter(Protocol):
    """The part of kube.client.Client that is used."""

    def get(self, path: str, *, deadline_s: float | None = None, query: Mapping[str, str] = ...) -> bytes: ...
    def close(self) -> None: ...


class PortAnswer(NamedTuple):
    well: bool
    said: str


def ask_port(url: str) -> PortAnswer:
    """Asks a health port on loopback."""
    try:
        outcome = http_get(HttpRequest(parse_url(url), {"User-Agent": ("readygate-agent",)}, ""), PORT_DEADLINE_S)
    except HandlerError as e:
        return PortAnswer(well=False, said=str(e))
    return PortAnswer(outcome.result is HandlerResult.SUCCESS, outcome.output)


class NodeTable:
    """A store of kube.reflector: what the kubelet says of its own node."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self.ready = ("", "")
        self.uid = ""

    def replace(self, items: Sequence[NodeSaid]) -> None:
        self._take(items[0] if items else None)

    def upsert(self, item: NodeSaid) -> None:
        self._take(item)

    def remove(self, item: NodeSaid) -> None:  # noqa: ARG002 - there is but one
        self._take(None)

    def _take(self, item: NodeSaid | None) -> None:
        self.ready = ("", "") if item is None else item.ready
        self.uid = "" if item is None else item.metadata.uid
        self._on_change()


class KubeletWatch:
    """A Service. `health_url`: of the kubelet's health port, None where it has none. `not_before`: of the first reading
    of the Lease, monotonic. `on_change` is called in its thread whenever what is found begins or ends."""

    name = "kubelet watch"

    def __init__(
        self,
        client: Getter,
        node_name: str,
        *,
        health_url: str | None,
        lease_limit_s: float,
        on_change: Callable[[], None],
        not_before: float = -math.inf,
        ask: Callable[[str], PortAnswer] = ask_port,
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self._client = client
        self._lease = paths.lease(NAMESPACE_NODE_LEASE, node_name)
        self._url = health_url
        self._has_port = health_url is not None
        self._lease_limit_s = lease_limit_s
        self._on_change = on_change
        self._ask = ask
        self._monotonic = monotonic
        self._random = random
        self._lock = threading.Lock()
        self._seen = kubelet_liveness.Seen()
        self._began: float | None = None  # monotonic, of the first look
        self._refused = False  # the last reading of the Lease: there is none for us
        self._not_before = not_before
        self._lease_due_at = max(monotonic(), not_before)
        self._loop = Loop(
            "kubelet-watch", self.turn, stuck_after_s=STUCK_AFTER_S, unblock=client.close, monotonic=monotonic
        )
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def turn(self) -> float:
        """One look; returns the seconds until the next."""
        before, began = self._seen, self._monotonic()
        seen = before
        if self._url is not None:
            answer = self._ask(self._url)
            now = self._monotonic()
            said = one_line(answer.said, limit_bytes=TEXT_LIMIT_BYTES)
            seen = (
                kubelet_liveness.port_answered(seen) if answer.well else kubelet_liveness.port_silent(seen, said, now)
            )
            if not answer.well and before.port_silent_since is None:
                self._lease_due_at = max(now, self._not_before)
        if self._monotonic() >= self._lease_due_at:
            read_at = self._monotonic()
            seen = self._with_lease(seen)
            self._lease_due_at = read_at + kubelet_liveness.lease_pause_s(
                seen, has_port=self._has_port, random=self._random()
            )
        seen = kubelet_liveness.latched(
            seen, self._monotonic(), has_port=self._has_port, lease_limit_s=self._lease_limit_s
        )
        with self._lock:
            self._seen = seen
            self._began = began if self._began is None else self._began
        self._tell(before, seen)
        return LOOK_S

    def silent(self) -> Finding | None:
        """The finding, while there is one."""
        with self._lock:
            seen = self._seen
        if seen.silent:
            port = f"; its health port: {seen.port_said}" if seen.port_said else ""
            return Finding(REASON_KUBELET_SILENT, f"the kubelet has stopped renewing its Lease{port}")
        if seen.lease_silent:
            return Finding(
                KUBELET_LEASE_SILENT, "the kubelet has stopped renewing its Lease, and its health port answers"
            )
        return None

    def known(self) -> bool:
        """Whether it has been heard, or found silent; or has had its time where its Lease is refused to us, so that
        neither will ever be."""
        with self._lock:
            began, seen, refused = self._began, self._seen, self._refused
        if began is None:
            return False
        given_up = refused and self._monotonic() - began >= self._lease_limit_s
        return given_up or kubelet_liveness.is_known(seen, has_port=self._has_port)

    def _tell(self, before: kubelet_liveness.Seen, seen: kubelet_liveness.Seen) -> None:
        if (seen.silent, seen.lease_silent) == (before.silent, before.lease_silent):
            return
        if seen.silent is not before.silent:
            log.log(
                logging.WARNING if seen.silent else logging.INFO,
                "kubelet no longer reports" if seen.silent else "kubelet reports again",
                extra={"said": seen.port_said},
            )
        self._on_change()

    def _with_lease(self, seen: kubelet_liveness.Seen) -> kubelet_liveness.Seen:
        query = paths.FROM_MEMORY if kubelet_liveness.all_seems_well(seen, has_port=self._has_port) else {}
        try:
            renewed = renew_time_of(self._client.get(self._lease, deadline_s=LEASE_DEADLINE_S, query=query))
        except (KubeError, CredentialsInvalid, *UNREADABLE) as e:
            log.debug("Lease of the kubelet not read", extra={"cause": type(e).__name__, "error": str(e)})
            self._refused = isinstance(e, NotFound | Forbidden)
            return kubelet_liveness.lease_unread(seen)
        self._refused = False
        return kubelet_liveness.lease_read(seen, renewed, self._monotonic())


def pleg_finding(ready: tuple[str, str]) -> Finding | None:
    """Of a Node whose kubelet says that it does not hear of its containers any more."""
    status, message = ready
    if status in ("", STATUS_TRUE) or PLEG not in message:
        return None
    return Finding(REASON_PLEG_UNHEALTHY, one_line(message, limit_bytes=TEXT_LIMIT_BYTES))
