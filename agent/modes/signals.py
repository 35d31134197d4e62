"""SIGTERM and SIGINT, waited for, and SIGHUP on the way."""

import contextlib
import os
import signal
from types import FrameType


class Signals:
    """SIGTERM and SIGINT through a pipe: a handler must not touch a lock that the code it interrupts may hold, and the
    kernel may give a signal to any thread, which wakes no other; so the pipe is written to where it comes. Make it
    early: process 1 of a container loses a signal that comes before its handler. first: the first one's number."""

    hung_up = False  # a SIGHUP has come; whoever acts on it takes it back

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)  # a handler never waits, however many signals come
        self.first: int | None = None
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._caught)

    def catch_hangups(self) -> None:
        """From now on a SIGHUP ends one wait(), and not the process."""
        signal.signal(signal.SIGHUP, self._caught_hangup)

    def wait(self) -> None:
        """Returns at the first signal, or once for each SIGHUP and each wake()."""
        os.read(self._reader, 1)

    def wake(self) -> None:
        """Ends one wait()."""
        with contextlib.suppress(BlockingIOError):  # full: whoever waits is woken by what is in it
            os.write(self._writer, b"?")

    def _caught(self, number: int, _frame: FrameType | None) -> None:
        if self.first is None:
            self.first = number

    def _caught_hangup(self, _number: int, _frame: FrameType | None) -> None:
        self.hung_up = True
