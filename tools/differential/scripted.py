"""A server on loopback that speaks as much HTTP/2 as a history has bytes for, for the grpc handler."""

import contextlib
import socket
import threading
from dataclasses import dataclass, field

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS = 0, 1, 4
_ACK = _END_STREAM = 1
_SETTINGS_ACK = bytes((0, 0, 0, _SETTINGS, _ACK, 0, 0, 0, 0))


@dataclass(slots=True)
class Script:
    """What is sent at once, and when the request is there. `asked`: the bodies of requests, in hexadecimal."""

    greeting: bytes
    reply: bytes
    asked: list[str] = field(default_factory=list)


class Scripted:
    """One connection is served by one thread; those that are accepted play `script`. It ends with the process."""

    def __init__(self) -> None:
        self.script = Script(b"", b"")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=_serve, args=(connection, self.script), daemon=True).start()


def _serve(connection: socket.socket, script: Script) -> None:
    """Until the other side ends: nothing that was sent is lost, and the connection is there while it is used."""
    with connection, contextlib.suppress(OSError, EOFError), connection.makefile("rb") as stream:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(script.greeting)
        stream.read(len(PREFACE))
        asked = b""
        while head := stream.read(9):
            kind, flags = head[3], head[4]
            payload = stream.read(int.from_bytes(head[:3]))
            if kind == _DATA:
                asked += payload
            if kind == _SETTINGS and not flags & _ACK:
                connection.sendall(_SETTINGS_ACK)
            if kind in (_DATA, _HEADERS) and flags & _END_STREAM:
                script.asked.append(asked.hex())
                connection.sendall(script.reply)
