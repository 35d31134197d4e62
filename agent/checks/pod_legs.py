"""The connections of the check `podNetwork`: each leg says how far its packets got, and how long that took.

No packet of a connection may be split on its way. A request to a peer fills a packet of the path MTU and so does the
answer, so both are whole only where packets of full size arrive.
"""

import random
import socket
import struct
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.checks.peer_answer import answer_of, request_for, whole
from agent.checks.peer_verdict import Answer, Way
from agent.checks.peers import family_of
from agent.checks.surroundings import OpenSocket
from agent.probe.dns_message import query_of, said_in
from agent.probe.multiplex import READ, Talk, Wait, connect, no_way, talk_all
from agent.probe.multiplex import family_of as address_family
from agent.probe.targets import join_host_port

REPLY_LIMIT_BYTES = 64 * 2**10
MARGIN_BYTES = 64  # of a request beside its padding, so that a full packet is certain
_DONT_FRAGMENT = {socket.AF_INET: (socket.IPPROTO_IP, 10), socket.AF_INET6: (socket.IPPROTO_IPV6, 23)}  # MTU_DISCOVER
_ALWAYS = 2  # IP_PMTUDISC_DO

Kind = Literal["peer", "api", "dns-udp", "dns-tcp"]


@dataclass(frozen=True, slots=True)
class Target:
    """node: of a peer."""

    kind: Kind
    address: str
    port: int
    node: str = ""

    @property
    def family(self) -> int:
        return family_of(self.address)

    @property
    def opens_connection(self) -> bool:
        return self.kind != "dns-udp"


@dataclass(frozen=True, slots=True)
class Outcome:
    """moved: the address is another node's by now. seconds: until the whole answer was there."""

    way: Way
    answer: Answer | None = None
    detail: str = ""
    seconds: float | None = None
    moved: bool = False

    @property
    def open(self) -> bool:
        return self.way is Way.REACHED


def try_all(
    targets: Sequence[Target], open_socket: OpenSocket, own: str, dns_name: str, limit_s: float, small: Sequence[Target]
) -> Mapping[Target, Outcome]:
    """All at once, until one deadline. small: those that are sent a request that fits into any packet. Raises what
    open_socket raises beside OSError."""
    talks = {one: _look(one, open_socket, own, dns_name, small=one in small) for one in targets}
    return talk_all(talks, limit_s)


def _look(target: Target, open_socket: OpenSocket, own: str, dns_name: str, *, small: bool) -> Talk[Outcome]:
    began, connected = time.monotonic(), False
    family = address_family(target.address)
    kind = socket.SOCK_STREAM if target.opens_connection else socket.SOCK_DGRAM
    try:
        with open_socket(family, kind) as link:
            link.setblocking(False)
            link.setsockopt(*_DONT_FRAGMENT[socket.AddressFamily(family)], _ALWAYS)
            reaching = connect(link, (target.address, target.port))
            try:  # what is refused before a packet has left is this node's own doing
                wait = next(reaching, None)
            except OSError as e:
                return Outcome(Way.UNSENT if no_way(e) else Way.REFUSED, detail=e.strerror or str(e))
            if wait is not None:
                yield wait
                next(reaching, None)
            connected = target.opens_connection
            answer = yield from _speak(link, target, own, dns_name, small=small)
    except TimeoutError:
        return Outcome(Way.STALLED if connected else Way.SILENT)
    except (ConnectionRefusedError, ConnectionResetError, BrokenPipeError):
        return Outcome(Way.REFUSED)
    except OSError as e:
        return Outcome(Way.SILENT, detail=e.strerror or str(e))
    moved = answer is not None and bool(answer.node) and target.node not in ("", answer.node)
    return Outcome(Way.REACHED, answer, seconds=time.monotonic() - began, moved=moved)


def _speak(
    link: socket.socket, target: Target, own: str, dns_name: str, *, small: bool
) -> Generator[Wait, bool, Answer | None]:
    match target.kind:
        case "peer":
            full = link.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) + MARGIN_BYTES
            host = join_host_port(target.address, target.port)
            return (yield from _asked(link, request_for(host, own, 0 if small else full)))
        case "dns-udp" | "dns-tcp":
            yield from _resolved(link, target, dns_name)
    return None  # of the API server: whoever completes a connection there is one, behind a Service


def _asked(link: socket.socket, request: bytes) -> Generator[Wait, bool, Answer | None]:
    """None where no agent answers, or one of an earlier version: it was reached all the same."""
    link.sendall(request)  # less than any socket's buffer
    received = b""
    while (body := whole(received)) is None and len(received) < REPLY_LIMIT_BYTES:
        yield Wait(link, READ)
        block = link.recv(REPLY_LIMIT_BYTES)
        if not block:
            return None
        received += block
    return answer_of(body or b"")


def _resolved(link: socket.socket, target: Target, name: str) -> Generator[Wait, bool, None]:
    """Until an answer to the question, with whatever rcode: packets got there and back."""
    query = query_of(name, "AAAA" if target.family == 6 else "A", random.getrandbits(16))
    if target.kind == "dns-udp":
        link.send(query)
        said = None
        while said is None:
            yield Wait(link, READ)
            said = said_in(link.recv(65535), query)
        return
    link.send(struct.pack(">H", len(query)) + query)
    received = b""
    while len(received) < 2 or len(received) < 2 + int.from_bytes(received[:2]):
        yield Wait(link, READ)
        block = link.recv(65537)
        if not block:
            raise ConnectionResetError
        received += block
