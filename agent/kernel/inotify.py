"""The kernel's news of folders (inotify): what is made, replaced, moved or removed in them makes a check look at once.

A check looks first, in a child process that may be killed (`elsewhere`), and then has the folders followed: that is a
call of ours, which would wait where a mount hangs, and so is made only of folders that have just answered.
"""

import contextlib
import ctypes
import os
import struct
from collections.abc import Callable, Iterable
from functools import cache

from agent.checks.state import CheckState, Finding

_CLOEXEC_NONBLOCK = os.O_CLOEXEC | os.O_NONBLOCK  # as inotify spells them
_ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x4, 0x8, 0x40, 0x80
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x100, 0x200, 0x400, 0x800
_UNMOUNT, _IGNORED, _ONLY_FOLDERS = 0x2000, 0x8000, 0x1000000
# Not that something is read: runtimes do so all the time. A file that is made is told when it has been written.
_IN_A_FOLDER = _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _DELETE | _DELETE_SELF | _MOVE_SELF
_IN_ITS_PARENT = _CREATE | _MOVED_TO | _DELETE_SELF | _MOVE_SELF
_GONE = _DELETE_SELF | _MOVE_SELF | _UNMOUNT | _IGNORED
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, bytes of the name
_READ_BYTES = 64 * 2**10


class FolderWatch:
    """Of some folders, and of their parents as far as a folder comes or goes. From one thread. Where the kernel gives
    none, or no more, the check has its period."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._wanted: dict[str, int] = {}
        for folder in folders:
            parent = os.path.dirname(folder.rstrip("/")) or "/"  # noqa: PTH120
            for path, mask in ((parent, _IN_ITS_PARENT), (folder, _IN_A_FOLDER)):
                self._wanted[path] = self._wanted.get(path, _ONLY_FOLDERS) | mask
        self._descriptor: int | None = None
        self._followed: dict[str, int] = {}

    def descriptor(self) -> int | None:
        """Readable when there is something new."""
        return self._descriptor

    def around(self, look: Callable[[], Finding]) -> Finding:
        """What a look finds; a second one where folders are followed only since the first, which has not hung."""
        self.taken()
        finding = look()
        if finding.state is not CheckState.HUNG and self.follow():
            return look()
        return finding

    def taken(self) -> None:
        """What was told until now has been heard: what comes from here on is news. Called before a look."""
        if self._descriptor is None:
            return
        with contextlib.suppress(BlockingIOError):
            while block := os.read(self._descriptor, _READ_BYTES):
                self._forget(block)

    def follow(self) -> bool:
        """Called after a look that came back. Whether any folder is followed only from now on: then what has changed
        since that look was told to nobody."""
        if self._descriptor is None:
            made = _library().inotify_init1(_CLOEXEC_NONBLOCK)
            if made < 0:
                return False
            self._descriptor = made
        begun = False
        for path, mask in self._wanted.items():
            if path in self._followed:
                continue
            number = _library().inotify_add_watch(self._descriptor, os.fsencode(path), ctypes.c_uint32(mask))
            if number >= 0:
                self._followed[path] = number
                begun = True
        return begun

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            self._followed.clear()

    def _forget(self, block: bytes) -> None:
        """A folder that went away may be another one at the next look."""
        at = 0
        while at < len(block):
            number, mask, _, size = _EVENT.unpack_from(block, at)
            at += _EVENT.size + size
            if not mask & _GONE:
                continue
            self._followed = {path: watch for path, watch in self._followed.items() if watch != number}
            if mask & _MOVE_SELF and self._descriptor is not None:
                _library().inotify_rm_watch(self._descriptor, number)


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)
