"""What the kernel has to tell wakes the check that waits for it: a descriptor becomes readable, as that of its log.

One thread for all of them. A check that is told so runs at once and not at its next period; that remains as it was.
"""

import os
import select
from collections.abc import Callable

from component.loop import Loop

WAIT_S = 5.0  # the thread turns as often without any news
PAUSE_S = 0.05  # after news: a flood of them is told twenty times a second
STUCK_S = 15.0


class KernelEvents:
    """`loop`: its thread, to be started and stopped with those of the checks."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._end = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._end, select.EPOLLIN)
        self._tells: dict[int, Callable[[], None]] = {}
        self.loop = Loop("check-events", self._turn, stuck_after_s=STUCK_S, join_limit_s=0.0, unblock=self._unblock)

    def follow(self, descriptor: int | None, tell: Callable[[], None]) -> None:
        """Calls `tell` when there is something new. May be repeated; a descriptor that was closed is forgotten."""
        if descriptor is None:
            return
        self._tells[descriptor] = tell
        try:
            self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLPRI | select.EPOLLET)
        except FileExistsError:  # the same as before
            pass
        except PermissionError:  # a regular file, which is always readable: its check has its period
            del self._tells[descriptor]

    def _turn(self) -> float:
        news = self._epoll.poll(WAIT_S)
        for descriptor, _ in news:
            if (tell := self._tells.get(descriptor)) is not None:
                tell()
        return PAUSE_S if news else 0.0

    def _unblock(self) -> None:
        os.eventfd_write(self._end, 1)
