"""The addresses of one host, with a deadline. getaddrinfo has none, so it runs in a thread that may be abandoned.

There is at most one such thread for a host. While a name server does not answer, its last answer is used: the server at
that address must still prove by its certificate that it is the API server.
"""

import socket
import threading
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Any

PATIENCE_S = 1.0  # how long to wait for a new answer if an old one is known

AddressInfo = tuple[Any, ...]  # family, kind, protocol, canonical name, address: as getaddrinfo returns them


class _Lookup:
    def __init__(self) -> None:
        self.done = threading.Event()
        self.found: Sequence[AddressInfo] = ()
        self.error: OSError | None = None


class Addresses:
    """The addresses of one host. Thread-safe. host: a name, or an IP address, which is not looked up."""

    def __init__(self, host: str, port: int | None, *, look_up: Callable[..., Any] | None = None) -> None:
        """look_up: as socket.getaddrinfo."""
        self._host = host.strip("[]")
        self._port = port
        self._look_up = look_up
        self._lock = threading.Lock()
        self._running: _Lookup | None = None
        self._known: Sequence[AddressInfo] = ()
        self._closed = False

    def find(self, limit_s: float) -> Sequence[AddressInfo]:
        """Returns at least one address. Raises TimeoutError, and OSError (socket.gaierror) if nothing is known of the
        name."""
        if _is_address(self._host):
            return self._ask(socket.AI_NUMERICHOST)
        with self._lock:
            if self._closed:
                raise ConnectionAbortedError("the client is closed")
            lookup = self._running
            if lookup is None:
                lookup = self._running = _Lookup()
                threading.Thread(target=self._run, args=(lookup,), name="api-lookup", daemon=True).start()
        lookup.done.wait(min(limit_s, PATIENCE_S) if self._known else limit_s)
        found = lookup.found or self._known
        if found:
            return found
        if self._closed:
            raise ConnectionAbortedError("the client is closed")
        raise lookup.error or TimeoutError(f"the name {self._host} was not resolved within {limit_s:g} s")

    def close(self) -> None:
        """Unblocks waiting threads. May be called twice."""
        with self._lock:
            self._closed = True
            if self._running is not None:
                self._running.done.set()

    def _run(self, lookup: _Lookup) -> None:
        try:
            lookup.found = self._known = self._ask(0)
        except OSError as e:
            lookup.error = e
        except UnicodeError as e:  # a label of more than 63 characters
            lookup.error = OSError(str(e))
        finally:
            with self._lock:
                self._running = None
            lookup.done.set()

    def _ask(self, flags: int) -> Sequence[AddressInfo]:
        found = (self._look_up or socket.getaddrinfo)(self._host, self._port, type=socket.SOCK_STREAM, flags=flags)
        if not found:
            raise OSError(f"the name {self._host} has no address")
        return tuple(found)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
