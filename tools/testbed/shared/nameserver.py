"""A name server with fixed answers, for clusters that have none: A records over UDP and TCP.

`python nameserver.py ADDRESS PORT NAME=ADDRESS ...`; any other name does not exist, and one whose address is SERVFAIL
cannot be resolved. Nothing but the standard library: on ring 3 this file is what a pod runs.
"""

import ipaddress
import socketserver
import struct
import sys
import threading

_HEADER_BYTES = 12
_A = 1
_FLAGS = 0x8580  # a reply, authoritative, recursion desired and available
_NO_SUCH_NAME = 3
_FAILS = "SERVFAIL"
_FAILED = 2
_TTL_S = 5


def answer(query: bytes, addresses: dict[str, str]) -> bytes:
    """The reply to a query for one name. Raises IndexError, struct.error for what is none."""
    labels, at = [], _HEADER_BYTES
    while length := query[at]:
        labels.append(query[at + 1 : at + 1 + length].decode("ascii", "replace").lower())
        at += 1 + length
    (kind,) = struct.unpack(">H", query[at + 1 : at + 3])
    address = addresses.get(".".join(labels))
    record = b""
    fails = address == _FAILS
    if address and kind == _A and not fails:
        record = b"\xc0\x0c" + struct.pack(">HHIH", _A, 1, _TTL_S, 4) + ipaddress.ip_address(address).packed
    flags = _FLAGS | (_FAILED if fails else 0 if address else _NO_SUCH_NAME)
    return query[:2] + struct.pack(">5H", flags, 1, bool(record), 0, 0) + query[_HEADER_BYTES : at + 5] + record


def serve(host: str, port: int, addresses: dict[str, str]) -> None:
    """Until the process is ended."""

    class Datagram(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            query, socket = self.request
            socket.sendto(answer(query, addresses), self.client_address)

    class Stream(socketserver.StreamRequestHandler):
        timeout = 5.0

        def handle(self) -> None:
            length = self.rfile.read(2)
            if len(length) == 2:  # a probe only connects
                reply = answer(self.rfile.read(int.from_bytes(length, "big")), addresses)
                self.wfile.write(len(reply).to_bytes(2, "big") + reply)

    socketserver.ThreadingTCPServer.allow_reuse_address = True
    udp = socketserver.ThreadingUDPServer((host, port), Datagram)
    tcp = socketserver.ThreadingTCPServer((host, port), Stream)
    threading.Thread(target=udp.serve_forever, name="udp", daemon=True).start()
    tcp.serve_forever()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), dict(pair.split("=") for pair in sys.argv[3:]))
