"""The agent's own small HTTP server: /readyz, /livez, /metrics. Standard library, a bounded number of threads.

It never measures: it shows what the other rooms know. A client that is slow, or one of too many, is cut off.
"""

import contextlib
import errno
import http.server
import logging
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from component.lifecycle import Service, StartFailed, unhealthy

log = logging.getLogger(__name__)

TEXT = "text/plain; charset=utf-8"
CONNECTION_LIMIT = 16  # kubelet, Prometheus and a few people; more at once is a mistake or an attack
REQUEST_LIMIT_S = 3.0  # for a whole connection, whatever the client does


@dataclass(frozen=True, slots=True)
class Page:
    status: int
    body: str
    content_type: str = TEXT


Pages = Mapping[str, Callable[[], Page]]
"""Path -> what to answer. Called in the server's threads; must not wait."""


def livez_page(services: Sequence[Service], monotonic: float) -> Page:
    """200 `ok`, or 503 with the names of the parts that do not progress."""
    stuck = unhealthy(services, monotonic)
    return Page(503, "".join(f"{name}: does not progress\n" for name in stuck)) if stuck else Page(200, "ok\n")


class HealthServer:
    """A Service that answers GET and HEAD for a fixed set of paths. Port 0 takes a free one: see `port`."""

    name = "server"

    def __init__(self, address: str, port: int, pages: Pages) -> None:
        self._address = address
        self._port = port
        self._pages = dict(pages)
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port it listens on, once started."""
        return self._server.server_address[1] if self._server else self._port

    def start(self) -> None:
        """Raises StartFailed when the address cannot be had."""
        try:
            self._server = _Server(self._address, self._port, self._pages)
        except (OSError, TypeError, UnicodeError) as e:
            raise StartFailed(f"cannot listen on {self._address}:{self._port}: {_cause(e)}") from e
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="server", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        server, thread = self._server, self._thread
        self._thread = None
        if server is None or thread is None:
            return
        server.shutdown()
        thread.join(1.0)
        server.server_close()

    def healthy(self, monotonic: float) -> bool:  # noqa: ARG002 - the Service protocol
        return self._thread is not None and self._thread.is_alive()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    allow_reuse_address = True

    def __init__(self, address: str, port: int, pages: Pages) -> None:
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.pages = pages
        self._slots = threading.BoundedSemaphore(CONNECTION_LIMIT)
        super().__init__((address, port), _Handler)

    def server_bind(self) -> None:
        # HTTPServer's own asks DNS for the host's name, which may hang where DNS is what is broken.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - socketserver's types
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._slots.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        guard = threading.Timer(REQUEST_LIMIT_S, _cut, (request,))
        guard.daemon = True
        try:
            guard.start()
            super().process_request_thread(request, client_address)
        except RuntimeError:  # no thread to be had: better no answer than one without an end
            self.shutdown_request(request)
        finally:
            guard.cancel()
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, ARG002
        log.debug("a client went away")


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    timeout = REQUEST_LIMIT_S
    server_version = "readygate-agent"
    sys_version = ""

    def do_GET(self) -> None:
        page_of = self.server.pages.get(self.path.partition("?")[0])
        if page_of is None:
            self._answer(Page(404, "not found; there are " + ", ".join(sorted(self.server.pages)) + "\n"))
            return
        try:
            page = page_of()
        except Exception:
            log.exception("a page could not be made", extra={"path": self.path[:64]})
            page = Page(500, "internal error\n")
        self._answer(page)

    do_HEAD = do_GET  # noqa: N815 - the name http.server looks for

    def _answer(self, page: Page) -> None:
        body = page.body.encode(errors="replace")
        self.send_response(page.status)
        self.send_header("Content-Type", page.content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - http.server's signature
        log.debug("request", extra={"line": (format % args)[:128]})


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _cause(error: OSError | TypeError | UnicodeError) -> str:
    if not isinstance(error, OSError):  # a name that cannot even be asked for
        return "this is no host name; correct listen.address"
    match error.errno:
        case errno.EADDRINUSE:
            return "the address is in use; stop the other process or choose another listen.port"
        case errno.EADDRNOTAVAIL:
            return "this host does not have that address; correct listen.address"
        case errno.EACCES:
            return "permission denied; choose a listen.port above 1023"
        case _:
            return f"{error.strerror or error}; correct listen.address"
