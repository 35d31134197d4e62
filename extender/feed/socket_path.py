"""The path of the feed's socket: who may have it, and who may connect.

Any user of the host may try to connect, and the file may be anything. So the folder is one that nobody else writes to,
the socket is its owner's alone, and both ends look at the user of the other one.

A reload has two workers for a while, and the new one takes the path over: it binds another name and renames it, so the
path always leads to a socket. What it never takes is a file that is no socket, or one that a process of somebody else
is serving. Nobody removes the path: a file left by a dead process harms nobody, and whoever comes next replaces it.
"""

import os
import socket
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from extender.feed.wire import FeedError

PROBE_LIMIT_S = 0.5
_CREDENTIALS = struct.Struct("3i")


@contextmanager
def address_of(path: Path) -> Iterator[str]:
    """What to bind or connect to: the kernel takes 107 bytes, and a path may have more. Raises OSError."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


class SocketPath:
    """A socket that listens at `path`. Construct, then claim() until it does not raise; ours() now and then."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.listener: socket.socket | None = None
        self._bound: tuple[int, int] | None = None

    def claim(self) -> socket.socket:
        """The listening socket, non-blocking. Raises FeedError, with what to do about it."""
        _keep_others_out(self.path.parent)
        _refuse_what_is_anothers(self.path)
        temporary = self.path.with_name(f".{os.getpid()}")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            temporary.unlink(missing_ok=True)
            with address_of(temporary) as address:
                listener.bind(address)
            temporary.chmod(0o600)
            listener.listen(16)
            found = temporary.stat()
            temporary.rename(self.path)
        except OSError as e:
            listener.close()
            raise FeedError(f"feed.socket {self.path}: cannot listen: {e.strerror}; choose another path") from e
        self.close()
        self.listener, self._bound = listener, (found.st_dev, found.st_ino)
        return listener

    def ours(self) -> bool:
        """Whether the path still leads to us, or to somebody alive who took it over."""
        try:
            found = self.path.lstat()
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._bound or served_by(self.path) is not None

    def close(self, before: Callable[[socket.socket], object] = lambda _: None) -> None:
        """before: called with the listening socket, if there is one."""
        if self.listener is not None:
            before(self.listener)
            self.listener.close()
            self.listener = None


def peer(connected: socket.socket) -> tuple[int, int]:
    """(pid, uid) of the process at the other end, by the kernel."""
    pid, uid, _ = _CREDENTIALS.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, uid


def trusted(uid: int) -> bool:
    """Our own user, or root."""
    return uid in (os.geteuid(), 0)


def served_by(path: Path) -> int | None:
    """Process id of whoever listens at the path; None if nobody does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_LIMIT_S)
        try:
            with address_of(path) as address:
                probe.connect(address)
        except (ConnectionRefusedError, FileNotFoundError):
            return None
        except OSError:  # its backlog is full, or it may not be asked: somebody is there
            return 0
        return peer(probe)[0]


def _keep_others_out(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.stat()
    except OSError as e:
        raise FeedError(f"feed.socket: {folder}: {e.strerror}; make it, or choose another folder") from e
    if found.st_uid not in (os.geteuid(), 0) or stat.S_IMODE(found.st_mode) & 0o022:
        raise FeedError(f"feed.socket: others may write to {folder}; choose a folder that only this user writes to")


def _refuse_what_is_anothers(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    except OSError as e:
        raise FeedError(f"feed.socket {path}: {e.strerror}; choose another path") from e
    if not stat.S_ISSOCK(found.st_mode):
        raise FeedError(f"feed.socket {path} is there and is no socket; remove it or choose another path")
    pid = served_by(path)
    if pid is not None and pid != os.getpid() and not _of_our_master(pid):
        raise FeedError(f"feed.socket {path} is served by process {pid}; stop that one or choose another path")


def _of_our_master(pid: int) -> bool:
    """Whether it is a worker of the same master as we: then we are to take its place."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return int(text.rpartition(")")[2].split()[1]) == os.getppid()
