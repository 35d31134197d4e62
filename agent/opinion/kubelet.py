"""Looks after the kubelet of this node: its health port, its Lease while that is silent, what it says of its own node.

The port is asked every LOOK_S; the Lease is read every LEASE_S, by the node's own right to its own Lease. What is made
of it `silence` decides. The Node is watched, which costs a line in five minutes.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from agent.opinion import silence
from agent.opinion.verdict import Finding
from agent.probe.http import http_get
from agent.probe.outcome import HandlerError, HandlerResult
from agent.probe.targets import HttpRequest
from agent.probe.url import parse_url
from agent.wire.condition import REASON_KUBELET_SILENT, REASON_PLEG_UNHEALTHY
from agent.wire.lease import renew_time_of
from agent.wire.node import NodeSaid
from component.loop import Loop
from component.text import one_line
from kube import paths
from kube.contract import NAMESPACE_NODE_LEASE, STATUS_TRUE
from kube.errors import CredentialsInvalid, KubeError
from kube.objects import UNREADABLE

log = logging.getLogger(__name__)

LOOK_S = 2.0
PORT_DEADLINE_S = 1.5
LEASE_S = 4.0  # while the port is silent
LEASE_ALWAYS_S = 8.0  # where there is no port to ask
LEASE_DEADLINE_S = 3.0
STUCK_AFTER_S = 60.0  # the look-up of the server's name knows no deadline
PLEG = "PLEG is not healthy"  # of a kubelet that is not ready: pkg/kubelet/kubelet.go, skipped pod synchronization
TEXT_LIMIT_BYTES = 256


class Getter(Protocol):
    """The part of kube.client.Client that is used."""

    def get(self, path: str, *, deadline_s: float | None = None) -> bytes: ...
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
    """A Service. `health_url`: of the kubelet's health port, None where it has none. `on_change` is called in its
    thread whenever silence begins or ends."""

    name = "kubelet watch"

    def __init__(
        self,
        client: Getter,
        node_name: str,
        *,
        health_url: str | None,
        lease_limit_s: float,
        on_change: Callable[[], None],
        ask: Callable[[str], PortAnswer] = ask_port,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._lease = paths.lease(NAMESPACE_NODE_LEASE, node_name)
        self._url = health_url
        self._lease_limit_s = lease_limit_s
        self._on_change = on_change
        self._ask = ask
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._seen = silence.Seen()
        self._silent = False
        self._began: float | None = None  # monotonic, of the first look
        self._lease_due_at = monotonic()
        self._loop = Loop(
            "kubelet-watch", self.turn, stuck_after_s=STUCK_AFTER_S, unblock=client.close, monotonic=monotonic
        )
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def turn(self) -> float:
        """One look; returns the seconds until the next."""
        seen = self._seen
        began = self._monotonic()
        if self._url is not None:
            answer = self._ask(self._url)
            now = self._monotonic()
            said = one_line(answer.said, limit_bytes=TEXT_LIMIT_BYTES)
            seen = silence.port_answered(seen) if answer.well else silence.port_silent(seen, said, now)
        has_port = self._url is not None
        if silence.reads_lease(seen, has_port=has_port) and self._monotonic() >= self._lease_due_at:
            self._lease_due_at = self._monotonic() + (LEASE_S if has_port else LEASE_ALWAYS_S)
            seen = self._with_lease(seen)
        with self._lock:
            self._seen = seen
            self._began = began if self._began is None else self._began
        silent = self._is_silent()
        if silent is not self._silent:
            self._silent = silent
            log.log(
                logging.WARNING if silent else logging.INFO,
                "kubelet no longer reports" if silent else "kubelet reports again",
                extra={"said": seen.port_said},
            )
            self._on_change()
        return LOOK_S

    def silent(self) -> Finding | None:
        """The finding, while it is one."""
        if not self._is_silent():
            return None
        with self._lock:
            said = self._seen.port_said
        port = f"; its health port: {said}" if said else ""
        return Finding(REASON_KUBELET_SILENT, f"the kubelet has stopped renewing its Lease{port}")

    def known(self) -> bool:
        """Whether it has answered, or would have been found silent by now."""
        with self._lock:
            began, seen = self._began, self._seen
        if began is None:
            return False
        limit_s = self._lease_limit_s if self._url is None else silence.LEASE_UNMOVED_S
        answers = self._url is not None and seen.port_silent_since is None
        return answers or self._monotonic() - began >= limit_s + LEASE_ALWAYS_S

    def _is_silent(self) -> bool:
        with self._lock:
            seen = self._seen
        return silence.is_silent(
            seen, self._monotonic(), has_port=self._url is not None, lease_limit_s=self._lease_limit_s
        )

    def _with_lease(self, seen: silence.Seen) -> silence.Seen:
        try:
            renewed = renew_time_of(self._client.get(self._lease, deadline_s=LEASE_DEADLINE_S))
        except (KubeError, CredentialsInvalid, *UNREADABLE) as e:
            log.debug("Lease of the kubelet not read", extra={"cause": type(e).__name__, "error": str(e)})
            return silence.lease_unread(seen)
        return silence.lease_read(seen, renewed, self._monotonic())


def pleg_finding(ready: tuple[str, str]) -> Finding | None:
    """Of a Node whose kubelet says that it does not hear of its containers any more."""
    status, message = ready
    if status in ("", STATUS_TRUE) or PLEG not in message:
        return None
    return Finding(REASON_PLEG_UNHEALTHY, one_line(message, limit_bytes=TEXT_LIMIT_BYTES))
