"""Accepts connections. If the process has no free descriptor, connections are refused at once.

One descriptor is kept in reserve for that case. It is freed for a moment, so that waiting connections can be accepted
and closed: a client that is refused goes on, but a client in the backlog waits for all of its timeout.
"""

import errno
import logging
import os
import select
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

from extender.serve import limits
from extender.serve.error_log import ErrorLog
from extender.verbs.counts import Lost

log = logging.getLogger(__name__)

_NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Acceptor:
    """The listeners.

    take: called with each new socket; may raise. make_place: closes a connection; returns False if there is none. lost:
    called with the number of connections that were not accepted, and the cause.
    """

    def __init__(
        self,
        epoll: select.epoll,
        take: Callable[[socket.socket, float], None],
        make_place: Callable[[Lost], bool],
        lost: Callable[[Lost, int], None],
        faults: ErrorLog,
    ) -> None:
        self._epoll = epoll
        self._take = take
        self._make_place = make_place
        self._lost = lost
        self._faults = faults
        self._listeners: dict[int, socket.socket] = {}
        self._spare: int | None = None
        self._resting = self._lacked = False
        self._gives_at = 0.0

    def __contains__(self, fd: int) -> bool:
        return fd in self._listeners

    def open(self, listeners: Sequence[socket.socket]) -> None:
        """Accepts connections of these listeners, which are non-blocking, from now on."""
        self._keep_spare()
        for listener in listeners:
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):  # accepted connections inherit these options
                listener.setsockopt(socket.SOL_SOCKET, option, limits.SOCKET_BUFFER_BYTES)
            if listener.family in {socket.AF_INET, socket.AF_INET6}:
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._listeners[listener.fileno()] = listener
            self._epoll.register(listener.fileno(), select.EPOLLIN)

    def close(self, monotonic: float) -> None:
        self._give_spare()
        for fd, listener in self._listeners.items():
            self._epoll.unregister(fd)  # closing is not enough: other processes have the same listener
            self._accept(listener, monotonic)  # connections that have arrived by now are not refused any more
            listener.close()
        self._listeners.clear()

    def accept(self, fd: int, monotonic: float) -> bool:
        """Accepts waiting connections. Returns False if there are no descriptors; then nothing is accepted until
        wake().

        In that case one connection is closed and its descriptor used at once. If that did not help, the whole machine
        has no descriptors, and no other connection is closed for a while. Connections that still wait after the pause
        are refused.
        """
        listener = self._listeners[fd]
        if self._accept(listener, monotonic):
            return True
        if monotonic >= self._gives_at and self._make_place(Lost.DESCRIPTORS):
            self._gives_at = monotonic + limits.GIVES_EVERY_S
            if self._accept(listener, monotonic):
                return True
        if self._lacked and self._refuse(listener):
            return True
        self._resting = self._lacked = True
        self._watch(0)
        return False

    def wake(self) -> None:
        if self._resting:
            self._resting = False
            self._keep_spare()
            self._watch(select.EPOLLIN)

    def _watch(self, events: int) -> None:
        for fd in self._listeners:
            self._epoll.modify(fd, events)

    def _accept(self, listener: socket.socket, monotonic: float) -> bool:
        """Returns False if no connection could be accepted because there is no descriptor."""
        for taken in range(limits.ACCEPTS_MAX):
            try:
                sock, _address = listener.accept()
            except OSError as e:
                return taken > 0 or e.errno not in _NO_DESCRIPTORS  # else no descriptor is left
            self._gives_at, self._lacked = 0.0, False
            try:
                self._take(sock, monotonic)
            except Exception:
                if self._faults.may_tell("a new connection failed"):
                    log.exception("a new connection failed")
                self._lost(Lost.FAILED, 1)
                with suppress(OSError):
                    sock.close()
        return True

    def _refuse(self, listener: socket.socket) -> bool:
        """Refuses one connection. Returns whether one was waiting."""
        if self._spare is None:
            return False
        self._give_spare()
        refused = 0
        try:
            while refused < limits.ACCEPTS_MAX:
                sock, _address = listener.accept()
                sock.close()
                refused += 1
        except OSError:
            pass  # none is left, or another thread was faster
        finally:
            self._keep_spare()
        if refused:
            self._lost(Lost.REFUSED, refused)
        return refused > 0

    def _keep_spare(self) -> None:
        if self._spare is None:
            with suppress(OSError):
                self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _give_spare(self) -> None:
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
