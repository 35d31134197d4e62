"""Moves the memory of the verbs into huge pages, if the kernel has some (madvise(2), MADV_COLLAPSE, Linux 6.1).

A call begins after a switch of processes, when the processor has dropped the addresses of readygate's tables: it looks
up each page that the call touches, and there are 512 times fewer huge pages. CPython allocates by the MiB, too little
to get a huge page. If an operator has disabled them (`never`), none is requested.
"""

import ctypes
import logging
import mmap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from component.loop import Loop

log = logging.getLogger(__name__)

HUGE_BYTES = 2 * 2**20  # on x86 and, with pages of 4 KiB, on arm64
DENSE_BYTES = HUGE_BYTES * 3 // 4  # in use: so the memory in huge pages grows by a third at most
APART_S = 0.005  # one page takes a third of a millisecond, for which a call may wait
AGAIN_S = 300.0  # the recorded history grows for a while
STUCK_AFTER_S = 60.0
_COLLAPSE = 25
_SWITCH = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_MAPS = Path("/proc/self/maps")


def candidates(maps: Iterable[str]) -> Iterator[int]:
    """Returns addresses of possible huge pages: whole ones in private memory without a file. maps: lines of proc(5)'s
    `maps`."""
    for line in maps:
        place, rights, _offset, _device, inode, *name = line.split(maxsplit=5)
        if rights != "rw-p" or inode != "0" or (name and name[0].strip() != "[heap]"):
            continue
        begin, end = (int(address, 16) for address in place.split("-"))
        yield from range(-(-begin // HUGE_BYTES) * HUGE_BYTES, end - HUGE_BYTES + 1, HUGE_BYTES)


class Kernel(Protocol):
    """System calls. Both raise OSError for memory that is gone."""

    def maps(self) -> Iterable[str]: ...
    def resident_bytes(self, address: int) -> int: ...
    def collapse(self, address: int) -> None: ...


class HugePages:
    """A service whose failures are only logged, because nothing depends on it. It scans the memory of its process after
    the start, and again every AGAIN_S."""

    name = "huge-pages"

    def __init__(self, kernel: Kernel, *, sleep: Callable[[float], None]) -> None:
        self._kernel = kernel
        self._sleep = sleep
        self._held: set[int] = set()
        self._loop = Loop(self.name, self.turn, stuck_after_s=STUCK_AFTER_S)
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def turn(self) -> float:
        try:
            there = list(candidates(self._kernel.maps()))
        except OSError:
            return AGAIN_S
        self._held.intersection_update(there)
        count = 0
        for address in there:
            if self._loop.stopping:
                break
            if address not in self._held and self._hold(address):
                count += 1
                self._sleep(APART_S)
        if count:
            log.debug("moved to huge pages", extra={"pages": count, "pages_sum": len(self._held)})
        return AGAIN_S

    def _hold(self, address: int) -> bool:
        try:
            if self._kernel.resident_bytes(address) < DENSE_BYTES:
                return False
            self._kernel.collapse(address)
        except OSError:  # no huge page is free, the memory limit is near, or the memory was just returned
            return False
        self._held.add(address)
        return True


class _Linux:
    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)  # its calls release the GIL
        self._mincore, self._madvise = library.mincore, library.madvise
        self._mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
        self._madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self._pages = ctypes.create_string_buffer(HUGE_BYTES // mmap.PAGESIZE)

    def maps(self) -> Iterable[str]:
        return _MAPS.read_text().splitlines()

    def resident_bytes(self, address: int) -> int:
        self._check(self._mincore(address, HUGE_BYTES, self._pages))
        return sum(page & 1 for page in self._pages.raw) * mmap.PAGESIZE

    def collapse(self, address: int) -> None:
        self._check(self._madvise(address, HUGE_BYTES, _COLLAPSE))

    def _check(self, result: int) -> None:
        if result != 0:
            raise OSError(ctypes.get_errno(), "huge pages")


def of_this_process(sleep: Callable[[float], None]) -> HugePages | None:
    """Returns None where there are no huge pages: disabled, another page size, another system."""
    try:
        if "[never]" in _SWITCH.read_text() or mmap.PAGESIZE != 4096:
            return None
        return HugePages(_Linux(), sleep=sleep)
    except (OSError, AttributeError):
        return None
