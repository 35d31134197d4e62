"""SIGTERM and SIGINT, waited for."""

import os
import signal
from types import FrameType


class Signals:
    """SIGTERM and SIGINT through a pipe: a handler must not touch a lock that the code it interrupts may hold. Make it
    early: process 1 of a container loses a signal that comes before its handler. first: the first one's number."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self.first: int | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._caught)

    def wait(self) -> None:
        """Returns at the first signal, or once for each wake()."""
        os.read(self._reader, 1)

    def wake(self) -> None:
        """Ends one wait()."""
        os.write(self._writer, b"?")

    def _caught(self, number: int, _frame: FrameType | None) -> None:
        if self.first is None:
            self.first = number
            os.write(self._writer, b"!")
