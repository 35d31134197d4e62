"""The agent's own small HTTP server: /readyz, /livez, /metrics, /checks, and for other agents /peer. One thread, in
which nobody waits for anybody.

It never measures: it shows what the other rooms know, so each answer is made at once. Guaranteed: whoever sends a whole
request is answered, however many others stall; who stalls is cut off after REQUEST_LIMIT_S, and earlier where there are
too many: of the address with the most connections the oldest goes. So one stranger cannot make a probe of the kubelet
fail.
"""

import contextlib
import errno
import logging
import math
import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from component.lifecycle import Service, StartFailed, unhealthy
from component.loop import Loop

log = logging.getLogger(__name__)

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
CONNECTION_LIMIT = 256  # kubelet, Prometheus and a few people; more at once is a mistake or an attack
REQUEST_LIMIT_S = 3.0  # for a whole connection, whatever the client does
REQUEST_LIMIT_BYTES = 12 * 2**10  # one of another agent fills a packet of up to 9,000 bytes
BACKLOG = 128
TURN_S = 0.5  # how often it is looked who stalls
IDLE_S = 5.0
STUCK_AFTER_S = 15.0
# It looks around each five seconds: not back for so long, it was frozen, and the checks with it. They run first, else
# the first answer is that of before. The kubelet waits for a probe for a second.
FROZEN_S = IDLE_S + 3.0
THAW_S = 0.5
NO_DESCRIPTOR_PAUSE_S = 0.1
EVERY_ADDRESS = "::"
_WORDS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 500: "Internal Server Error"}
_WORDS |= {503: "Service Unavailable"}


@dataclass(frozen=True, slots=True)
class Page:
    status: int
    body: str
    content_type: str = TEXT


Pages = Mapping[str, Callable[[], Page]]
"""Path -> what to answer. Called in the server's thread; must not wait."""
Answers = Mapping[str, Callable[[bytes], Page]]
"""The same for pages that depend on the request."""
_NO_ANSWERS: Answers = MappingProxyType({})


def livez_page(services: Sequence[Service], monotonic: float) -> Page:
    """200 `ok`, or 503 with the names of the parts that do not progress."""
    stuck = unhealthy(services, monotonic)
    return Page(503, "".join(f"{name}: does not progress\n" for name in stuck)) if stuck else Page(200, "ok\n")


@dataclass(slots=True, eq=False)
class _Client:
    """`until`: when it is cut off (monotonic). `reply`: what is still to be sent, None while the request comes in."""

    connection: socket.socket
    source: str
    until: float
    request: bytearray = field(default_factory=bytearray)
    reply: memoryview | None = None


class HealthServer:
    """A Service that answers GET and HEAD for a fixed set of paths. Port 0 takes a free one: see `port`. The address
    `::` is every address of the host, of both families; without IPv6 it is every IPv4 address."""

    name = "server"

    def __init__(
        self,
        address: str,
        port: int,
        pages: Pages,
        *,
        answers: Answers = _NO_ANSWERS,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._address = address
        self._port = port
        self._pages: dict[str, Callable[[bytes], Page]] = {path: _whatever(page_of) for path, page_of in pages.items()}
        self._shown = sorted(self._pages)
        self._pages |= answers
        self._monotonic = monotonic
        self._sleep = sleep
        self._looked_at = math.inf  # monotonic
        self._clients: dict[socket.socket, _Client] = {}
        self._listener: socket.socket | None = None
        self._listens_again_at = 0.0
        self._loop = Loop(
            "server",
            self._turn,
            stuck_after_s=STUCK_AFTER_S,
            unblock=self._unblock,
            at_end=self._end,
            monotonic=monotonic,
        )

    @property
    def port(self) -> int:
        """The port it listens on, once started."""
        return self._port

    def start(self) -> None:
        """Raises StartFailed when the address cannot be had."""
        try:
            self._listener = _listener(self._address, self._port)
        except (OSError, TypeError, UnicodeError) as e:
            raise StartFailed(f"cannot listen on {self._address}:{self._port}: {_cause(e)}") from e
        self._port = self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._waker, self._woken = socket.socketpair()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def healthy(self, monotonic: float) -> bool:
        return self._loop.healthy(monotonic)

    def _unblock(self) -> None:
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._waker.send(b"!")

    def _end(self) -> None:
        for client in list(self._clients.values()):
            self._leave(client)
        if self._listener is not None:
            self._listener.close()
        self._selector.close()
        self._waker.close()
        self._woken.close()

    # --- the loop ---

    def _turn(self) -> float:
        found = self._selector.select(TURN_S if self._clients or self._listens_again_at else IDLE_S)
        if self._monotonic() - self._looked_at >= FROZEN_S:
            self._sleep(THAW_S)
        self._looked_at = self._monotonic()
        for key, _ in found:
            if key.fileobj is self._listener:
                self._accept()
            elif key.fileobj is self._woken:
                self._woken.recv(1)
            elif (client := self._clients.get(key.fileobj)) is not None:  # type: ignore[call-overload]
                self._serve(client)
        monotonic = self._monotonic()
        for client in [c for c in self._clients.values() if c.until <= monotonic]:
            self._leave(client)
        if self._listens_again_at and monotonic >= self._listens_again_at and self._listener is not None:
            self._listens_again_at = 0.0
            self._selector.register(self._listener, selectors.EVENT_READ)
        return 0.0

    def _accept(self) -> None:
        if self._listener is None:
            return
        for _ in range(BACKLOG):
            try:
                connection, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as e:
                self._not_accepted(e)
                return
            connection.setblocking(False)
            client = _Client(connection, str(address[0]), self._monotonic() + REQUEST_LIMIT_S)
            self._clients[connection] = client
            self._selector.register(connection, selectors.EVENT_READ)
            if len(self._clients) > CONNECTION_LIMIT:
                self._leave(who_goes(self._clients.values()))

    def _not_accepted(self, error: OSError) -> None:
        """Without a descriptor the listener stays readable: somebody has to go, or it has to wait."""
        if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
            return  # the client went away
        if self._clients:
            self._leave(who_goes(self._clients.values()))
        elif self._listener is not None:
            self._selector.unregister(self._listener)
            self._listens_again_at = self._monotonic() + NO_DESCRIPTOR_PAUSE_S

    def _serve(self, client: _Client) -> None:
        try:
            if client.reply is None:
                self._read(client)
            if client.reply is not None:
                self._write(client)
        except BlockingIOError:
            return
        except OSError:
            self._leave(client)

    def _read(self, client: _Client) -> None:
        data = client.connection.recv(REQUEST_LIMIT_BYTES)
        client.request += data
        whole = b"\r\n\r\n" in client.request or b"\n\n" in client.request
        if whole or len(client.request) >= REQUEST_LIMIT_BYTES:
            client.reply = memoryview(self._answer(bytes(client.request) if whole else b""))
        elif not data:
            self._leave(client)

    def _write(self, client: _Client) -> None:
        assert client.reply is not None  # noqa: S101 - by the caller
        client.reply = client.reply[client.connection.send(client.reply) :]
        if client.reply:
            self._selector.modify(client.connection, selectors.EVENT_WRITE)
        else:
            self._leave(client)

    def _leave(self, client: _Client) -> None:
        del self._clients[client.connection]
        self._selector.unregister(client.connection)
        with contextlib.suppress(OSError):  # what it still sends must not make a reset of our answer
            client.connection.shutdown(socket.SHUT_WR)
            client.connection.recv(REQUEST_LIMIT_BYTES)
        client.connection.close()

    def _answer(self, request: bytes) -> bytes:
        method, path = request_line(request)
        if not method:
            return _reply(Page(400, "bad request\n"))
        if method not in ("GET", "HEAD"):
            return _reply(Page(405, "only GET and HEAD\n"), "Allow: GET, HEAD\r\n")
        page_of = self._pages.get(path)
        if page_of is None:
            page = Page(404, "not found; there are " + ", ".join(self._shown) + "\n")
        else:
            try:
                page = page_of(request)
            except Exception:
                log.exception("a page could not be made", extra={"path": path[:64]})
                page = Page(500, "internal error\n")
        reply = _reply(page)
        return reply if method == "GET" else reply[: reply.index(b"\r\n\r\n") + 4]


def _whatever(page_of: Callable[[], Page]) -> Callable[[bytes], Page]:
    return lambda _request: page_of()


def request_line(request: bytes) -> tuple[str, str]:
    """Method and path without query; two empty texts for what is no request."""
    line = request.partition(b"\n")[0].decode("latin-1").rstrip("\r")
    words = line.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith("/"):
        return "", ""
    return words[0], words[1].partition("?")[0]


def who_goes(clients: Iterable[_Client]) -> _Client:
    """Of the address with the most connections the oldest. `clients`: oldest first, at least one."""
    waiting = list(clients)
    most = Counter(client.source for client in waiting).most_common(1)[0][0]
    return next(client for client in waiting if client.source == most)


def _reply(page: Page, more: str = "") -> bytes:
    body = page.body.encode(errors="replace")
    head = (
        f"HTTP/1.1 {page.status} {_WORDS.get(page.status, 'Unknown')}\r\nContent-Type: {page.content_type}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n{more}\r\n"
    )
    return head.encode() + body


def _listener(address: str, port: int) -> socket.socket:
    """Raises OSError, TypeError, UnicodeError."""
    try:
        made = _bound(socket.AF_INET6 if ":" in address else socket.AF_INET, address, port)
    except OSError as e:
        if address != EVERY_ADDRESS or e.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
            raise
        made = _bound(socket.AF_INET, "0.0.0.0", port)  # a kernel without IPv6
    made.setblocking(False)
    return made


def _bound(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(address != EVERY_ADDRESS))
        listener.bind((address, port))
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


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
