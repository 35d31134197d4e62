"""TCP connections with one deadline for everything: name, connect, each read and write. Mirrors pkg/probe/dialer.

Python's socket timeouts count per call, so a peer that sends a byte a second is never too late; here every call gets
only what is left.
"""

import ipaddress
import math
import os
import re
import socket
import struct
import time
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from agent.probe.hosts import is_domain_name
from agent.probe.names import Address, Names, NoThread, look_up
from agent.probe.targets import is_address, join_host_port

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

NOT_TLS = "server gave HTTP response to HTTPS client"
LONGEST_S = 1e8  # of one call: what the kernel takes is limited
CLOSE_S = 0.01
ADDRESSES = 512  # hosts and ports that are remembered
_LINGER_1_S = struct.pack("ii", 1, 1)  # shortens TIME_WAIT of probes (#89898)

# What the C library takes for an address and Go for a name: 127.1, 0x7f.1, 0177.0.0.1, 2130706433.
_NUMBERS = re.compile(r"(?i:0x[0-9a-f]*|[0-9]+)(?:\.(?i:0x[0-9a-f]*|[0-9]+)){0,3}")
_LEADING_DIGITS = re.compile("[0-9]+")
MOST_ZONES = 0xFFFFFF
_NOWHERE = ipaddress.IPv6Address("::")
_names = Names()


class Connection(Protocol):
    """What is done with one, whether it speaks TLS or not. Calls raise TimeoutError, OSError."""

    def settimeout(self, seconds: float, /) -> None: ...
    def sendall(self, data: bytes, /) -> None: ...
    def recv(self, size: int, /) -> bytes: ...
    def close(self) -> None: ...


class Link(socket.socket):
    """A socket that blocks, with a limit of the kernel's own: Python's costs a poll before each call."""

    __slots__ = ("_limit_s",)

    def settimeout(self, value: float | None, /) -> None:
        """Of each call from now on, in seconds. A limit that is hardly longer stays."""
        limit_s = LONGEST_S if value is None else min(value, LONGEST_S)
        if 0.0 <= getattr(self, "_limit_s", math.inf) - limit_s < CLOSE_S:
            return
        self._limit_s = limit_s
        whole_s = int(limit_s)
        limit = struct.pack("ll", whole_s, max(1, int((limit_s - whole_s) * 1e6)))
        self.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)

    def connect(self, address: "tuple[Any, ...] | str | Buffer", /) -> None:
        try:
            super().connect(address)
        except BlockingIOError as e:
            raise TimeoutError("timed out") from e

    def sendall(self, data: "Buffer", flags: int = 0, /) -> None:
        try:
            super().sendall(data, flags)
        except BlockingIOError as e:
            raise TimeoutError("timed out") from e

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        try:
            return super().recv(bufsize, flags)
        except BlockingIOError as e:
            raise TimeoutError("timed out") from e


class DialError(Exception):
    """No connection; the text is the one of Go's dialer."""


class Deadline:
    """A point in monotonic time."""

    def __init__(self, timeout_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.monotonic = monotonic
        self.at = monotonic() + timeout_s

    def left_s(self) -> float:
        """Seconds left, more than 0. Raises TimeoutError when there are none."""
        left = self.at - self.monotonic()
        if left <= 0:
            raise TimeoutError("deadline exceeded")
        return left


def connect(host: str, port: int, deadline: Deadline) -> socket.socket:
    """Opens a TCP connection. An empty host is this machine, as in Go. Raises DialError, TimeoutError."""
    addresses = _addresses(host, port, deadline)
    problem: OSError | None = None
    for index, (family, kind, protocol, _, address) in enumerate(addresses):
        connection = Link(family, kind, protocol)
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
    raise DialError(f"dial tcp {join_host_port(as_dialled(host, addresses), port)}: {_cause(problem)}") from problem


def as_dialled(host: str, addresses: list[Address]) -> str:
    """As Go's dialer names it: a name by its first address, an address with its zone, nothing as nothing."""
    if not host:
        return ""
    first: str = addresses[0][4][0]
    bare, percent, zone = first.partition("%")
    if is_address(host):
        _, percent, zone = host.partition("%")
    address = ipaddress.ip_address(bare)  # what the C library writes with dots may be no address of IPv4 for Go
    return str(getattr(address, "ipv4_mapped", None) or address) + percent + zone


def _addresses(host: str, port: int, deadline: Deadline) -> list[Address]:
    if not 0 <= port <= 65535:
        raise DialError(f"dial tcp: address {port}: invalid port")
    if not host:
        return [
            (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", port)),
            (socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("::1", port)),
        ]
    try:
        if (known := _of_address(host, port)) is not None:
            return known
        if is_address(host):
            found = _numeric(host)
        elif not is_domain_name(host) or _NUMBERS.fullmatch(host):
            raise DialError(f"dial tcp: lookup {host}: no such host")
        else:
            found = _names.addresses(host, deadline.left_s)
    except (socket.gaierror, UnicodeError) as e:
        raise DialError(f"dial tcp: lookup {host}: {_lookup_cause(e)}") from e
    except NoThread as e:
        raise DialError(f"dial tcp: lookup {host}: {e}") from e
    return [(family, kind, protocol, name, (to[0], port, *to[2:])) for family, kind, protocol, name, to in found]


@lru_cache(maxsize=ADDRESSES)
def _of_address(host: str, port: int) -> list[Address] | None:
    """Of an IP address without a zone, whose number may change; None for any other host. Raises OSError."""
    if "%" in host or not is_address(host):
        return None
    return [(*one[:4], (one[4][0], port, *one[4][2:])) for one in _numeric(host)]


def _numeric(host: str) -> list[Address]:
    """Nowhere, whatever its zone, is nowhere of IPv4 too (internetAddrList of net/ipsock.go). Raises OSError."""
    found = look_up(_with_zone_number(host), socket.AI_NUMERICHOST)
    if ipaddress.ip_address(host.partition("%")[0]) == _NOWHERE:
        found += look_up("0.0.0.0", socket.AI_NUMERICHOST)
    return found


def _with_zone_number(host: str) -> str:
    """The C library takes a zone by its name only where the address is link-local. One that nobody has is its number,
    or none (zoneCache of net/interface.go)."""
    address, percent, zone = host.partition("%")
    if not percent:
        return host
    try:
        number = socket.if_nametoindex(zone)
    except (OSError, UnicodeError, ValueError):
        digits = _LEADING_DIGITS.match(zone)
        number = min(int(digits[0][:9]), MOST_ZONES) if digits else 0
    return f"{address}%{number}" if number else address


def _lookup_cause(error: Exception) -> str:
    """The host `.` alone is a name for Go and none for Python's codec."""
    is_missing = isinstance(error, socket.gaierror) and error.errno in (socket.EAI_NONAME, socket.EAI_NODATA)
    if is_missing or not isinstance(error, OSError):
        return "no such host"
    return str(error.strerror).lower()


def _cause(error: OSError | None) -> str:
    if isinstance(error, TimeoutError) and error.errno is None:
        return "i/o timeout"
    return f"connect: {os.strerror(error.errno).lower()}" if error and error.errno else f"connect: {error}"
