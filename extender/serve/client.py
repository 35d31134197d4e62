"""A connection and its socket, which never waits."""

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

_IDLE, _IN = Stage.IDLE, select.EPOLLIN  # looked up for each call


class Client(Connection):
    """events: what epoll was asked for. queued: its request waits for its turn to be answered. shakes: what comes is of
    a handshake, in which it was spoken to if it is greeted. charged_until: see Turns.
    """

    __slots__ = ("charged_until", "events", "fd", "greeted", "queued", "shakes", "sock", "stream")

    def __init__(self, sock: socket.socket, stream: Stream | None, monotonic: float, heads: Heads) -> None:
        """stream: None = nothing stands between the socket and HTTP."""
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
        """Whether it may ask a verb."""
        return self.stream is None or self.stream.may_ask

    def receive_some(self, view: memoryview, monotonic: float) -> bool:
        """One receive, into `view` first. False if the connection has broken."""
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
        """Of a handshake, or an alert: few bytes, for which the kernel has room or the client is no good one."""
        if self.out:
            self.out.append(wire)
            return
        try:
            self.gone |= self.sock.send(wire) < len(wire)
        except OSError:
            self.gone = True

    def put(self, *pieces: bytes) -> None:
        """To be sent."""
        if self.stream is None:
            self.out.extend(pieces)
        else:
            self.out.append(self.stream.send(b"".join(pieces)))

    def send_whole(self, head: bytes, body: bytes, monotonic: float) -> bool:
        """Whether the client is at rest then, with nothing else to be looked at, as nearly always after an answer. If
        not, what is left of the two is to be sent by send_some()."""
        if len(body) > limits.ONE_SEND_BYTES or self.out or self.stream is not None:
            self.put(head, body)
            return False
        piece = head + body
        try:
            count = self.sock.send(piece)
        except OSError:  # which send_some() will meet again
            count = 0
        if count < len(piece):
            self.out.append(memoryview(piece)[count:])
            return False
        self.settle(monotonic)
        return self.stage is _IDLE and self.events == _IN and not self.gone and not self.waits

    def send_some(self, monotonic: float) -> bool:
        """As much as the kernel takes. False if the connection has broken."""
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
        """That nothing more will be sent. False if the connection has broken."""
        try:
            if self.stream is not None:
                self.sock.send(self.stream.ended())
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            return False
        return True

    def silent(self) -> bool:
        """Whether nothing has come that was not read."""
        try:
            return not self.sock.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def ready_bytes(self) -> int:
        """How many bytes have arrived that were not read."""
        try:
            return int.from_bytes(fcntl.ioctl(self.fd, termios.FIONREAD, bytes(4)), sys.byteorder)
        except OSError:
            return 0

    def close(self) -> None:
        self.drop()
        self.sock.close()
