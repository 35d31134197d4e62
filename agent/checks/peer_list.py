"""Which nodes have an agent, read of the API server every few minutes, without a watch.

They are in the EndpointSlices of a Service in front of the agents: at most 100 to a slice, with node and zone, ready or
not. An agent looks for the slice that it is in itself, page by page, and from then on reads that slice alone, with some
more where it is small. Cost of a cluster of 5,000 nodes, each asking twice in 300 s for a slice of 25 KB and the
namespace's NetworkPolicies of 2 KB: 33 requests and 0.45 MB a second in all. What was read last is kept in a file, so a
restarted agent need not wait for an API server.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import msgspec

from agent.checks.peer_policies import stopping_peers, stopping_services
from agent.checks.peers import Peer, peers_of
from agent.kernel.clocks import REAL, Clocks
from agent.wire.endpoint_slice import EndpointSlice
from agent.wire.network_policy import NetworkPolicy
from component.loop import Loop
from component.text import one_line
from kube.errors import CredentialsInvalid, Forbidden, KubeError, NotFound

log = logging.getLogger(__name__)

ENOUGH = 32  # peers; further slices are read until there are so many
PAGE = 4  # slices
AGAIN_S = 30.0  # at the earliest, and where it failed
SOON_S = 5.0  # at the earliest, where most peers are lost all at once
JITTER = 0.2
STUCK_AFTER_S = 120.0
COPY_LIMIT_BYTES = 2**20


class Source(Protocol):
    """The API server. Each raises KubeError, CredentialsInvalid."""

    def page(self, more: str) -> tuple[Sequence[EndpointSlice], str]:
        """Some slices of the Service, and where the next ones begin, "" at the end."""
        ...

    def slice(self, name: str) -> EndpointSlice: ...

    def policies(self) -> Sequence[NetworkPolicy]: ...

    def close(self) -> None: ...


class _Copy(msgspec.Struct):
    """What the file has. slices: names of those that are read."""

    slices: list[str]
    peers: list[Peer]


@dataclass(frozen=True, slots=True)
class Known:
    """peers: None before anything was read. read_at: monotonic, of the NetworkPolicies. forbidden: the API server does
    not let the agents read them, which is so on all nodes."""

    peers: Sequence[Peer] | None = None
    peers_denied: tuple[str, ...] = ()
    services_denied: tuple[str, ...] = ()
    read_at: float | None = None
    trouble: str = ""
    forbidden: bool = False


class PeerList:
    """`now` may be read by any thread. own: the node. labels, namespace, port: of the agents. copy: None for none."""

    def __init__(
        self,
        connect: Callable[[], Source],
        own: str,
        *,
        labels: dict[str, str],
        namespace: str,
        port: int,
        every_s: float,
        copy: Path | None = None,
        clocks: Clocks = REAL,
    ) -> None:
        self.now = Known()
        self._connect = connect
        self._source: Source | None = None
        self._own = own
        self._labels = labels
        self._namespace = namespace
        self._port = port
        self._every_s = every_s
        self._copy = copy
        self._monotonic, self._random = clocks.monotonic, clocks.random
        self._names: list[str] = []
        self._read_at = -AGAIN_S
        self._saved: _Copy | None = None
        self._wanted = False
        self._tried = threading.Event()
        self.loop = Loop("peer-list", self._turn, stuck_after_s=STUCK_AFTER_S, unblock=self._close)

    def start(self) -> None:
        """May be called in each run."""
        if self.now.peers is None and self._saved is None:
            self._restore()
        self.loop.start()

    def stop(self) -> None:
        self.loop.stop()

    def wait_first(self, limit_s: float) -> None:
        """Until it was read once, or could not be."""
        self._tried.wait(limit_s)

    def refresh(self, *, at_once: bool) -> None:
        """Peers may be gone, or a policy may be new. Not where it was read just now."""
        if self._monotonic() - self._read_at >= (SOON_S if at_once else AGAIN_S):
            self._wanted = True
            self.loop.wake()

    def _close(self) -> None:
        if self._source is not None:
            self._source.close()

    def _turn(self) -> float:
        try:
            return self._read()
        finally:
            self._tried.set()

    def _read(self) -> float:
        if not self._wanted and (left_s := self._read_at + AGAIN_S - self._monotonic()) > 0:
            return left_s
        self._wanted, self._read_at = False, self._monotonic()
        try:
            self._source = self._source or self._connect()
            policies = self._source.policies()
            self.now = self._with(self.now, policies)
            slices = self._known_slices() or self._all_slices()
        except (KubeError, CredentialsInvalid) as e:
            if one_line(e) != self.now.trouble:
                log.warning("list of peers not read, the last one holds", extra={"error": one_line(e)})
            self.now = replace(self.now, trouble=one_line(e), forbidden=isinstance(e, Forbidden))
            if isinstance(e, CredentialsInvalid):  # as of a health pod that was replaced: another one may read it
                self._close()
                self._source = None
            return AGAIN_S
        peers = peers_of(slices)
        self.now = replace(self.now, peers=peers, trouble="", forbidden=False)
        self._names = [one.metadata.name for one in slices]
        self._save(_Copy(self._names, peers))
        listed = any(peer.node == self._own for peer in peers)
        settled = 2 * sum(peer.ready for peer in peers) > len(peers)  # not so while agents are installed
        return self._every_s * (1 - JITTER * self._random()) if listed and settled else AGAIN_S

    def _with(self, known: Known, policies: Sequence[NetworkPolicy]) -> Known:
        return replace(
            known,
            peers_denied=stopping_peers(policies, self._labels, self._namespace, self._port),
            services_denied=stopping_services(policies, self._labels),
            read_at=self._monotonic(),
        )

    def _known_slices(self) -> list[EndpointSlice]:
        """Empty where one is gone, or this node is in none of them any more."""
        found: list[EndpointSlice] = []
        try:
            for name in self._names:
                found += [self._source.slice(name)] if self._source is not None else []
                self.loop.progressed()
        except NotFound:
            return []
        return found if any(self._is_in(one) for one in found) else []

    def _all_slices(self) -> list[EndpointSlice]:
        """Those with this node, and of the others as many as it takes to have enough peers."""
        own: list[EndpointSlice] = []
        others: list[EndpointSlice] = []
        more = ""
        while self._source is not None:
            page, more = self._source.page(more)
            self.loop.progressed()
            own += [one for one in page if self._is_in(one)]
            others += [one for one in page if not self._is_in(one)][: PAGE if len(others) < PAGE else 0]
            families = {one.address_type for one in (*own, *others)}
            if not more or (own and families == {one.address_type for one in own}):
                break
        while others and len(peers_of(own)) <= ENOUGH:
            own.append(others.pop(0))
        return own

    def _is_in(self, one: EndpointSlice) -> bool:
        return any(endpoint.node_name == self._own for endpoint in one.endpoints or ())

    def _restore(self) -> None:
        self._saved = _Copy([], [])
        if self._copy is None:
            return
        with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
            with self._copy.open("rb") as file:
                self._saved = msgspec.json.decode(file.read(COPY_LIMIT_BYTES), type=_Copy)
            self._names = self._saved.slices
            self.now = Known(self._saved.peers)

    def _save(self, copy: _Copy) -> None:
        if self._copy is None or copy == self._saved:
            return
        new = self._copy.with_name(f"{self._copy.name}.new")
        with contextlib.suppress(OSError):  # it is read anew after a restart
            new.write_bytes(msgspec.json.encode(copy))
            new.replace(self._copy)
            self._saved = copy
