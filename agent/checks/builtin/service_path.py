"""The built-in check `servicePath`: do packets of this node get to Services, and to other nodes?

Four things, all at once: TCP and TLS to the API server's Service address; the same straight to the API servers (where
`apiServers` are given); kube-proxy's own health (where `proxy` is given), and how long ago it brought its rules up to
date; and three `peers`, chosen by a hash ring so that each node is looked at by others: a connection, and a request
larger than a packet, none of which may be split on its way. A peer that refuses a connection has been reached. Where
most of the three are not, it may be that those are gone, or their rack, and up to six more are asked. Other nodes are
not asked whether they reach them: agents would have to trust one another, over the very network that is in doubt.

| what is seen | verdict |
|---|---|
| most of the peers, two at least, are not reached, and most of the further ones, two at least, neither | failed |
| the same where no further ones are known: the Service address is not reached either | failed |
| the same: each of these peers lets itself be connected to, then a packet of full size is lost | failed |
| the Service address is not reached, an API server is, or kube-proxy is not well | failed |
| this machine cannot send to the Service address | failed |
| kube-proxy is silent or not well; its rules are older than `proxyMaxAgeSeconds`, or it is gone for as long | failed |
| neither the Service address nor an API server is reached, but those refuse, or two peers are reached | shared |
| the Service address is not reached, and nothing tells whose fault that is; the only peer is not reached | unknown |
| peers, or an API server, are not reached, or kube-proxy has just gone, and that is all | warned |

A packet that is too large for some hop, whose complaint does not come back, shows as "connected, then silent". The way
back is the next run. kube-proxy answers 503 while its node is about to be deleted, also where it is well: releases from
1.28 on report that this is why. Where theirs does not report whether it is well, `/livez` is asked, too. `peers` may be
the same list on all nodes: a node leaves itself out. When the kernel reports that a default route came or went, or that
a link is down, the check runs at once. That counts as one failure, and the next one counts when the kernel has been
silent for 0.4 s.
"""

import socket
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Literal

from msgspec import Meta

from agent.checks import proxy_health
from agent.checks.rights import Rights
from agent.checks.state import CheckState, Finding
from agent.kernel.netlink import RouteWatch
from agent.probe.multiplex import READ, WRITE, Talk, Wait, connect, family_of, is_ours, no_way, talk_all
from agent.probe.targets import is_address, join_host_port
from agent.wire.setting_types import NonEmpty, Port
from component.settings import Section

DOC = (
    "the API server's Service address, kube-proxy and most of three other nodes are reached, with packets of full size"
)
RIGHTS = Rights(host_network=True)
PEERS, FURTHER = 3, 6
PATIENCE = 0.5  # of a run's time: then further peers are asked, where most of the first are not reached yet
USABLE = 0.9  # of the timeout: what is left is for the verdict
PADDING_BYTES = 16 * 2**10  # at most: a loopback's packets are larger than any network's
REPLY_BYTES = 64 * 2**10
REACHED, SILENT, STALLED, REFUSED, UNSENT = "reached", "silent", "connected, then silent", "refused", "cannot be sent"
AWAY = "just gone"  # a proxy that is being replaced: its rules are there, and not too old
_DONT_FRAGMENT = {socket.AF_INET: (socket.IPPROTO_IP, 10), socket.AF_INET6: (socket.IPPROTO_IPV6, 23)}  # MTU_DISCOVER
_ALWAYS = 2  # IP_PMTUDISC_DO

Kind = Literal["service", "apiServer", "proxy", "peer"]


class Settings(Section, frozen=True):
    """Addresses, never names. `node`: this node's own address or name, its place in the ring; empty: the hostname."""

    service: NonEmpty = "10.96.0.1"
    service_port: Port = 443
    api_servers: tuple[NonEmpty, ...] = ()
    api_port: Port = 6443
    proxy: str = ""
    proxy_port: Port = 10256
    proxy_max_age_seconds: Annotated[int, Meta(ge=1, description="a whole number, 1 or more")] = 120
    peers: tuple[NonEmpty, ...] = ()
    peer_port: Port = 10250
    peer_tls: bool = True
    node: str = ""

    def __post_init__(self) -> None:
        lists = [("apiServers", self.api_servers), ("peers", self.peers)]
        given = [("service", self.service), ("proxy", self.proxy)]
        given += [(f"{key}[{place}]", address) for key, found in lists for place, address in enumerate(found)]
        for key, address in given:
            if address and not is_address(address):
                raise ValueError(f"{key}: is {address[:64]!r}, allowed: an IP address")


@dataclass(frozen=True, slots=True)
class Place:
    kind: Kind
    address: str
    port: int

    def __str__(self) -> str:
        return f"{self.kind} {join_host_port(self.address, self.port)}"


@dataclass(frozen=True, slots=True)
class Way:
    """What was found on the way to a place. `said`: one of the words above, or what a proxy says that is not well."""

    to: Place
    said: str
    detail: str = ""

    @property
    def open(self) -> bool:
        """Packets get there and back. An address that refuses is that of a host; a Service that does leads nowhere."""
        return self.said == REACHED or (self.said == REFUSED and self.to.kind == "peer")

    def __str__(self) -> str:
        return f"{self.to}: {self.said}" + (f" ({self.detail})" if self.detail else "")


class Check:
    DOUBTS = True

    def __init__(self, settings: Settings, timeout_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        from agent.probe.tls import tls_context  # late, as ssl; and here, so that no look pays for it out of its time

        tls_context()
        self._routes = RouteWatch()
        self._limit_s = USABLE * timeout_s
        self._settings = settings
        self._monotonic = monotonic
        self._proxy_well_at: float | None = None

    def __call__(self) -> Finding:
        """PASSED, WARNED, FAILED with what this node does not reach, SHARED where that is the API servers' fault,
        UNKNOWN where it may be."""
        self._routes.taken()
        return judge([self._remembered(way) for way in look_all(self._settings, self._limit_s)])

    def _remembered(self, way: Way) -> Way:
        """A proxy that has gone, as each does while it is replaced, has left its rules there: they are as old as it is
        gone. One that hangs is another thing."""
        if way.to.kind != "proxy":
            return way
        now = self._monotonic()
        if way.open:
            self._proxy_well_at = now
        if way.said != REFUSED or self._proxy_well_at is None:
            return way
        gone_s = now - self._proxy_well_at
        return Way(way.to, AWAY, f"for {gone_s:.0f} s") if gone_s < self._settings.proxy_max_age_seconds else way

    def descriptor(self) -> int | None:
        return self._routes.descriptor()

    def close(self) -> None:
        self._routes.close()


def places(settings: Settings) -> list[Place]:
    found = [Place("service", settings.service, settings.service_port)]
    found += [Place("apiServer", address, settings.api_port) for address in dict.fromkeys(settings.api_servers)]
    found += [Place("proxy", settings.proxy, settings.proxy_port)] if settings.proxy else []
    ring = neighbours(settings.node or socket.gethostname(), settings.peers, len(settings.peers))
    others = islice((address for address in ring if not is_ours(address)), PEERS + FURTHER)
    return found + [Place("peer", address, settings.peer_port) for address in others]


def neighbours(node: str, peers: Sequence[str], count: int = PEERS) -> list[str]:
    """The next ones on a ring of hashes: a node that comes or goes changes little, and each is looked at by others."""
    ring = sorted(set(peers) - {node}, key=_hash)
    start = next((place for place, peer in enumerate(ring) if _hash(peer) > _hash(node)), 0)
    return [*ring[start:], *ring[:start]][:count]


def judge(ways: Sequence[Way]) -> Finding:
    def of(kind: Kind) -> list[Way]:
        return [way for way in ways if way.to.kind == kind]

    first, further = of("peer")[:PEERS], of("peer")[PEERS:]
    lost = [way for way in of("peer") if not way.open]
    proxy = [way for way in of("proxy") if not way.open]
    cut = [way for way in of("service") if not way.open]
    direct = of("apiServer")
    if further:
        most = _most(first) and _most(further)
    else:  # who lets itself be connected to is not gone
        most = _most(first) and (bool(cut) or all(way.said == STALLED for way in first))
    ours = (lost if most else []) + [way for way in proxy if way.said != AWAY]
    if any(way.said == UNSENT for way in cut) or (cut and (proxy or most or any(way.open for way in direct))):
        ours += cut
    if ours:
        return Finding(CheckState.FAILED, _lines(ours))
    if cut:
        seen = _lines([*cut, *direct, *lost])
        reached = [way for way in of("peer") if way.open]
        if direct and (len(reached) > 1 or all(way.said == REFUSED for way in direct)):
            return Finding(CheckState.SHARED, f"the API servers are away, not of this node alone: {seen}")
        return Finding(CheckState.UNKNOWN, f"perhaps not of this node: {seen}")
    if lost and len(of("peer")) == 1:
        return Finding(CheckState.UNKNOWN, f"perhaps the only peer's own fault: {_lines(lost)}")
    warned = lost + proxy + [way for way in direct if not way.open]
    if warned:
        return Finding(CheckState.WARNED, _lines(warned))
    return Finding(CheckState.PASSED, "; ".join(map(str, ways)))


def _most(ways: Sequence[Way]) -> bool:
    """Most of them, two at least, are not reached."""
    lost = sum(not way.open for way in ways)
    return lost > 1 and 2 * lost > len(ways)


def _lines(ways: Sequence[Way]) -> str:
    return "; ".join(map(str, ways))


def _hash(text: str) -> bytes:
    import hashlib  # late, as ssl: OpenSSL is an eighth of our memory

    return hashlib.sha256(text.encode()).digest()


# Conversations


def look_all(settings: Settings, within_s: float) -> list[Way]:
    """The ways to all places; to further peers only where most of the first are not reached after part of that time."""
    found, reached = places(settings), list[Way]()
    peers = [place for place in found if place.kind == "peer"]
    first, further = peers[:PEERS], peers[PEERS:]

    def near(place: Place) -> Talk[Way | None]:
        way = yield from _look(place, settings)
        reached.extend([way] if way.open else [])
        return way

    def far(place: Place) -> Talk[Way | None]:
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nothing:
                yield Wait(nothing, READ, PATIENCE * within_s)
        except TimeoutError:
            return None
        return (yield from _look(place, settings)) if 2 * len(reached) < len(first) else None

    talks = {
        place: near(place) if place in first else far(place) if place in further else _look(place, settings)
        for place in found
    }
    return [way for way in talk_all(talks, within_s).values() if way is not None]


def _look(place: Place, settings: Settings) -> Talk[Way]:
    import ssl

    connected = False
    try:
        family = family_of(place.address)
        with socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC) as link:
            link.setsockopt(*_DONT_FRAGMENT[socket.AddressFamily(family)], _ALWAYS)
            reaching = connect(link, (place.address, place.port))
            try:  # what is refused before a packet has left is this machine's own doing
                wait = next(reaching, None)
            except OSError as e:
                return Way(place, UNSENT if no_way(e) else REFUSED, e.strerror or str(e))
            if wait is not None:
                yield wait
                next(reaching, None)
            connected = True
            return (yield from _speak(link, place, settings))
    except TimeoutError:
        return Way(place, STALLED if connected else SILENT)
    except ConnectionRefusedError:
        return Way(place, REFUSED)
    except ssl.SSLError as e:
        return Way(place, REACHED if place.kind == "peer" else "no TLS", e.reason or str(e))
    except (ConnectionResetError, BrokenPipeError) as e:  # it was there to end it
        return Way(place, REACHED if place.kind == "peer" else "broken", e.strerror or str(e))
    except OSError as e:
        return Way(place, "broken" if connected else SILENT, e.strerror or str(e))


def _speak(link: socket.socket, place: Place, settings: Settings) -> Talk[Way]:
    match place.kind:
        case "proxy":
            yield from _send(link, _request("/healthz", place, 0))
            healthz = yield from _answer(link, REPLY_BYTES)
            livez = (yield from _livez(place)) if proxy_health.needs_livez(healthz) else b""
            return proxy_way(place, healthz, settings.proxy_max_age_seconds, livez)
        case "peer":
            size = min(PADDING_BYTES, 2 * link.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG))
            if settings.peer_tls:
                link = yield from _secured(link)
            with link:
                yield from _send(link, _request("/healthz", place, size))
                yield from _answer(link, 1)
        case _:
            (yield from _secured(link)).close()
    return Way(place, REACHED)


def _livez(place: Place) -> Generator[Wait, bool, bytes]:
    """Empty where no answer comes."""
    with socket.socket(
        family_of(place.address), socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
    ) as link:
        try:
            yield from connect(link, (place.address, place.port))
            yield from _send(link, _request("/livez", place, 0))
            return (yield from _answer(link, REPLY_BYTES))
        except OSError:  # also at the deadline
            return b""


def _secured(link: socket.socket) -> Generator[Wait, bool, socket.socket]:
    """Asked without verification: whether packets get there, not who answers."""
    import ssl

    from agent.probe.tls import tls_context

    wrapped = tls_context().wrap_socket(link, do_handshake_on_connect=False)
    try:
        while True:
            try:
                wrapped.do_handshake()
            except ssl.SSLWantReadError:
                yield Wait(wrapped, READ)
            except ssl.SSLWantWriteError:
                yield Wait(wrapped, WRITE)
            else:
                return wrapped
    except BaseException:
        wrapped.close()
        raise


def _send(link: socket.socket, data: bytes) -> Generator[Wait, bool, None]:
    import ssl

    while data:
        try:
            data = data[link.send(data) :]
        except (BlockingIOError, ssl.SSLWantWriteError):
            yield Wait(link, WRITE)


def _answer(link: socket.socket, limit_bytes: int) -> Generator[Wait, bool, bytes]:
    """Up to the limit or the end. An end without a word counts: it has come all the way."""
    import ssl

    received = b""
    while len(received) < limit_bytes:
        try:
            block = link.recv(REPLY_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError):
            yield Wait(link, READ)
            continue
        if not block:
            break
        received += block
    return received


def _request(path: str, place: Place, padding: int) -> bytes:
    host = join_host_port(place.address, place.port)
    head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: readygate-agent\r\nConnection: close\r\n"
    return f"{head}X-Padding: {'x' * padding}\r\n\r\n".encode() if padding else f"{head}\r\n".encode()


def proxy_way(place: Place, healthz: bytes, max_age_s: float, livez: bytes = b"") -> Way:
    """Of kube-proxy's answer to /healthz, and to /livez where that was asked too."""
    wrong, detail = proxy_health.read(healthz, max_age_s, livez)
    return Way(place, wrong or REACHED, detail)
