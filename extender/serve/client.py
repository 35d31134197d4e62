"""A connection and its non-blocking socket."""

import fcntl
import logging
import select
import socket
import sys
import termios
from http import HTTPStatus

from extender.serve import limits
from extender.serve.connection import Connection, Stage
from extender.serve.fairness import NEW_S
from extender.serve.http import Heads
from extender.serve.stream import Stream, StreamError

log = logging.getLogger(__name__)

_IDLE, _IN = Stage.IDLE, select.EPOLLIN  # local names, because each call looks them up


class Client(Connection):
    """A connection with its socket.

    events: what epoll was asked for. queued: its request waits to be answered. shakes: its bytes belong to a TLS
    handshake; greeted: the client has sent bytes in it. charged_until: see Fairness.
    """

    __slots__ = ("charged_until", "events", "fd", "greeted", "queued", "shakes", "sock", "stream")

    def __init__(self, sock: socket.socket, stream: Stream | None, monotonic: float, heads: Heads) -> None:
        """stream: TLS, None = HTTP directly on the socket."""
        super().__init__(monotonic, heads)
        self.sock = sock
        self.fd = sock.fileno()
        self.stream = stream
        self.events = _IN
        self.queued = False
        self.charged_until = monotonic + NEW_S
        self.shakes = stream is not None
        self.greeted = False
        sock.setblocking(False)
        if stream is not None:
            self.deadline = monotonic + limits.HEAD_LIMIT_S

    @property
    def may_ask(self) -> bool:
        """Returns whether the client may call a verb."""
        return self.stream is None or self.stream.may_ask

    def receive_some(self, view: memoryview, monotonic: float) -> bool:
        """Receives once, into `view` first. Returns False if the connection is broken."""
        try:
            count = self.sock.recv_into(view)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not count:
            self.gone = True
        elif self.stream is None:
            self.receive(view[:count], monotonic)
        else:
            self._receive_through(self.stream, view[:count], monotonic)
        return True

    def _receive_through(self, stream: Stream, data: memoryview, monotonic: float) -> None:
        try:
            plain = stream.receive(data)
        except StreamError as e:
            log.debug("closed a connection: %s", e)
            plain = b""
            self.gone = True
        if wire := stream.pending():
            self.greeted = True
            self._send_aside(wire)
        if self.shakes and stream.ready:
            self.shakes = False
            self.deadline = monotonic + limits.IDLE_LIMIT_S
        self.gone |= stream.done
        if plain:
            self.receive(plain, monotonic)
            if not stream.may_ask and self.reader.within and self.reader.in_body:
                self.fail(HTTPStatus.FORBIDDEN, "no body without a client certificate", monotonic)

    def _send_aside(self, wire: bytes) -> None:
        """Sends bytes of a handshake or an alert. They are few, and the kernel has room for them unless the client is
        faulty."""
        if self.out:
            self.out.append(wire)
            return
        try:
            self.gone |= self.sock.send(wire) < len(wire)
        except OSError:
            self.gone = True

    def put(self, *pieces: bytes) -> None:
        """Queues bytes for sending."""
        if self.stream is None:
            self.out.extend(pieces)
        else:
            self.out.append(self.stream.send(b"".join(pieces)))

    def send_whole(self, head: bytes, body: bytes, monotonic: float) -> bool:
        """Sends an answer at once. Returns whether the client is idle then and nothing else is left to do, as nearly
        always after an answer. If not, the rest is sent by send_some()."""
        if len(body) > limits.ONE_SEND_BYTES or self.out or self.stream is not None:
            self.put(head, body)
            return False
        piece = head + body
        try:
            count = self.sock.send(piece)
        except OSError:  # send_some() meets the error again
            count = 0
        if count < len(piece):
            self.out.append(memoryview(piece)[count:])
            return False
        self.settle(monotonic)
        return self.stage is _IDLE and self.events == _IN and not self.gone and not self.waits

    def send_some(self, monotonic: float) -> bool:
        """Sends as much as the kernel accepts. Returns False if the connection is broken."""
        out = self.out
        try:
            while out:
                piece = out[0]
                count = self.sock.send(piece)
                if count < len(piece):
                    out[0] = memoryview(piece)[count:]
                    break
                out.popleft()
        except BlockingIOError:
            pass
        except OSError:
            return False
        self.settle(monotonic)
        return True

    def say_end(self) -> bool:
        """Ends the sending direction. Returns False if the connection is broken."""
        try:
            if self.stream is not None:
                self.sock.send(self.stream.ended())
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            return False
        return True

    def silent(self) -> bool:
        """Returns whether all bytes that arrived were read."""
        try:
            return not self.sock.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def ready_bytes(self) -> int:
        """Returns the number of bytes that arrived and were not read."""
        try:
            return int.from_bytes(fcntl.ioctl(self.fd, termios.FIONREAD, bytes(4)), sys.byteorder)
        except OSError:
            return 0

    def close(self) -> None:
        self.drop()
        self.sock.close()
