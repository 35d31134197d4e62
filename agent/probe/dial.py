"""TCP connections with one deadline for everything: name, connect, TLS, each read and write. Mirrors pkg/probe/dialer.

Python's socket timeouts count per call, so a peer that sends a byte a second is never too late; here every call gets
only what is left.
"""

import contextlib
import io
import os
import socket
import ssl
import struct
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from agent.probe.names import Address, Names, NoThread, look_up
from agent.probe.targets import is_address, join_host_port

TLS_HANDSHAKE_LIMIT_S = 10.0  # net/http's transport of kubelet
_LINGER_1_S = struct.pack("ii", 1, 1)  # shortens TIME_WAIT of probes (#89898)

_names = Names()


class DialError(Exception):
    """No connection; the text is the one of Go's dialer."""


class Deadline:
    """A point in monotonic time."""

    def __init__(self, timeout_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self.at = monotonic() + timeout_s

    def left_s(self) -> float:
        """Seconds left, more than 0. Raises TimeoutError when there are none."""
        left = self.at - self._monotonic()
        if left <= 0:
            raise TimeoutError("deadline exceeded")
        return left


class DeadlineSocket:
    """A connected socket whose every call ends at the deadline. `makefile` always gives the same buffer."""

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self.connection = connection
        self._deadline = deadline
        raw: Any = _Reader(connection, deadline)
        self._reader: io.BufferedReader = io.BufferedReader(raw, 16 * 2**10)

    def sendall(self, data: bytes) -> None:
        self.connection.settimeout(self._deadline.left_s())
        self.connection.sendall(data)

    def makefile(self, mode: str) -> io.BufferedReader:  # noqa: ARG002 - what http.client calls
        return self._reader

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.close()


class _Reader(io.RawIOBase):
    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self._connection = connection
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a writable buffer
        self._connection.settimeout(self._deadline.left_s())
        return self._connection.recv_into(buffer)

    def close(self) -> None:
        """http.client closes its file early; the connection is closed by who opened it."""


def connect(host: str, port: int, deadline: Deadline) -> socket.socket:
    """Opens a TCP connection. An empty host is this machine, as in Go. Raises DialError, TimeoutError."""
    addresses = _addresses(host, port, deadline)
    problem: OSError | None = None
    for index, (family, kind, protocol, _, address) in enumerate(addresses):
        connection = socket.socket(family, kind, protocol)
        try:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_1_S)
            connection.settimeout(deadline.left_s() / (len(addresses) - index))
            connection.connect(address)
        except OSError as e:
            connection.close()
            problem = problem or e
        else:
            return connection
    deadline.left_s()
    first = addresses[0][4]
    raise DialError(f"dial tcp {join_host_port(first[0], first[1])}: {_cause(problem)}") from problem


def wrap_tls(connection: socket.socket, host: str, deadline: Deadline) -> socket.socket:
    """TLS without any verification, as kubelet's. Raises TimeoutError, OSError."""
    wrapped = _tls_context().wrap_socket(
        connection, server_hostname=None if is_address(host) or not host else host, do_handshake_on_connect=False
    )
    try:
        wrapped.settimeout(min(deadline.left_s(), TLS_HANDSHAKE_LIMIT_S))
        wrapped.do_handshake()
    except BaseException:
        wrapped.close()
        raise
    return wrapped


@lru_cache(maxsize=1)
def _tls_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # a probe asks whether it answers, not who it is
    context.set_ciphers("DEFAULT:@SECLEVEL=0")  # OpenSSL's level 2 refuses short keys even without verification
    context.set_alpn_protocols(["http/1.1"])
    return context


def _addresses(host: str, port: int, deadline: Deadline) -> list[Address]:
    if not 0 <= port <= 65535:
        raise DialError(f"dial tcp: address {port}: invalid port")
    if not host:
        return [
            (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", port)),
            (socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("::1", port)),
        ]
    try:
        found = look_up(host, socket.AI_NUMERICHOST) if is_address(host) else _names.addresses(host, deadline.left_s)
    except (socket.gaierror, UnicodeError) as e:
        raise DialError(f"dial tcp: lookup {host}: {_lookup_cause(e)}") from e
    except NoThread as e:
        raise DialError(f"dial tcp: lookup {host}: {e}") from e
    return [(family, kind, protocol, name, (to[0], port, *to[2:])) for family, kind, protocol, name, to in found]


def _lookup_cause(error: Exception) -> str:
    if isinstance(error, socket.gaierror) and error.errno in (socket.EAI_NONAME, socket.EAI_NODATA):
        return "no such host"
    return str(error.strerror).lower() if isinstance(error, OSError) else str(error)


def _cause(error: OSError | None) -> str:
    if isinstance(error, TimeoutError) and error.errno is None:
        return "i/o timeout"
    return f"connect: {os.strerror(error.errno).lower()}" if error and error.errno else f"connect: {error}"
