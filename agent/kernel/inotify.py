"""Reports that a file in a folder was made, replaced, moved or removed (inotify), so that its reader reads at once.

Adding a watch hangs where a mount hangs. So a reader reads first, in a child process that can be killed, and adds
watches only to folders that have just answered.
"""

import contextlib
import ctypes
import os
import struct
from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeVar

T = TypeVar("T")

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
    """Watches some folders, and their parents for a folder that comes or goes. Used by one thread. Where the kernel
    grants no watch the reader reads at its period only."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._wanted: dict[str, int] = {}
        for folder in folders:
            parent = os.path.dirname(folder.rstrip("/")) or "/"  # noqa: PTH120
            for path, mask in ((parent, _IN_ITS_PARENT), (folder, _IN_A_FOLDER)):
                self._wanted[path] = self._wanted.get(path, _ONLY_FOLDERS) | mask
        self._descriptor: int | None = None
        self._followed: dict[str, int] = {}

    def descriptor(self) -> int | None:
        """Readable when there are events."""
        return self._descriptor

    def around(self, read: Callable[[], T], came_back: Callable[[T], bool]) -> T:
        """Returns what `read` returns. Reads a second time where a watch was added after the first reading, which
        `came_back`."""
        self.taken()
        result = read()
        if came_back(result) and self.follow():
            return read()
        return result

    def taken(self) -> None:
        """Discards pending events. Called before a reading."""
        if self._descriptor is None:
            return
        with contextlib.suppress(BlockingIOError):
            while block := os.read(self._descriptor, _READ_BYTES):
                self._forget(block)

    def follow(self) -> bool:
        """Adds watches that are missing; called after a reading that came back. Returns whether it added any: changes
        between that reading and now were then not reported."""
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
        """Drops watches of folders that are gone: a folder of the same name may be made later."""
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
