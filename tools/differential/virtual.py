"""Threads that take turns, by a clock that passes when all wait: what `threading` is to a module that is played.

One runs at a time, the others are parked; whoever plays decides how far the clock goes. A wait that nobody ends is over
at its deadline, which costs no time.
"""

import math
import threading
from collections.abc import Callable
from typing import Self

MOST_TURNS = 20_000
"""Of one history; more are those of a thread that never waits."""


def _shut() -> threading.Lock:
    """One lets the other go on by its release."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class _Over(BaseException):
    """Ends a thread wherever it waits."""


class Virtual:
    """Has of `threading` what workers use. `monotonic` is the time. A context: what runs at its end is ended."""

    Lock = staticmethod(threading.Lock)  # held while nobody waits, so it is free whenever somebody asks

    def __init__(self, monotonic: float) -> None:
        self.monotonic = monotonic
        self.over = False
        self._threads: list[_Thread] = []
        self._running: _Thread | None = None
        self._back = _shut()
        self._turns = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.over = True
        for thread in list(self._threads):
            self._resume(thread)

    @property
    def name(self) -> str:
        """Of the thread whose turn it is."""
        return "" if self._running is None else self._running.name

    def Thread(self, *, target: Callable[[], None], name: str, daemon: bool) -> "_Thread":  # noqa: ARG002, N802
        return _Thread(self, target, name)

    def Condition(self) -> "_Condition":  # noqa: N802
        return _Condition(self)

    def Event(self) -> "_Event":  # noqa: N802
        return _Event(self)

    def advance(self, until: float) -> None:
        """Lets everybody go on to that time, and what is due then happen. Raises what a thread has ended with."""
        while True:
            while due := [t for t in self._threads if t.until <= self.monotonic]:
                for thread in due:
                    self._resume(thread)
            soonest = min((t.until for t in self._threads), default=math.inf)
            if soonest > until:
                self.monotonic = max(self.monotonic, until)
                return
            self.monotonic = soonest

    def sleep(self, seconds: float) -> None:
        """Of the thread whose turn it is."""
        self.park(self.monotonic + seconds)

    def park(self, until: float) -> "_Thread":
        """The thread whose turn it is waits until then, or until its `until` is brought forward."""
        thread = self._running
        assert thread is not None, "whoever plays never waits"
        thread.until = until
        self._back.release()
        thread.go.acquire()
        if self.over:
            raise _Over
        return thread

    def begin(self, thread: "_Thread") -> None:
        self._threads.append(thread)

    def ended(self, thread: "_Thread") -> None:
        self._threads.remove(thread)
        self._back.release()

    def _resume(self, thread: "_Thread") -> None:
        self._turns += 1
        if self._turns > MOST_TURNS and not self.over:
            raise RuntimeError("a thread never waits")
        self._running = thread
        thread.resume()
        self._back.acquire()
        self._running = None
        if thread.failed is not None and not self.over:
            raise thread.failed


class _Thread:
    """`until`: when its turn comes; it runs on when it is given it."""

    def __init__(self, virtual: Virtual, target: Callable[[], None], name: str) -> None:
        self.name, self.until = name, math.inf
        self.go = _shut()
        self.failed: Exception | None = None
        self._virtual, self._target = virtual, target
        self._real: threading.Thread | None = None
        self._alive = False

    def start(self) -> None:
        self._alive, self.until = True, self._virtual.monotonic
        self._virtual.begin(self)

    def is_alive(self) -> bool:
        return self._alive

    def join(self, timeout: float | None = None) -> None:
        """Nobody waits for one here."""

    def resume(self) -> None:
        if self._real is not None:
            self.go.release()
        elif self._virtual.over:
            self._ends()
        else:
            self._real = threading.Thread(target=self._run, name=self.name, daemon=True)
            self._real.start()

    def _run(self) -> None:
        try:
            self._target()
        except _Over:
            pass
        except Exception as e:  # noqa: BLE001 - told to whoever plays
            self.failed = e
        self._ends()

    def _ends(self) -> None:
        self._alive = False
        self._virtual.ended(self)


class _Waited:
    """What threads wait for together."""

    def __init__(self, virtual: Virtual) -> None:
        self._virtual = virtual
        self._waiting: list[_Thread] = []

    def _wait(self, timeout: float | None) -> bool:
        """False: the time was over."""
        virtual = self._virtual
        thread = virtual._running
        assert thread is not None
        self._waiting.append(thread)
        virtual.park(math.inf if timeout is None else virtual.monotonic + timeout)
        if thread in self._waiting:
            self._waiting.remove(thread)
            return False
        return True

    def _wake(self) -> None:
        for thread in self._waiting:
            thread.until = self._virtual.monotonic
        self._waiting.clear()


class _Condition(_Waited):
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        pass

    def wait(self, timeout: float | None = None) -> bool:
        return self._wait(timeout)

    def notify(self) -> None:
        self._wake()


class _Event(_Waited):
    _set = False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        self._wake()

    def wait(self, timeout: float | None = None) -> bool:
        return self._set or self._wait(timeout) or self._set
