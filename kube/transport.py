"""urllib3 connections with what the API server needs and urllib3 lacks: a hard deadline over a whole exchange,
detection of dead peers by the kernel, and a way to unblock every reader from another thread.

urllib3's timeouts are per socket call, so a peer that sends a byte a second is never late; here each read gets only the
rest of the deadline.
"""

import http.client
import io
import math
import os
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NameResolutionError, NewConnectionError

from kube.addresses import Addresses
from kube.auth import Connection
from kube.dial import dial
from kube.errors import CredentialsInvalid

# Patroni's choice: a peer that vanished is detected within 30 s, idle or with unacknowledged data. A load balancer
# answers keepalive even if its back end is gone, so a watch needs its silence limit as well.
SOCKET_OPTIONS: list[tuple[int, int, int]] = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 20),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 3),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 25_000),  # milliseconds; keepalive gives up no sooner
]
_BLOCK_BYTES = 2**16
_LEAST_TIMEOUT_S = 0.001  # 0 would mean "do not block"


class NoConnection(HTTPError):  # noqa: N818 - what there is, not an error of ours
    """Connecting failed, or its handshake: nothing was sent. Chained to the cause."""


class Lifeline:
    """A second descriptor of one socket: shutting it down wakes a thread that connects, shakes hands or reads on the
    first.

    It is the TCP socket also under TLS, and stays valid while the TLS layer replaces the first descriptor's owner.
    """

    def __init__(self, second: socket.socket) -> None:
        self._sock = second

    def cut(self) -> None:
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:  # never connected, or the peer was faster
            return

    def __del__(self) -> None:
        self._sock.close()


class Lifelines:
    """The lifelines of all open sockets of one client. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: weakref.WeakSet[Lifeline] = weakref.WeakSet()
        self._cut = False

    def register(self, sock: socket.socket) -> Lifeline:
        """Raises ConnectionAbortedError once cut."""
        with self._lock:
            if self._cut:
                raise ConnectionAbortedError("the client is closed")
            lifeline = Lifeline(socket.socket(fileno=os.dup(sock.fileno())))
            self._open.add(lifeline)
        return lifeline

    def cut(self) -> None:
        with self._lock:
            self._cut = True
            lines = list(self._open)
        for line in lines:
            line.cut()


class TimedReader(io.RawIOBase):
    """The receiving side of a socket; every read ends at `deadline` (time.monotonic) with TimeoutError.

    patience_s: a read without bytes for so long returns None and sets `dry`; infinite at first.
    """

    def __init__(self, sock: socket.socket, deadline: float, lifeline: Lifeline | None) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)  # keeps the socket open until the answer is read
        self._lifeline = lifeline
        self.deadline = deadline
        self.patience_s = math.inf
        self.dry = False
        self._timeout_s = math.inf

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:  # noqa: ANN401 - a writable buffer has no name before 3.12
        left_s = self.deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        timeout_s = min(left_s, self.patience_s)
        if timeout_s or self._timeout_s:  # everything available is read in many pieces without waiting
            self._sock.settimeout(timeout_s)
            self._timeout_s = timeout_s
        try:
            return self._sock.recv_into(buffer)
        except (TimeoutError, BlockingIOError, ssl.SSLWantReadError):
            if self.patience_s >= left_s:
                raise TimeoutError("timed out") from None
            self.dry = True
            return None

    def take_rest(self, blocks: list[bytes], most_bytes: int) -> bool:
        """Appends everything available as TLS returns it: one block for each event of a watch, which a buffer above
        would copy one by one. Returns whether that was the end; else `dry` says whether it was everything. Waits for
        nothing, and must not be called while such a buffer holds bytes."""
        if self._timeout_s:
            self._sock.settimeout(0.0)
            self._timeout_s = 0.0
        receive, taken_bytes = self._sock.recv, 0
        try:
            while taken_bytes < most_bytes:
                block = receive(_BLOCK_BYTES)
                if not block:
                    return True
                blocks.append(block)
                taken_bytes += len(block)
        except (BlockingIOError, ssl.SSLWantReadError):
            self.dry = True
        return False

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
            self._lifeline = None
        super().close()


def _end(lifelines: dict[socket.socket, Lifeline], sock: socket.socket) -> None:
    """Closes both of its descriptors."""
    lifelines.pop(sock, None)
    sock.close()


class _Timed(HTTPConnection):
    """`timeout` of each phase (set by urllib3) is a deadline for that phase: connecting and sending, the answer."""

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - urllib3's own
        lifelines: Lifelines,
        addresses: Addresses,
        dialled: Callable[[float], socket.socket] | None,
        **kwargs: Any,  # noqa: ANN401 - urllib3's own
    ) -> None:
        super().__init__(*args, **kwargs)
        self.lifelines = lifelines
        self._addresses = addresses
        self._dialled = dialled
        self.lifeline: Lifeline | None = None
        self.reader: TimedReader | None = None
        self.answer: http.client.HTTPResponse | None = None
        self._connected_in_s = 0.0
        self.response_class = self._timed_response  # type: ignore[assignment]

    def _limit_s(self) -> float:
        return float(self.timeout) if isinstance(self.timeout, int | float) else 60.0

    def _left_s(self) -> float:
        return max(self._limit_s() - self._connected_in_s, _LEAST_TIMEOUT_S)

    def _new_conn(self) -> socket.socket:
        began = time.monotonic()
        if self._dialled is not None:
            sock = self._dialled(self._limit_s())
            self.lifeline = self.lifelines.register(sock)
            self._connected_in_s = time.monotonic() - began
            sock.settimeout(self._left_s())
            return sock
        try:
            addresses = self._addresses.find(self._limit_s())
        except TimeoutError as e:
            raise ConnectTimeoutError(self, str(e)) from e
        except OSError as e:
            raise NameResolutionError(self.host, self, e) from e  # type: ignore[arg-type]
        failure: OSError = OSError("the name has no address")
        for number, (family, kind, protocol, _, address) in enumerate(addresses):
            lifelines: dict[socket.socket, Lifeline] = {}
            begin, end = partial(self._begin, lifelines, family, kind, protocol), partial(_end, lifelines)
            left_s = began + self._limit_s() - time.monotonic()
            try:
                # An equal share for each: an unreachable IPv6 address leaves time for the others.
                sock = dial(begin, end, address, max(left_s / (len(addresses) - number), _LEAST_TIMEOUT_S))
            except OSError as e:
                failure = e
            else:
                self.lifeline = lifelines[sock]
                self._connected_in_s = time.monotonic() - began
                sock.settimeout(self._left_s())  # for the TLS handshake
                return sock
            finally:
                lifelines.clear()  # each holds its socket open, and a stored error holds them
        if isinstance(failure, TimeoutError):
            raise ConnectTimeoutError(self, "connecting took too long") from failure
        raise NewConnectionError(self, str(failure)) from failure

    def _begin(self, lifelines: dict[socket.socket, Lifeline], *kind: int) -> socket.socket:
        sock = socket.socket(*kind)
        try:
            for option in SOCKET_OPTIONS:
                sock.setsockopt(*option)
            lifelines[sock] = self.lifelines.register(sock)
        except OSError:
            sock.close()
            raise
        return sock

    def connect(self) -> None:
        try:
            super().connect()
        except (HTTPError, OSError, ValueError) as e:
            raise NoConnection(str(e)) from e

    def send(self, data: Any) -> None:  # noqa: ANN401 - http.client's own
        if self.sock is None:
            self.connect()
        self.sock.settimeout(self._left_s())
        super().send(data)

    def _timed_response(self, sock: socket.socket, *, method: str | None = None) -> http.client.HTTPResponse:
        self._connected_in_s = 0.0
        response = http.client.HTTPResponse(sock, method=method)
        response.fp.close()
        self.reader = TimedReader(sock, time.monotonic() + self._limit_s(), self.lifeline)
        response.fp = io.BufferedReader(self.reader, 65536)
        self.answer = response
        return response

    def close(self) -> None:
        self.lifeline = None  # an answer that is still being read holds its own
        self.reader = None
        self.answer = None
        super().close()


class _TimedTLS(_Timed, HTTPSConnection):
    """The same over TLS, with the certificates at the time of connecting."""

    def __init__(self, *args: Any, newest: Callable[[], ssl.SSLContext], **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, ssl_context=newest(), **kwargs)
        self._newest = newest

    def connect(self) -> None:
        self.ssl_context = self._newest()
        super().connect()

    def send(self, data: Any) -> None:  # noqa: ANN401 - http.client's own
        try:
            super().send(data)
        except ssl.SSLEOFError:
            # The server closed before the request was written. If it refused the client certificate, its alert can
            # still be read and names the cause: with TLS 1.3 it comes after the client's handshake is complete.
            with suppress(ConnectionError, TimeoutError):
                self.sock.recv(1)
            raise


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Timed


class _TLSPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TimedTLS

    def _validate_conn(self, conn: Any) -> None:  # noqa: ANN401 - urllib3's own
        # Without the warning on each request if the kubeconfig says insecure-skip-tls-verify: the user chose it.
        if conn.is_closed:
            conn.connect()


def _contexts(connection: Connection) -> Callable[[], ssl.SSLContext]:
    """Returns the TLS context for a new connection."""
    tls = connection.tls
    if tls is not None:
        return lambda: tls.context(time.monotonic())
    fixed = connection.ssl_context or ssl.create_default_context()
    return lambda: fixed


class Transport:
    """One server: a pool for calls, and separate connections for watches."""

    def __init__(self, connection: Connection, *, pool_size: int) -> None:
        try:
            url = urlsplit(connection.server)
            port = url.port
        except ValueError:  # an incomplete IPv6 address, or an invalid port
            url, port = urlsplit(""), -1
        if url.scheme not in ("http", "https") or not url.hostname or port == -1:
            raise CredentialsInvalid(
                f"the API server's address is {connection.server!r}: give it as https://host:port (server)"
            )
        self.prefix = url.path.rstrip("/")
        self._connection = connection
        self._lifelines = Lifelines()
        self._tls = url.scheme == "https"
        self._newest = _contexts(connection) if self._tls else ssl.create_default_context
        self._used: ssl.SSLContext | None = None
        port = port or (443 if self._tls else 80)
        self._addresses = Addresses(url.hostname, port)
        self._kwargs: dict[str, Any] = {
            "host": url.hostname,
            "port": port,
            "lifelines": self._lifelines,
            "addresses": self._addresses,
            "dialled": connection.dial,
        }
        if self._tls:
            self._kwargs["newest"] = self._take_newest
            if connection.tls_server_name:
                self._kwargs["server_hostname"] = connection.tls_server_name
        self._pool_size = pool_size
        self.pool = self._new_pool()

    def drop_kept(self) -> None:
        """Closes idle connections: the server knows them by the old credentials."""
        old, self.pool = self.pool, self._new_pool()
        old.close()

    def is_renewed(self) -> bool:
        """Returns whether a new connection would use other certificates than the last one did."""
        return self._tls and self._used is not None and self._newest() is not self._used

    def _take_newest(self) -> ssl.SSLContext:
        self._used = self._newest()
        return self._used

    def _new_pool(self) -> urllib3.HTTPConnectionPool:
        pool = _TLSPool if self._tls else _Pool
        return pool(maxsize=self._pool_size, block=False, retries=False, **self._kwargs)

    def own_connection(self, *, timeout_s: float) -> _Timed:
        """Returns a connection outside the pool; `timeout_s` bounds connecting and sending, and then the
        answer's head."""
        kind = _TimedTLS if self._tls else _Timed
        return kind(timeout=timeout_s, **self._kwargs)

    def close(self) -> None:
        """Unblocks every reader, writer and connecting thread of this transport. May be called twice."""
        self._addresses.close()
        self._lifelines.cut()
        self.pool.close()
