"""gunicorn's worker for the status API: no client delays the others for long, and the kubelet's probe is never delayed.

Upstream's worker gives a thread to each client that connects, before the client sends anything, and for as long as each
receive or send moves a byte. It waits two seconds for a client that does not close, in the thread that accepts
connections. At the limit of connections it accepts nothing until a silent client times out after five seconds. A few
such clients would lock out all others, the kubelet's probes among them.

    /livez      answered by the main thread, which accepts connections and waits for no client
    no data     a connection without data takes no thread; at the limit, the oldest of them is closed
    too many    beyond UNDER_WAY_MAX requests a client gets 503 at once
    too slow    a client loses its thread after THREAD_LIMIT_S; after CROWDED_LIMIT_S if all threads are taken, or if it
                is a scrape
    no files    while there is no descriptor, connections wait in the kernel; upstream's worker would end
"""

import errno
import logging
import os
import re
import signal
import socket
import time
from concurrent.futures import Future
from contextlib import suppress
from types import FrameType
from typing import Any

from gunicorn.workers import gthread

from extender.serve.error_log import ErrorLog
from extender.serve.limits import CLOSE_LIMIT_S, NO_DESCRIPTORS_S
from extender.web.parameters import BODY_LIMIT_BYTES

log = logging.getLogger(__name__)

# From the stop signal on, for current answers. gunicorn counts in seconds, and a stop takes one at most.
LEAVE_LIMIT_S = 0.4
# How long a client may have a thread: to send its request, and to read the answer. The second one while all are taken.
THREAD_LIMIT_S = 60.0
CROWDED_LIMIT_S = 15.0
# Requests that have a thread or wait for one, and scrapes among them. Smaller than worker_connections, so that another
# probe can always connect. Scrapes come from any host, so they never take the last thread.
UNDER_WAY_MAX = 32
SCRAPES_MAX = 3
# A whole request for /livez without a body, as the kubelet sends it. Sending the answer never waits for the client.
LIVEZ = re.compile(
    rb"GET /livez HTTP/1\.[01]\r\n(?:(?!content-length|transfer-encoding|expect|upgrade)[^\r\n]+\r\n)*\r\n",
    re.IGNORECASE,
)
HEAD_LIMIT_BYTES = 4096  # of such a request
DISCARD_BYTES = 65536
# What accept(2) lacks for another connection: descriptors of this process or of the whole host, memory.
LACKING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
ACCEPTS_MAX = 16  # of one listener, before the next one is served
BUSY_BODY = b'{"Error":"Service Unavailable"}'
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(BUSY_BODY), BUSY_BODY)
)


class Worker(gthread.ThreadWorker):  # type: ignore[misc]
    """The worker. Upstream's keeps idle connections for two seconds when it stops, and waits for its threads even
    longer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - gunicorn's own
        super().__init__(*args, **kwargs)
        self._since: dict[Any, float] = {}  # when each connection got its thread, the longest ago first; monotonic
        self._under_way: set[Any] = set()  # connections that have a thread or wait for one
        self._scraping: set[Any] = set()  # scrapes among these, until their threads are free
        self._faults = ErrorLog(time.monotonic)

    def accept(self, listener: socket.socket) -> None:
        """Called in the main thread. Upstream accepts one connection a turn, and the kernel drops others in a flood."""
        for _ in range(ACCEPTS_MAX):
            before = self.nr_conns
            try:
                super().accept(listener)
            except OSError as e:
                if e.errno not in LACKING:
                    raise
                if self._faults.may_tell("accept"):
                    log.warning("cannot accept connections", extra={"error": e.strerror})
                time.sleep(NO_DESCRIPTORS_S)  # the listener stays readable: without a pause the loop would spin
                return
            if not before < self.nr_conns < self.worker_connections:
                return

    def enqueue_req(self, conn: Any) -> None:  # noqa: ANN401 - gunicorn's connection
        """Called in the main thread for a connection that is new, or has sent something."""
        begun, is_new = _begun(conn.sock), not conn.initialized
        if is_new and begun is None:
            self._finished(conn, gthread._DEFER)  # noqa: SLF001 - it waits for data without a thread
        elif is_new and begun == b"":
            self._drop(conn)
        elif is_new and LIVEZ.fullmatch(begun or b""):
            self._finished(conn, self._probed(conn))
        elif begun == b"" and self._is_scrape(conn):
            super().enqueue_req(conn)  # the client has closed: its thread is free again at once, so it does not count
        elif len(self._under_way) >= UNDER_WAY_MAX or (self._is_scrape(conn) and len(self._scraping) >= SCRAPES_MAX):
            refuse(conn.sock)
            self._drop(conn)
        else:
            self._under_way.add(conn)
            if self._is_scrape(conn):
                self._scraping.add(conn)
            super().enqueue_req(conn)

    def finish_request(self, conn: Any, fs: Any) -> None:  # noqa: ANN401 - gunicorn's connection and future
        """Called in the main thread."""
        self._under_way.discard(conn)
        super().finish_request(conn, fs)

    def handle(self, conn: Any) -> Any:  # noqa: ANN401 - gunicorn's connection, and what it makes of it
        """Called in a thread."""
        self._since[conn] = time.monotonic()
        try:
            goes_on = super().handle(conn)
            if not goes_on:
                part(conn.sock)
            return goes_on
        finally:
            del self._since[conn]
            self._scraping.discard(conn)  # here: a client that asks again at once is not refused for its earlier scrape

    def handle_request(self, req: Any, conn: Any) -> Any:  # noqa: ANN401 - gunicorn's request and connection
        """A body that may be too large is not read: the connection ends with the answer."""
        if _may_be_too_large(req.headers):
            req.force_close()
        return super().handle_request(req, conn)

    def notify(self) -> None:
        """Called once a second, and after each turn of the loop, before it checks the limit of connections."""
        super().notify()
        while self.nr_conns >= self.worker_connections and (idle := self.pending_conns or self.keepalived_conns):
            self._end(idle.popleft())
        there = list(self._since.items())
        crowded = len(there) >= self.cfg.threads
        for conn, since in there:
            limit_s = CROWDED_LIMIT_S if crowded or self._is_scrape(conn) else THREAD_LIMIT_S
            if time.monotonic() - since >= limit_s:
                with suppress(OSError):
                    # its thread reads the end of the stream, and continues with the next connection
                    conn.sock.shutdown(socket.SHUT_RDWR)

    def _probed(self, conn: Any) -> Any:  # noqa: ANN401 - as handle
        """Answers a request for /livez that has arrived completely. The answer fits into the kernel's empty buffer."""
        conn.data_ready = True
        goes_on = super().handle(conn)
        if not goes_on:
            with suppress(OSError):
                conn.sock.shutdown(socket.SHUT_RDWR)  # so that upstream does not wait for the client to close
        return goes_on

    def _finished(self, conn: Any, result: Any) -> None:  # noqa: ANN401 - as handle
        future: Future[Any] = Future()
        future.set_result(result)
        super().finish_request(conn, future)

    def _is_scrape(self, conn: Any) -> bool:  # noqa: ANN401 - gunicorn's connection
        return bool(conn.server[1] == self.wsgi.extensions["readygate-metrics-port"])

    def _end(self, conn: Any) -> None:  # noqa: ANN401 - gunicorn's connection
        """Closes the connection that has been silent longest, to accept another one. Not while the loop handles events,
        which may be this connection's."""
        with suppress(OSError, KeyError, ValueError):
            self.poller.unregister(conn.sock)
        self._drop(conn)

    def _drop(self, conn: Any) -> None:  # noqa: ANN401 - gunicorn's connection
        self.nr_conns -= 1
        conn.close()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        end_within(LEAVE_LIMIT_S)
        super().handle_exit(sig, frame)

    def handle_quit(self, sig: int, frame: FrameType | None) -> None:
        end_within(LEAVE_LIMIT_S)
        super().handle_quit(sig, frame)


def _begun(sock: socket.socket) -> bytes | None:
    """Returns the unread bytes of the client, HEAD_LIMIT_BYTES at most. None if nothing has arrived yet, b"" at the end
    of the connection or after an error."""
    try:
        return sock.recv(HEAD_LIMIT_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _may_be_too_large(headers: list[tuple[str, str]]) -> bool:
    """The length of a chunked body is unknown before its end. gunicorn has checked that Content-Length is a number."""
    given = dict(headers)
    return "TRANSFER-ENCODING" in given or int(given.get("CONTENT-LENGTH", "0")) > BODY_LIMIT_BYTES


def refuse(sock: socket.socket) -> None:
    """Answers 503 and never waits for the client. Reads what has arrived first; otherwise the close would drop the
    answer."""
    with suppress(OSError):
        sock.setblocking(False)
        sock.recv(DISCARD_BYTES)
        sock.send(BUSY)


def part(sock: socket.socket) -> None:
    """Ends the sending direction, and waits for the client to close, so that the last answer is not lost. In its own
    thread, for CLOSE_LIMIT_S at most. The close that follows takes no time."""
    ends = time.monotonic() + CLOSE_LIMIT_S
    with suppress(OSError):
        sock.shutdown(socket.SHUT_WR)
        while (left_s := ends - time.monotonic()) > 0:
            sock.settimeout(left_s)
            if not sock.recv(65536):
                return
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RD)


def end_within(limit_s: float) -> None:
    """Ends this process within the time, whatever its threads do: their answers are pages that can be requested
    again."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, limit_s)
