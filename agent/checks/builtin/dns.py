"""The built-in check `dns`: is a name answered, on each way that pods of this node have to it?

Three legs: the cache on this node, the Service's address, and each server behind it, by UDP and by TCP. All are asked
at once, over sockets of our own: the resolver of the C library knows neither a deadline nor which server it asked. What
is wrong is put down to this node only where another leg shows that the servers themselves are well:

| leg | is not heard | says SERVFAIL or the like |
|---|---|---|
| node-local | failed: it runs here | failed where another leg has an answer, else shared or unknown |
| Service | failed where a server behind it is heard, else unknown | shared |
| each server | a warning | a warning; shared where no way has an answer |

Shared: the way there and back is good, the servers answer, and with an error; so it is for all nodes, and closes none.

What is asked for, unless `type` says so, is the record of the family that the Service's address is of: in a cluster of
IPv6 alone its own names have no other.

With `service: auto` the server is that of the agent's own resolv.conf, as each pod has it, and the name is the API
server's in the domain of that file. A link-local address there is that of a node-local cache. In a pod whose file is
the host's there is no cluster DNS to ask: not applicable.

What this machine itself cannot send, for want of a route, has failed; so has a node-local cache whose address was one
of this machine's and is no more: nobody waits for its answer. The way back is the next run with an answer. The kernel
tells of a default route that comes or goes and of a link that is down, and the check runs at once.
"""

import ipaddress
import random
import re
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from agent.checks.rights import NO_RIGHTS
from agent.checks.state import CheckState, Finding
from agent.checks.surroundings import Surroundings, dns_of
from agent.kernel.netlink import RouteWatch
from agent.probe.dns_message import ANSWERED, query_of, said_in
from agent.probe.multiplex import READ, Talk, Wait, connect, family_of, is_ours, no_way, talk_all
from agent.probe.targets import join_host_port
from agent.wire.setting_types import NonEmpty, Port
from component.settings import Section

DOC = (
    "a name is answered by the node-local cache, the Service's address and the servers behind it, by UDP and TCP; what "
    "is the servers' own fault is shared, what may be it unknown"
)
RIGHTS = NO_RIGHTS
USABLE = 0.9  # of the timeout: what is left is for the verdict
AGAIN = 1 / 3  # of that: then a datagram that may have been lost is sent once more
SILENT, REFUSED, BROKEN, UNSENT = "silent", "refused", "no DNS message", "cannot be sent"
AUTO = "auto"
NAME = "kubernetes.default.svc.cluster.local"
NO_CLUSTER_DNS = "the agent's resolv.conf names no DNS of the cluster: it has no search domain svc.DOMAIN with a server"
NOT_OURS = "no link of this machine has that address any more"
_NAME = re.compile(r"(?=.{1,253}\Z)[-_a-z0-9]{1,63}(\.[-_a-z0-9]{1,63})*", re.IGNORECASE)


class Leg(StrEnum):
    LOCAL = "node-local"
    SERVICE = "Service"
    SERVER = "server"


Protocol = Literal["udp", "tcp"]
RecordType = Literal["A", "AAAA"]


class Settings(Section, frozen=True):
    """Addresses, never names: those would have to be looked up. `name` is taken as absolute. `type` None: AAAA where
    the Service's address is one of IPv6, or where there is none what is asked first. `service` auto: as the pod has
    it."""

    name: NonEmpty = NAME
    type: RecordType | None = None
    node_local: str = ""
    service: str = ""
    servers: tuple[NonEmpty, ...] = ()
    port: Port = 53
    protocols: Annotated[tuple[Protocol, ...], Meta(min_length=1, description="a list of udp, tcp")] = ("udp", "tcp")

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name.removesuffix(".")):
            raise ValueError(f"name: is {self.name[:64]!r}, allowed: a DNS name")
        if not _ways(self):
            raise ValueError("dns: asks nobody, allowed: one of nodeLocal, service, servers")
        for key, address in (("nodeLocal", self.node_local), ("service", self.service), *enumerate(self.servers)):
            if address and not _is_ip(address) and (key, address) != ("service", AUTO):
                place = key if isinstance(key, str) else f"servers[{key}]"
                raise ValueError(f"{place}: is {address[:64]!r}, allowed: an IP address")


@dataclass(frozen=True, slots=True)
class Way:
    leg: Leg
    address: str
    protocol: Protocol

    def __str__(self) -> str:
        return f"{self.leg} {self.address} {self.protocol}"


@dataclass(frozen=True, slots=True)
class Reply:
    """`said`: one of the words above, or the server's rcode. `detail`: free text."""

    way: Way
    said: str
    seconds: float = 0.0
    detail: str = ""

    @property
    def good(self) -> bool:
        return self.said == ANSWERED

    @property
    def heard(self) -> bool:
        """The server has spoken, whatever it said."""
        return self.said not in (SILENT, REFUSED, BROKEN, UNSENT)

    def __str__(self) -> str:
        return f"{self.way}: {self.said}" + (f" ({self.detail})" if self.detail else "")


class Check:
    DOUBTS = True

    def __init__(self, settings: Settings, timeout_s: float) -> None:
        self._routes = RouteWatch()
        self._settings = settings
        self._limit_s = USABLE * timeout_s
        self._had_it = False

    def placed(self, around: Surroundings) -> "Check":
        if self._settings.service == AUTO:
            api_server = around.service[0] if around.service is not None else ""
            self._settings = as_the_pod_has_it(self._settings, around.resolv_conf, api_server)
        return self

    def __call__(self) -> Finding:
        """PASSED, FAILED with the legs that this node has broken, SHARED where the servers are at fault, UNKNOWN where
        they may be, NOT_APPLICABLE without a DNS of the cluster."""
        self._routes.taken()
        settings, limit_s = self._settings, self._limit_s
        if settings.service == AUTO:
            return Finding(CheckState.NOT_APPLICABLE, NO_CLUSTER_DNS)
        ways = _ways(settings)
        gone = [
            Reply(way, UNSENT, detail=NOT_OURS) for way in ways if way.leg is Leg.LOCAL and self._has_lost(way.address)
        ]
        talks = {way: _ask(way, settings, limit_s) for way in ways if not gone or way.leg is not Leg.LOCAL}
        return judge([*gone, *talk_all(talks, limit_s).values()])

    def _has_lost(self, address: str) -> bool:
        """An address that this machine had."""
        has_it = is_ours(address)
        self._had_it = self._had_it or has_it
        return self._had_it and not has_it

    def descriptor(self) -> int | None:
        return self._routes.descriptor()

    def close(self) -> None:
        self._routes.close()


def as_the_pod_has_it(settings: Settings, resolv_conf: str, api_server: str) -> Settings:
    """With the addresses that are in a pod's resolv.conf; as it was where that names no DNS of the cluster.
    api_server: the address of its Service, "" where it is unknown: the name has a record of that family."""
    server, domain = dns_of(resolv_conf)
    if not server or not domain:
        return settings
    address = ipaddress.ip_address(server.partition("%")[0])
    return msgspec.structs.replace(
        settings,
        service="" if address.is_link_local else server,
        node_local=server if address.is_link_local else settings.node_local,
        name=f"kubernetes.default.{domain}" if settings.name == NAME else settings.name,
        type=settings.type or (("AAAA" if ":" in api_server else "A") if api_server else None),
    )


def judge(replies: Sequence[Reply]) -> Finding:
    bad = [reply for reply in replies if not reply.good]
    if not bad:
        slowest_s = max(reply.seconds for reply in replies)
        return Finding(CheckState.PASSED, f"answered on {len(replies)} ways, the slowest in {1000 * slowest_s:.0f} ms")
    ours = [reply for reply in bad if _of_this_node(reply, replies)]
    if ours:
        return Finding(CheckState.FAILED, _lines(ours))
    if all(reply.way.leg is Leg.SERVER for reply in bad) and len(bad) < len(replies):
        return Finding(CheckState.WARNED, f"answered, but {_lines(bad)}")
    shared = _of_the_servers(bad, replies)
    state = CheckState.SHARED if shared else CheckState.UNKNOWN
    if len({reply.said for reply in replies}) == 1:
        return Finding(
            state, f"all {len(replies)} ways: {bad[0].said}" + ("; not of this node alone" if shared else "")
        )
    return Finding(state, f"{'the' if shared else 'perhaps the'} servers' own fault: {_lines(bad)}")


def _of_the_servers(bad: Sequence[Reply], replies: Sequence[Reply]) -> bool:
    """Whether this node's way to them is proven: they were heard beyond it, and no leg but a server's was silent."""
    beyond = [reply for reply in replies if reply.way.leg is not Leg.LOCAL]
    silent = [reply for reply in bad if not reply.heard and reply.way.leg is not Leg.SERVER]
    return any(reply.heard for reply in beyond) and not silent


def _of_this_node(reply: Reply, replies: Sequence[Reply]) -> bool:
    others = [other for other in replies if other.way.protocol == reply.way.protocol and other is not reply]
    match reply.way.leg:
        case Leg.LOCAL:
            return not reply.heard or any(other.good for other in others)
        case Leg.SERVICE:
            servers = (other for other in others if other.way.leg is Leg.SERVER)
            return reply.said == UNSENT or (not reply.heard and any(server.heard for server in servers))
        case _:
            return False


def _lines(replies: Sequence[Reply]) -> str:
    return "; ".join(map(str, replies))


def _ways(settings: Settings) -> list[Way]:
    legs = [(Leg.LOCAL, settings.node_local), (Leg.SERVICE, settings.service)]
    legs += [(Leg.SERVER, address) for address in settings.servers]
    return [Way(leg, address, protocol) for leg, address in legs if address for protocol in settings.protocols]


def record_type(settings: Settings) -> RecordType:
    """A cluster's own names have records of the family that its Services have."""
    first = next(address for address in (settings.service, settings.node_local, *settings.servers) if address)
    return settings.type or ("AAAA" if ":" in first else "A")


def _is_ip(address: str) -> bool:
    try:
        return bool(ipaddress.ip_address(address))
    except ValueError:
        return False


# Conversations


def _ask(way: Way, settings: Settings, limit_s: float) -> Talk[Reply]:
    began = time.monotonic()
    query = query_of(settings.name, record_type(settings), random.getrandbits(16))
    kind = socket.SOCK_DGRAM if way.protocol == "udp" else socket.SOCK_STREAM
    detail = ""
    try:
        with socket.socket(family_of(way.address), kind | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC) as link:
            reached = connect(link, (way.address, settings.port))
            try:  # what is refused before a packet has left is this machine's own doing
                wait = next(reached, None)
                if kind == socket.SOCK_DGRAM:
                    link.send(query)
            except OSError as e:
                return Reply(way, UNSENT if no_way(e) else REFUSED, detail=e.strerror or str(e))
            if wait is not None:
                yield wait
                next(reached, None)
            said = yield from (_by_udp if kind == socket.SOCK_DGRAM else _by_tcp)(link, query, AGAIN * limit_s)
    except TimeoutError:
        said = SILENT
    except ConnectionRefusedError:
        said, detail = REFUSED, f"nobody listens at {join_host_port(way.address, settings.port)}"
    except OSError as e:
        said, detail = SILENT, e.strerror or str(e)
    return Reply(way, said, time.monotonic() - began, detail)


def _by_udp(link: socket.socket, query: bytes, again_s: float) -> Talk[str]:
    """Datagrams that do not answer the question are passed over, as they may be late ones of others."""
    garbage, sent_again = False, False
    while True:
        try:
            ready = yield Wait(link, READ, None if sent_again else again_s)
        except TimeoutError:
            return BROKEN if garbage else SILENT
        if not ready:
            link.send(query)
            sent_again = True
        elif (said := said_in(link.recv(65535), query)) is not None:
            return said
        else:
            garbage = True


def _by_tcp(link: socket.socket, query: bytes, _again_s: float) -> Talk[str]:
    link.send(struct.pack(">H", len(query)) + query)
    received = b""
    while len(received) < 2 or len(received) < 2 + int.from_bytes(received[:2]):
        yield Wait(link, READ)
        block = link.recv(65537)
        if not block:
            return BROKEN
        received += block
    return said_in(received[2 : 2 + int.from_bytes(received[:2])], query) or BROKEN
