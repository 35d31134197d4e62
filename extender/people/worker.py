"""gunicorn's worker as the people have it: whoever is slow takes nobody's place for long.

Upstream's gives a thread to whoever connects before anything is said, for as long as each receive or send brings a
byte, and the thread that takes all connections for two seconds to one that does not close; and while there is no place
for another one, it takes none until who is silent has been so for five. A few such clients would keep all others from
the pages, the kubelet's probes among them.
"""

import os
import signal
import socket
import time
from contextlib import suppress
from types import FrameType
from typing import Any

from gunicorn.workers import gthread

from extender.serve.limits import CLOSE_LIMIT_S

# From the signal to stop on: for answers under way. gunicorn counts in seconds, and a stop takes one at most.
LEAVE_LIMIT_S = 0.4
# How long a client may have a thread: to send its request, and to read the answer. The second while all are taken.
THREAD_LIMIT_S = 60.0
CROWDED_LIMIT_S = 15.0


class Worker(gthread.ThreadWorker):  # type: ignore[misc]
    """Upstream's keeps idle connections for two seconds when it stops, and waits for its threads even longer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - gunicorn's own
        super().__init__(*args, **kwargs)
        self._since: dict[Any, float] = {}  # when each connection got its thread, the longest ago first; monotonic

    def handle(self, conn: Any) -> Any:  # noqa: ANN401 - gunicorn's connection, and what it makes of it
        """Called in a thread."""
        if not (conn.initialized or conn.data_ready or conn.wait_for_data(0)):
            return gthread._DEFER  # noqa: SLF001 - it is waited for without a thread
        self._since[conn] = time.monotonic()
        try:
            goes_on = super().handle(conn)
            if not goes_on:
                part(conn.sock)
            return goes_on
        finally:
            del self._since[conn]

    def notify(self) -> None:
        """Called once a second, and after each turn of the loop, before it looks whether there is a place."""
        super().notify()
        while self.nr_conns >= self.worker_connections and (idle := self.pending_conns or self.keepalived_conns):
            self._end(idle.popleft())
        there = list(self._since.items())
        limit_s = CROWDED_LIMIT_S if len(there) >= self.cfg.threads else THREAD_LIMIT_S
        for conn, since in there:
            if time.monotonic() - since >= limit_s:
                with suppress(OSError):
                    conn.sock.shutdown(socket.SHUT_RDWR)  # its thread finds an end, and goes on to the next one

    def _end(self, conn: Any) -> None:  # noqa: ANN401 - gunicorn's connection
        """It has waited for longest without having said a word, or since it was answered: another one may have more to
        say. Not while the loop goes through what has come, which may be this one's."""
        with suppress(OSError, KeyError, ValueError):
            self.poller.unregister(conn.sock)
        self.nr_conns -= 1
        conn.close()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        end_within(LEAVE_LIMIT_S)
        super().handle_exit(sig, frame)

    def handle_quit(self, sig: int, frame: FrameType | None) -> None:
        end_within(LEAVE_LIMIT_S)
        super().handle_quit(sig, frame)


def part(sock: socket.socket) -> None:
    """Says that nothing more will be sent, and waits for the client to close, lest its last answer be taken back; in
    its own thread, and not for longer than CLOSE_LIMIT_S. What is left to whoever closes it takes no time."""
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
    """This process is gone by then, whatever its threads do: what they answer is a page, and can be asked for again."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, limit_s)
