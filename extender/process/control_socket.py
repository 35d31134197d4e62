"""Messages between master and worker, over a pair of sockets that closes when one of them is gone.

A signal carries one message only, can be lost while a process starts, and a dead master sends none.
"""

import contextlib
import os
import signal
import socket
from enum import Enum


class Message(Enum):
    """A message to a worker.

    ACCEPT: accept connections at once, synced or not. RETIRE: accept no more connections, continue with existing ones.
    STOP: as SIGTERM. GONE: the master is gone.
    """

    ACCEPT = b"a"
    RETIRE = b"r"
    STOP = b"s"
    GONE = b""


_SYNCED = b"y"


class WorkerEnd:
    """The worker's end. fileno() becomes readable when read() has something."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock

    def fileno(self) -> int:
        return self._sock.fileno()

    def read(self) -> list[Message]:
        """Returns the messages since the last call, in order. GONE comes alone, and again at each call."""
        try:
            said = self._sock.recv(64)
        except BlockingIOError:
            return []
        except OSError:
            said = b""
        return [Message(said[i : i + 1]) for i in range(len(said))] or [Message.GONE]

    def tell_synced(self) -> None:
        """Reports that this worker has its first snapshot. Ignores a master that is gone; read() reports that."""
        with contextlib.suppress(OSError):
            self._sock.send(_SYNCED)
            # The master sleeps for up to a second between two checks. SIGCHLD wakes it, whichever process sends it.
            os.kill(os.getppid(), signal.SIGCHLD)

    def close(self) -> None:
        self._sock.close()


class MasterEnd:
    """The master's end for one worker. synced: whether the worker has reported so, as of the last listen()."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self.synced = False

    def listen(self) -> None:
        with contextlib.suppress(OSError):
            self.synced = self.synced or _SYNCED in self._sock.recv(64)

    def tell(self, word: Message) -> None:
        """Sends a message. Ignores a worker that is gone; the master reaps it."""
        with contextlib.suppress(OSError):
            self._sock.send(word.value)

    def close(self) -> None:
        self._sock.close()


def make_link() -> tuple[MasterEnd, WorkerEnd]:
    """Makes both ends, before the fork; each side closes the other's end after it. Raises OSError."""
    ours, theirs = socket.socketpair()
    return MasterEnd(ours), WorkerEnd(theirs)
