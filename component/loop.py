"""A thread that turns and knows whether it does."""

import logging
import math
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

from component.text import one_line

log = logging.getLogger(__name__)
LOG_AGAIN_S = 600.0  # how often the same failure of a turn is logged


@dataclass(eq=False)
class Loop:
    """Calls turn() in a thread of its own, from start() to stop(). Every method may be called from any thread.

    turn: returns the seconds until its next call at the latest; math.inf: only after wake(). An exception is logged
    once per kind and place in ten minutes; the next turn is after error_pause_s. stuck_after_s: the longest turn, or
    time between its calls of progressed(). unblock: called by stop() to end a turn that waits. at_end: called in the
    thread after the last turn; stop() waits for both, at most join_limit_s.
    """

    name: str
    turn: Callable[[], float]
    _: KW_ONLY
    stuck_after_s: float
    first_pause_s: float = 0.0
    error_pause_s: float = 1.0
    join_limit_s: float = 1.0
    unblock: Callable[[], None] = lambda: None
    at_end: Callable[[], None] = lambda: None
    monotonic: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)  # start() and wake()
    _stopping: threading.Event = field(init=False, default_factory=threading.Event)
    _asleep: threading.Lock = field(init=False, default_factory=threading.Lock)  # an Event would cost two thirds more
    _thread: threading.Thread | None = field(init=False, default=None)  # made by start(): a fork would leave it dead
    _due: float = field(init=False, default=-math.inf)  # when the next sign of life must have come
    _logged_at: dict[object, float] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._asleep.acquire()

    @property
    def stopping(self) -> bool:
        """Whether stop() was called: a long turn looks at this and returns."""
        return self._stopping.is_set()

    def start(self) -> None:
        """May be called twice. After stop() it does nothing: what was stopped stays so."""
        with self._lock:
            if self._thread is None and not self.stopping:
                self.progressed(self.first_pause_s)
                # Kept before it turns: whoever sees what its first turn did finds it healthy.
                self._thread = threading.Thread(None, self._run, self.name, [self.first_pause_s], daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Returns when the thread has ended, or after join_limit_s. May be called twice, without start(), in a turn."""
        self._stopping.set()
        self.wake()
        self.unblock()
        if (thread := self._thread) is not None and thread.is_alive() and thread is not threading.current_thread():
            thread.join(self.join_limit_s)
            if thread.is_alive():
                log.info("thread did not end in time", extra={"loop": self.name, "limitSeconds": self.join_limit_s})

    def wake(self) -> None:
        """Makes the next turn come at once. One during a turn is for the next; many before it count as one."""
        with self._lock:
            if self._asleep.locked():
                self._asleep.release()

    def progressed(self, pause_s: float = 0.0) -> None:
        """A sign of life from within a long turn. pause_s: how long it will wait on purpose now."""
        self._due = self.monotonic() + max(0.0, pause_s) + self.stuck_after_s

    def healthy(self, monotonic: float) -> bool:
        """The thread lives and is not stuck in a turn. False before start() and after the end."""
        return self._thread is not None and self._thread.is_alive() and monotonic <= self._due

    def _run(self, pause_s: float) -> None:
        while not self.stopping:
            self._asleep.acquire(timeout=min(max(0.0, pause_s), threading.TIMEOUT_MAX))
            pause_s = 0.0 if self.stopping else self._guarded(self.turn)
        self._guarded(self.at_end)

    def _guarded(self, call: Callable[[], float | None]) -> float:
        self.progressed()
        try:
            pause_s = call() or 0.0
        except Exception as e:
            *_, (frame, line) = traceback.walk_tb(e.__traceback__)
            kind, now = (type(e), frame.f_code, line), self.monotonic()
            if now - self._logged_at.get(kind, -math.inf) >= LOG_AGAIN_S:
                self._logged_at[kind] = now
                error = one_line("".join(traceback.format_exception_only(e)).partition(": ")[2])  # str(e) may fail
                log.exception("turn failed", extra={"loop": self.name, "cause": type(e).__name__, "error": error})
            self.progressed(self.error_pause_s)
            self._stopping.wait(self.error_pause_s)  # woken or not: a bug of ours shall not eat a processor
            return 0.0
        self.progressed(pause_s)
        return pause_s
