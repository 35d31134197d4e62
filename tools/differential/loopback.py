"""A network of our own with nothing but loopback, and what listens on it for the probes of a history."""

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41
_ANSWER = b"HTTP/1.0 200 OK\r\n\r\n"
_PATIENCE_S = 60.0


def leave_network() -> bool:
    """Whether this thread, and what is started from it from now on, is in a network of its own. False where that is not
    allowed. Only a process of one thread can do so without being root."""
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(_NEW_NETWORK if uid == 0 else _NEW_USER | _NEW_NETWORK) != 0:
        return False
    try:
        if uid != 0:
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
            Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP_AND_RUNNING))
    except OSError:
        return False
    return True


@cache
def ports() -> tuple[str, str, str]:
    """Of a server on both families, one on IPv4 and one on IPv6 alone; they end with the process. Raises OSError.

    Where one does not answer, nobody else is to: other processes have servers in this network, too.
    """
    both = _paired("127.0.0.1", lambda port: _serve("::1", port))
    four = _paired("127.0.0.1", lambda port: _keep("::1", port))
    return both, four, _paired("::1", lambda port: _keep("127.0.0.1", port))


def _paired(address: str, take: Callable[[int], object]) -> str:
    """The port of a server at this address, of which `take` has the other family. Raises OSError."""
    for _ in range(100):
        listener, port = _serve(address, 0)
        with contextlib.suppress(OSError):
            take(port)
            return str(port)
        listener.close()
    raise OSError("no port is free on both families")


@cache  # so that it is held
def _keep(address: str, port: int) -> socket.socket:
    """Nobody listens there from now on. Raises OSError: somebody does."""
    kept = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    kept.bind((address, port))
    return kept


def _serve(address: str, port: int) -> tuple[socket.socket, int]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, port), family=family)
    threading.Thread(target=_answer, args=(listener,), daemon=True).start()
    return listener, listener.getsockname()[1]


def _answer(listener: socket.socket) -> None:
    """Whatever asks by HTTP is answered; a probe that only connects is let go."""
    with contextlib.suppress(OSError):  # it is closed
        while True:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.settimeout(_PATIENCE_S)
                if connection.recv(4096):
                    connection.sendall(_ANSWER)
