"""Runs the turns of many nodes in few threads: the nearest first, each again after the seconds that it returned."""

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

AGAIN_S = 1.0  # after a turn that failed
Turn = Callable[[], float]


class Turns:
    """`late` is called with the seconds by which a turn began too late, `failed` with what a turn raised."""

    def __init__(
        self,
        threads: int,
        *,
        late: Callable[[float], None] = lambda _seconds: None,
        failed: Callable[[Exception], None] = lambda _error: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._late, self._failed, self._monotonic = late, failed, monotonic
        self._numbers = itertools.count()
        self._waiting: list[tuple[float, int, Turn]] = []
        self._lock = threading.Lock()
        # One idle thread waits for the nearest turn, the others for its place: else each turn would wake all of them.
        self._nearest, self._place = threading.Condition(self._lock), threading.Condition(self._lock)
        self._taken = False
        self._closed = False
        self._threads = [threading.Thread(target=self._run, name=f"turns-{n}", daemon=True) for n in range(threads)]

    def add(self, turn: Turn, due: float) -> None:
        """due: by the monotonic clock."""
        with self._lock:
            heapq.heappush(self._waiting, (due, next(self._numbers), turn))
            if self._waiting[0][2] is turn:
                self._nearest.notify()

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, *, wait_s: float) -> None:
        """No turn begins any more; those that run are waited for."""
        with self._lock:
            self._closed = True
            self._nearest.notify_all()
            self._place.notify_all()
        until = self._monotonic() + wait_s
        for thread in [thread for thread in self._threads if thread.is_alive()]:
            thread.join(max(0.0, until - self._monotonic()))

    def _run(self) -> None:
        while (turn := self._next()) is not None:
            try:
                pause_s = turn()
            except Exception as e:  # noqa: BLE001 - a node that fails does not end the others
                self._failed(e)
                pause_s = AGAIN_S
            self.add(turn, self._monotonic() + pause_s)

    def _next(self) -> Turn | None:
        """The next turn that is due, waited for; None after stop()."""
        with self._lock:
            while not self._closed:
                if self._taken:
                    self._place.wait()
                    continue
                pause_s = self._waiting[0][0] - self._monotonic() if self._waiting else None
                if pause_s is not None and pause_s <= 0:
                    self._place.notify()
                    self._late(-pause_s)
                    return heapq.heappop(self._waiting)[2]
                self._taken = True
                self._nearest.wait(pause_s)
                self._taken = False
        return None
