"""gunicorn's gthread worker, made for one busy client: kube-scheduler asks one question after the other.

Three things differ. After an answer the thread stays with its connection for a moment, because the next question of a
scheduler with work to do comes within milliseconds; upstream hands the connection to the main thread and takes it back,
which costs two changes of thread a request. Header and body of an answer leave in one write, so the scheduler's host
wakes up once. And whatever a client leaves undone has an end: sending a header or a body, reading the answer, closing.
"""

import select
import socket
import time
from typing import Any

from gunicorn.http import wsgi
from gunicorn.http.errors import NoMoreData
from gunicorn.http.unreader import SocketUnreader
from gunicorn.workers import gthread

LINGER_MS = 50
# Threads that may stay with a connection at a time; the others are for whoever comes next.
LINGERING_MAX = 4

HEAD_LIMIT_S = 5.0
BODY_LIMIT_S = 10.0  # in all; kube-scheduler itself waits for one second, or five
SILENCE_LIMIT_S = 5.0  # between two pieces of a body
ANSWER_LIMIT_S = 10.0
CLOSE_LIMIT_S = 1.0  # a client that closes when it has its answer does so within milliseconds
CLOSE_LIMIT_BYTES = 65536


class Unreader(SocketUnreader):  # type: ignore[misc]
    """What comes off the socket, each receive with an end in time."""

    def __init__(self, sock: Any) -> None:  # noqa: ANN401 - a socket
        super().__init__(sock)
        self._deadline = float("inf")
        self._in_head = True

    def begin_head(self) -> None:
        self._deadline, self._in_head = time.monotonic() + HEAD_LIMIT_S, True

    def begin_body(self) -> None:
        self._deadline, self._in_head = time.monotonic() + BODY_LIMIT_S, False

    def chunk(self, size_hint: int | None = None) -> bytes:
        """Raises TimeoutError within a body; within a header it is as if the client had gone."""
        try:
            left_s = self._deadline - time.monotonic()
            if left_s <= 0:
                raise TimeoutError("not within the time for a request")
            self.sock.settimeout(min(left_s, SILENCE_LIMIT_S))
            data: bytes = super().chunk(size_hint)
        except TimeoutError as e:
            if self._in_head:
                raise NoMoreData(b"") from e
            raise
        return data


class Response(wsgi.Response):  # type: ignore[misc]
    """Keeps the header back until the body is there. Chunked bodies are written piece by piece, as upstream does."""

    headers_sent: bool
    written = False  # whether anything has left
    _header = b""

    def send_headers(self) -> None:
        if self.headers_sent:
            return
        lines = [*self.default_headers(), *(f"{name}: {value}\r\n" for name, value in self.headers), "\r\n"]
        self._header = "".join(lines).encode("latin-1")
        self.headers_sent = True

    def _emit_body(self, data: bytes) -> None:
        if self.chunked:
            self._flush()
            super()._emit_body(data)
        else:
            self.written = True
            self.sock.sendall(self._header + data)
            self._header = b""

    def _flush(self) -> None:
        if self._header:
            self.written = True
            self.sock.sendall(self._header)
            self._header = b""

    def close(self) -> None:
        self.send_headers()
        self._flush()
        super().close()


class Worker(gthread.ThreadWorker):  # type: ignore[misc]
    """See the module's first lines. `handle` and `handle_request` run in request threads."""

    _lingering = 0

    def handle(self, conn: Any) -> Any:  # noqa: ANN401 - gunicorn's TConn; True, False or its mark for "later"
        if not conn.initialized:
            if not conn.wait_for_data(gthread.DEFAULT_WORKER_DATA_TIMEOUT):
                return gthread._DEFER  # noqa: SLF001 - what upstream's own handle() returns
            conn.init()
            conn.parser.unreader = Unreader(conn.sock)
        while True:
            conn.parser.unreader.begin_head()
            keep = super().handle(conn)
            if keep is True and self.alive and self._more_comes(conn):
                continue
            if keep is False:
                close_politely(conn.sock)
            return keep

    def _more_comes(self, conn: Any) -> bool:  # noqa: ANN401
        """Whether the next request, or the end of the connection, arrived while this thread stayed."""
        if self.tpool._work_queue.qsize():  # noqa: SLF001 - other connections wait for a thread
            return False
        if conn.parser.unreader.buf.getvalue():
            return True
        if self._lingering >= LINGERING_MAX:
            return False
        self._lingering += 1  # not exact between threads, and need not be
        try:
            return _readable(conn.sock)
        finally:
            self._lingering -= 1

    def handle_request(self, req: Any, conn: Any) -> bool:  # noqa: ANN401
        """One request; whether the connection may be used again. As upstream, less what we have switched off: hooks,
        restarts after a number of requests, files, the access log.
        """
        conn.parser.unreader.begin_body()
        response, environ = wsgi.create(req, conn.sock, conn.client, conn.server, self.cfg, response_class=Response)
        environ["wsgi.multithread"] = True
        if not self.alive or len(self.keepalived_conns) >= self.max_keepalived:
            response.force_close()
        pieces = self.wsgi(environ, response.start_response)
        conn.sock.settimeout(ANSWER_LIMIT_S)
        try:
            for piece in pieces:
                response.write(piece)
            response.close()
        except TimeoutError:
            self.log.debug("the client does not read its answer")
            return False
        except OSError:
            raise  # the client has gone: upstream's handle() knows
        except Exception:
            if not response.written:
                raise  # upstream's handle() answers 500
            self.log.exception("an answer broke off")
            return False
        finally:
            if hasattr(pieces, "close"):
                pieces.close()
        return not response.should_close()


def close_politely(sock: socket.socket) -> None:
    """End a connection so that the client gets all of its answer: say that we are done, read until it is.

    Upstream does this in the main thread, which then serves nobody for two seconds. It still tries, and finds the
    connection ended.
    """
    ends = time.monotonic() + CLOSE_LIMIT_S
    left_bytes = CLOSE_LIMIT_BYTES
    try:
        sock.shutdown(socket.SHUT_WR)
        while left_bytes > 0 and (left_s := ends - time.monotonic()) > 0:
            sock.settimeout(left_s)
            data = sock.recv(4096)
            if not data:
                break
            left_bytes -= len(data)
    except OSError:  # silent for too long, or gone
        pass
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


def _readable(sock: socket.socket) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(LINGER_MS))
