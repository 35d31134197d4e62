"""Opens a TCP connection to a server that may return during the wait.

The kernel repeats its first packet after 1, 3, 7 and 15 s (since Linux 6.5 each second at first, then after 7 and 11).
So a connection that began before a host or a load balancer was back may wait for four seconds after it. So another
socket begins every AGAIN_S, and repeats its packets at other times: some packet leaves each second. The socket that is
connected first is used. The first socket is never given up, because the path may be slow; of the later ones only the
newest waits, or an API server whose packets are dropped would cost each thread a descriptor every other second.
"""

import errno
import math
import os
import select
import socket
import time
from collections.abc import Callable
from typing import Any

AGAIN_S = 2.0


def dial(
    begin: Callable[[], socket.socket],
    end: Callable[[socket.socket], None],
    address: Any,  # noqa: ANN401 - as connect()
    limit_s: float,
) -> socket.socket:
    """begin: makes a socket that is not connected yet. end: closes one. Raises OSError, TimeoutError. All sockets
    except the returned one are closed then."""
    ends = time.monotonic() + limit_s
    waiting: list[socket.socket] = []  # the first, and the newest
    try:
        while True:
            sock = begin()
            waiting.append(sock)
            sock.setblocking(False)
            _raise_if(sock.connect_ex(address), but=errno.EINPROGRESS)
            again = min(time.monotonic() + AGAIN_S, ends)
            connected = _wait(waiting, again)
            if connected is not None:
                waiting.remove(connected)
                return connected
            if again == ends:
                raise TimeoutError("timed out")
            if len(waiting) > 1:
                end(waiting.pop())
    finally:
        for other in waiting:
            end(other)


def _wait(waiting: list[socket.socket], until: float) -> socket.socket | None:
    """Returns the connected socket, if there is one by then."""
    poll = select.poll()
    for sock in waiting:
        poll.register(sock, select.POLLOUT)
    while (left_s := until - time.monotonic()) > 0:
        for number, _ in poll.poll(math.ceil(left_s * 1000)):
            (sock,) = [one for one in waiting if one.fileno() == number]
            _raise_if(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
            return sock
    return None


def _raise_if(error: int, *, but: int = 0) -> None:
    if error not in (0, but):
        raise OSError(error, os.strerror(error))
