"""What is wrong with a socket, by looking at it: the library under us tells it in words that change."""

import errno
import socket
from pathlib import Path

from agent.cri.base import Trouble

_TROUBLES = {
    errno.ENOENT: Trouble.NO_SOCKET,
    errno.ENOTDIR: Trouble.NO_SOCKET,
    errno.EACCES: Trouble.NO_RIGHTS,
    errno.EPERM: Trouble.NO_RIGHTS,
    errno.ECONNREFUSED: Trouble.NOBODY_LISTENS,
    errno.EAGAIN: Trouble.HANGS,  # as many wait to be let in as may
}


def trouble_with(path: str) -> Trouble | None:
    """None: it lets us in. Never waits."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        try:
            connection.connect(path)
        except OSError as e:
            # A file or a folder refuses as a socket does whose program has ended.
            if e.errno == errno.ECONNREFUSED and not Path(path).is_socket():
                return Trouble.NO_SOCKET
            return _TROUBLES.get(e.errno or 0, Trouble.NO_SOCKET)  # no number: the path is too long for a socket
    return None
