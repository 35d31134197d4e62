"""gunicorn's gthread worker, made for one busy client: kube-scheduler asks one question after the other.

Two things differ. After an answer the thread stays with its connection for a moment, because the next question of a
scheduler with work to do comes within milliseconds; upstream hands the connection to the main thread and takes it back,
which costs two changes of thread a request. And header and body of an answer leave in one write, so the scheduler's
host wakes up once.
"""

import select
from typing import Any

from gunicorn.http import wsgi
from gunicorn.workers import gthread

LINGER_MS = 50
# Threads that may stay with a connection at a time; the others are for whoever comes next.
LINGERING_MAX = 4


class Response(wsgi.Response):  # type: ignore[misc]
    """Keeps the header back until the body is there. Chunked bodies are written piece by piece, as upstream does."""

    headers_sent: bool
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
            self.sock.sendall(self._header + data)
            self._header = b""

    def _flush(self) -> None:
        if self._header:
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
        while True:
            keep = super().handle(conn)
            if keep is not True or not self.alive or not self._more_comes(conn):
                return keep

    def _more_comes(self, conn: Any) -> bool:  # noqa: ANN401
        """Whether the next request, or the end of the connection, arrived while this thread stayed."""
        if conn.parser.unreader.buf.getvalue():
            return True
        if self._lingering >= LINGERING_MAX:
            return False
        poll = select.poll()
        poll.register(conn.sock, select.POLLIN)
        self._lingering += 1  # not exact between threads, and need not be
        try:
            return bool(poll.poll(LINGER_MS))
        finally:
            self._lingering -= 1

    def handle_request(self, req: Any, conn: Any) -> bool:  # noqa: ANN401
        """One request; whether the connection may be used again. As upstream, less what we have switched off: hooks,
        restarts after a number of requests, files, the access log.
        """
        response, environ = wsgi.create(req, conn.sock, conn.client, conn.server, self.cfg, response_class=Response)
        environ["wsgi.multithread"] = True
        if not self.alive or len(self.keepalived_conns) >= self.max_keepalived:
            response.force_close()
        pieces = self.wsgi(environ, response.start_response)
        try:
            for piece in pieces:
                response.write(piece)
            response.close()
        finally:
            if hasattr(pieces, "close"):
                pieces.close()
        return not response.should_close()
