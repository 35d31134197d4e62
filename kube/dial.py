"""A TCP connection to a server that may come back while it is waited for.

The kernel repeats its first packet after 1, 3, 7 and 15 s (since Linux 6.5 each second at first, then after 7 and 11),
so who began before a host or a load balancer was back may wait for four seconds after it. So another socket begins
every AGAIN_S beside those that wait, which repeat theirs at other times: some packet leaves each second. The first to
be connected is taken. None is given up for another one, as the path may be slow.
"""

import errno
import math
import os
import select
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

AGAIN_S = 2.0


def dial(begin: Callable[[], socket.socket], address: Any, limit_s: float) -> socket.socket:  # noqa: ANN401 - as connect()
    """begin: makes a socket that is not connected yet. Raises OSError, TimeoutError; all that were begun but the one
    that is given back are closed then."""
    ends = time.monotonic() + limit_s
    waiting: dict[int, socket.socket] = {}
    poll = select.poll()
    with ExitStack() as closing:
        while True:
            sock = closing.enter_context(begin())
            sock.setblocking(False)
            _raise_if(sock.connect_ex(address), but=errno.EINPROGRESS)
            waiting[sock.fileno()] = sock
            poll.register(sock, select.POLLOUT)
            again = min(time.monotonic() + AGAIN_S, ends)
            while (left_s := again - time.monotonic()) > 0:
                for number, _ in poll.poll(math.ceil(left_s * 1000)):
                    connected = waiting.pop(number)
                    _raise_if(connected.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
                    closing.pop_all()
                    for other in waiting.values():
                        other.close()
                    return connected
            if again == ends:
                raise TimeoutError("timed out")


def _raise_if(error: int, *, but: int = 0) -> None:
    if error not in (0, but):
        raise OSError(error, os.strerror(error))
