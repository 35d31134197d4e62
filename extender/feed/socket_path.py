"""The path of the feed's socket: which process may own it, and which user may connect.

Any user of the host may try to connect, and the file may be anything. So no other user may write to its folder, only
the socket's owner may use it, and both ends check the user of the peer.

During a reload there are two workers, and the new one takes the path over: it binds another name and renames it, so the
path always leads to a socket. It never takes a file that is no socket, or a socket that another user's process serves.
Nothing removes the path: a file of a dead process does no harm, and the next process replaces it.
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
    """Returns the address to bind or connect to: the kernel accepts 107 bytes, and a path may have more. Raises
    OSError."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


class SocketPath:
    """A socket that listens at `path`. Construct it, then call claim() until it does not raise, and ours() now and
    then."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.listener: socket.socket | None = None
        self._bound: tuple[int, int] | None = None

    def claim(self) -> socket.socket:
        """Returns the non-blocking listening socket. Raises FeedError with the remedy."""
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
        """Returns whether the path still leads to this process, or to a living one that took it over."""
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
    """Returns (pid, uid) of the peer process, from the kernel."""
    pid, uid, _ = _CREDENTIALS.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, uid


def trusted(uid: int) -> bool:
    """Returns whether the user is this process's own, or root."""
    return uid in (os.geteuid(), 0)


def served_by(path: Path) -> int | None:
    """Returns the process id that listens at the path; None if there is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_LIMIT_S)
        try:
            with address_of(path) as address:
                probe.connect(address)
        except (ConnectionRefusedError, FileNotFoundError):
            return None
        except OSError:  # its backlog is full, or connecting is forbidden: a process is there
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
    """Returns whether the process is a worker of the same master: then this one replaces it."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return int(text.rpartition(")")[2].split()[1]) == os.getppid()
