"""Names to addresses, in threads that may be left behind: getaddrinfo knows no deadline.

A name is looked up once at a time, whoever waits for it: so one name that nobody answers for holds one thread, and
never another check. An answer is not kept: the next look-up asks anew.
"""

import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

AT_ONCE = 64  # chosen: names that a resolver without answers may keep a thread for; more names than that wait
Address = tuple[int, int, int, str, tuple[Any, ...]]


class NoThread(Exception):  # noqa: N818 - what is missing
    """The process may start no more threads."""


@dataclass(slots=True)
class _Flight:
    """One look-up. `found` and `problem` are there once it is done."""

    done: threading.Event = field(default_factory=threading.Event)
    found: list[Address] = field(default_factory=list)
    problem: Exception | None = None


class Names:
    """`at_once`: how many names may be looked up at the same time."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._slots = threading.BoundedSemaphore(at_once)
        self._lock = threading.Lock()
        self._flights: dict[str, _Flight] = {}

    def addresses(self, host: str, left_s: Callable[[], float]) -> list[Address]:
        """The addresses of a name, as getaddrinfo gives them, with port 0. `left_s`: the seconds that are left, or it
        raises TimeoutError. Raises TimeoutError, NoThread, and what getaddrinfo raises."""
        flight = self._flight(host, left_s)
        if not flight.done.wait(left_s()):
            raise TimeoutError("deadline exceeded")
        if flight.problem is not None:
            raise flight.problem
        return flight.found

    def _flight(self, host: str, left_s: Callable[[], float]) -> _Flight:
        with self._lock:
            if (flight := self._flights.get(host)) is not None:
                return flight
        if not self._slots.acquire(timeout=left_s()):
            raise TimeoutError("deadline exceeded")
        with self._lock:
            if (flight := self._flights.get(host)) is not None:  # somebody was sooner
                self._slots.release()
                return flight
            flight = self._flights[host] = _Flight()
        try:
            threading.Thread(target=self._look_up, args=(host, flight), name="lookup", daemon=True).start()
        except RuntimeError as e:
            flight.problem = NoThread("no thread for it")
            self._land(host, flight)
            raise flight.problem from e
        return flight

    def _look_up(self, host: str, flight: _Flight) -> None:
        try:
            flight.found = look_up(host)
        except (OSError, UnicodeError) as e:
            flight.problem = e
        finally:
            self._land(host, flight)

    def _land(self, host: str, flight: _Flight) -> None:
        with self._lock:
            del self._flights[host]
        self._slots.release()
        flight.done.set()


def look_up(host: str, flags: int = 0) -> list[Address]:
    """At once or never: no deadline. Raises OSError (socket.gaierror), UnicodeError."""
    found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=flags)
    return [(int(family), int(kind), protocol, name, address) for family, kind, protocol, name, address in found]
