"""What master and worker have to say to each other, over a pair of sockets that closes when one of them has gone.

A signal says one thing only, is lost while a process starts, and a dead master sends none.
"""

import contextlib
import os
import signal
import socket
from enum import Enum


class Message(Enum):
    """What a worker is told. ACCEPT: take connections at once, synced or not. RETIRE: take no more connections, go on
    with those that there are. STOP: as SIGTERM. GONE: there is no master any more."""

    ACCEPT = b"a"
    RETIRE = b"r"
    STOP = b"s"
    GONE = b""


_SYNCED = b"y"


class WorkerEnd:
    """The worker's end. fileno() becomes readable when there is something to read()."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock

    def fileno(self) -> int:
        return self._sock.fileno()

    def read(self) -> list[Message]:
        """The words that have come since the last time, in order. GONE comes alone, and again each time."""
        try:
            said = self._sock.recv(64)
        except BlockingIOError:
            return []
        except OSError:
            said = b""
        return [Message(said[i : i + 1]) for i in range(len(said))] or [Message.GONE]

    def tell_synced(self) -> None:
        """Said by a worker when it has its first snapshot. A master that has gone is read, not noticed here."""
        with contextlib.suppress(OSError):
            self._sock.send(_SYNCED)
            # The master sleeps for up to a second between two looks; a child's signal wakes it, whoever sends it.
            os.kill(os.getppid(), signal.SIGCHLD)

    def close(self) -> None:
        self._sock.close()


class MasterEnd:
    """The master's end of one worker's link. synced: whether the worker has told so, by the last listen()."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self.synced = False

    def listen(self) -> None:
        with contextlib.suppress(OSError):
            self.synced = self.synced or _SYNCED in self._sock.recv(64)

    def tell(self, word: Message) -> None:
        """A worker that has gone is reaped, not noticed here."""
        with contextlib.suppress(OSError):
            self._sock.send(word.value)

    def close(self) -> None:
        self._sock.close()


def make_link() -> tuple[MasterEnd, WorkerEnd]:
    """Before the fork; each side closes the other's end after it. Raises OSError."""
    ours, theirs = socket.socketpair()
    return MasterEnd(ours), WorkerEnd(theirs)
