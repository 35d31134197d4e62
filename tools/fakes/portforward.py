"""The kubelet's end of a port-forward over a WebSocket, as an API server passes it on to its client.

Follows handleWebSocketStreams of k8s.io/cri-streaming and Conn of k8s.io/streaming/pkg/httpstream/wsstream: subprotocol
v4.channel.k8s.io, one byte for the channel before each message, the port in the first message of each channel, an error
as text in channel 1, a close frame at the end. RFC 6455 is written out here, so that it is not the client's library
that the library is tested with.
"""

import base64
import hashlib
import http.server
import socket
import struct
import threading
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

PROTOCOL = "v4.channel.k8s.io"
MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
BINARY, CLOSE, PING = 2, 8, 9
DATA, ERROR = 0, 1
REFUSED = (
    'error forwarding port {port} to pod e-1, uid 5b: failed to execute portforward in network namespace "host": '
    'failed to connect to localhost:{port} inside namespace "host", IPv4: dial tcp4 127.0.0.1:{port}: connect: '
    "connection refused IPv6 dial tcp6 [::1]:{port}: connect: connection refused"
)


def accepted(key: str) -> str:
    """Sec-WebSocket-Accept for a Sec-WebSocket-Key."""
    return base64.b64encode(hashlib.sha1((key + MAGIC).encode()).digest()).decode()  # noqa: S324


class Channels:
    """One accepted WebSocket."""

    def __init__(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        self.port = int(parse_qs(urlsplit(handler.path).query)["ports"][0])
        self._in, self._out = handler.rfile, handler.wfile
        self._sending = threading.Lock()
        handler.close_connection = True
        asked = {name.lower(): value for name, value in handler.headers.items()}
        assert ("websocket", "13") == (asked["upgrade"].lower(), asked["sec-websocket-version"])
        assert PROTOCOL in asked["sec-websocket-protocol"].split(",")
        handler.send_response_only(101)
        handler.send_header("Upgrade", "websocket")
        handler.send_header("Connection", "Upgrade")
        handler.send_header("Sec-WebSocket-Accept", accepted(asked["sec-websocket-key"]))
        handler.send_header("Sec-WebSocket-Protocol", PROTOCOL)
        handler.end_headers()

    def begin(self) -> "Channels":
        for channel in (DATA, ERROR):
            self.send(channel, struct.pack("<H", self.port))
        return self

    def send(self, channel: int, payload: bytes) -> None:
        self.frame(BINARY, bytes([channel]) + payload)

    def frame(self, opcode: int, payload: bytes, *, last: bool = True) -> None:
        size = len(payload)
        head = bytes([last << 7 | opcode])
        head += bytes([size]) if size < 126 else struct.pack(">BH", 126, size) if size < 2**16 else b""
        head += struct.pack(">BQ", 127, size) if size >= 2**16 else b""
        with self._sending:
            self._out.write(head + payload)
            self._out.flush()

    def receive(self) -> tuple[int, bytes]:
        """Channel and payload. Raises EOFError at the end."""
        while True:
            opcode, size = self._exactly(2)
            assert size & 128, "a client's frame is masked"
            size &= 127
            if size == 126:
                (size,) = struct.unpack(">H", self._exactly(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", self._exactly(8))
            mask = self._exactly(4)
            payload = bytes(byte ^ mask[place % 4] for place, byte in enumerate(self._exactly(size)))
            if opcode & 15 == CLOSE:
                raise EOFError
            if opcode & 15 == BINARY:
                return payload[0], payload[1:]

    def _exactly(self, size: int) -> bytes:
        found = self._in.read(size)
        if len(found) < size:
            raise EOFError
        return bytes(found)

    def end(self) -> None:
        """Says goodbye and reads what the client has sent: the kernel would drop what is on its way to the client."""
        with suppress(OSError, EOFError):
            self.frame(CLOSE, struct.pack(">H", 1000))
            while True:
                self.receive()


def forward(handler: http.server.BaseHTTPRequestHandler, connect) -> None:
    """Relays to what `connect(port)` gives, as a container runtime does. It may raise ConnectionRefusedError."""
    channels = Channels(handler).begin()
    try:
        pod: socket.socket = connect(channels.port)
    except ConnectionRefusedError:
        channels.send(ERROR, REFUSED.format(port=channels.port).encode())
        channels.end()
        return

    def answer() -> None:
        with suppress(OSError):
            while block := pod.recv(2**15):
                channels.send(DATA, block)
        with suppress(OSError):
            channels.frame(CLOSE, struct.pack(">H", 1000))  # the client answers it, which ends the loop below

    with pod:
        answering = threading.Thread(target=answer)
        answering.start()
        with suppress(EOFError, OSError):
            while True:
                channel, payload = channels.receive()
                assert channel == DATA
                pod.sendall(payload)
        with suppress(OSError):
            pod.shutdown(socket.SHUT_RDWR)
        answering.join()


def complaining(text: str):
    """A kubelet that reports an error instead of data."""

    def serve(handler: http.server.BaseHTTPRequestHandler) -> None:
        channels = Channels(handler).begin()
        channels.send(ERROR, text.encode())
        channels.end()

    return serve


def cut(handler: http.server.BaseHTTPRequestHandler) -> None:
    """The connection breaks once it is established."""
    Channels(handler).begin()


class Stalled:
    """Answers nothing until release(). accepts: whether it answers the upgrade before that."""

    def __init__(self, *, accepts: bool) -> None:
        self._accepts = accepts
        self._released = threading.Event()

    def __call__(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        if self._accepts:
            Channels(handler).begin()
        self._released.wait(60.0)

    def release(self) -> None:
        self._released.set()
