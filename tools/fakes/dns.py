"""DNS servers on addresses of the loopback, UDP and TCP on one port, that say what they are told to."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator, Mapping

from tools.kit.ports import free_port

FLAGS = {
    "answers": (0x8180, 1),
    "truncated": (0x8380, 0),
    "no record": (0x8180, 0),
    "FORMERR": (0x8181, 0),
    "SERVFAIL": (0x8182, 0),
    "NXDOMAIN": (0x8183, 0),
    "REFUSED": (0x8185, 0),
}
RECORD = struct.pack(">HHHIH4s", 0xC00C, 1, 1, 5, 4, bytes([10, 96, 0, 1]))
NOBODY, SILENT, GARBAGE, STRANGER, LOST, HALF, CLOSES = (
    "nobody",  # no socket at all
    "silent",  # takes the question
    "garbage",  # bytes that are no message
    "stranger",  # a good answer to another question, and nothing else
    "lost",  # the first datagram is lost
    "half",  # TCP: half of an answer, then silence
    "closes",  # TCP: closes without a word
)


def reply(query: bytes, behaviour: str) -> list[bytes]:
    """Messages that a server of this behaviour sends."""
    number, question = query[:2], query[12:]
    flags, answers = FLAGS.get(behaviour, FLAGS["answers"])
    header = struct.pack(">HHHHH", flags, 1, answers, 0, 0)
    match behaviour:
        case "silent" | "closes":
            return []
        case "garbage":
            return [b"HTTP/1.1 400 Bad Request\r\n\r\n"]
        case "stranger":
            other = bytes([number[0] ^ 255, number[1]])
            return [other + header + question + RECORD, number + header + b"\0" * len(question)]
        case _:
            return [number + header + question + RECORD * answers]


@contextlib.contextmanager
def dns_servers(udp: Mapping[str, str], tcp: Mapping[str, str]) -> Iterator[int]:
    """By address: what is said there. Yields their port; `nobody` is an address without a socket."""
    with contextlib.ExitStack() as stack:
        port, links = _bound(udp, tcp)
        threads = []
        for link, behaviour in links:
            stack.callback(link.close)
            serve = _udp if link.type == socket.SOCK_DGRAM else _tcp
            threads.append(threading.Thread(target=serve, args=(link, behaviour), daemon=True))
            threads[-1].start()
        yield port
        for link, _ in links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)


def _bound(udp: Mapping[str, str], tcp: Mapping[str, str]) -> tuple[int, list[tuple[socket.socket, str]]]:
    while True:
        port, links = free_port(), []
        try:
            for kind, table in ((socket.SOCK_DGRAM, udp), (socket.SOCK_STREAM, tcp)):
                for address, behaviour in table.items():
                    if behaviour != NOBODY:
                        family = socket.AF_INET6 if ":" in address else socket.AF_INET
                        links.append((socket.socket(family, kind), behaviour))
                        links[-1][0].bind((address, port))
                        if kind == socket.SOCK_STREAM:
                            links[-1][0].listen()
        except OSError:  # somebody else has it on one of the addresses
            for link, _ in links:
                link.close()
        else:
            return port, links


def _udp(link: socket.socket, behaviour: str) -> None:
    lost = behaviour == LOST
    with contextlib.suppress(OSError):
        while True:
            query, peer = link.recvfrom(65535)
            if not query:  # shut down
                return
            if lost:
                lost = False
                continue
            for message in reply(query, behaviour):
                link.sendto(message, peer)


def _tcp(link: socket.socket, behaviour: str) -> None:
    kept = []
    with contextlib.suppress(OSError):
        while True:
            peer, _ = link.accept()
            query = peer.recv(65537)[2:]
            messages = b"".join(struct.pack(">H", len(message)) + message for message in reply(query, behaviour))
            if behaviour == HALF:
                messages = messages[:20]
            peer.sendall(messages)
            if behaviour in (SILENT, HALF):
                kept.append(peer)
            else:
                peer.close()
