"""The listeners: who comes is taken, and while there are no descriptors for it nobody is."""

import errno
import select
import socket
from collections.abc import Callable, Sequence

from extender.serve import limits

_NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Entrance:
    """take: is given each new socket. make_place: ends a connection, False if there is none."""

    def __init__(
        self,
        epoll: select.epoll,
        take: Callable[[socket.socket, float], None],
        make_place: Callable[[str], bool],
    ) -> None:
        self._epoll = epoll
        self._take = take
        self._make_place = make_place
        self._listeners: dict[int, socket.socket] = {}
        self._resting = False
        self._gives_at = 0.0

    def __contains__(self, fd: int) -> bool:
        return fd in self._listeners

    def open(self, listeners: Sequence[socket.socket]) -> None:
        """listeners: non-blocking."""
        for listener in listeners:
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):  # of the connections too, which inherit them
                listener.setsockopt(socket.SOL_SOCKET, option, limits.SOCKET_BUFFER_BYTES)
            if listener.family in {socket.AF_INET, socket.AF_INET6}:
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._listeners[listener.fileno()] = listener
            self._epoll.register(listener.fileno(), select.EPOLLIN)

    def close(self, monotonic: float) -> None:
        for fd, listener in self._listeners.items():
            self._epoll.unregister(fd)  # closing alone does not: others have the same listener
            self._accept(listener, monotonic)  # who has come until now is not refused any more
            listener.close()
        self._listeners.clear()

    def accept(self, fd: int, monotonic: float) -> bool:
        """Takes who has come. False if there are no descriptors, so that nobody is taken until wake().

        One connection gives its own then. Before another one has to, somebody was taken by it, or a second has passed:
        they may be lacking to the whole machine.
        """
        if self._accept(self._listeners[fd], monotonic):
            return True
        if monotonic >= self._gives_at and self._make_place("descriptors"):
            self._gives_at = monotonic + limits.GIVES_EVERY_S
            return True
        self._resting = True
        self._watch(0)
        return False

    def wake(self) -> None:
        if self._resting:
            self._resting = False
            self._watch(select.EPOLLIN)

    def _watch(self, events: int) -> None:
        for fd in self._listeners:
            self._epoll.modify(fd, events)

    def _accept(self, listener: socket.socket, monotonic: float) -> bool:
        for _ in range(limits.ACCEPTS_MAX):
            try:
                sock, _address = listener.accept()
            except OSError as e:
                return e.errno not in _NO_DESCRIPTORS  # else there is none, any more
            self._gives_at = 0.0
            self._take(sock, monotonic)
        return True
