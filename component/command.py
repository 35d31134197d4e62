"""What the command lines of all programs do alike: exit codes, one-line errors, signals, the product's version."""

import os
import signal
import sys
from importlib.metadata import PackageNotFoundError, version
from types import FrameType

from component.text import one_line

EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130


def complain(program: str, text: object, code: int) -> int:
    """Writes `program: text` as one line to standard error. Returns `code`."""
    print(f"{program}: {one_line(text, 1000)}", file=sys.stderr)
    return code


def product_version() -> str:
    try:
        return version("readygate")
    except PackageNotFoundError:
        return "unknown"


class Signals:
    """SIGTERM and SIGINT through a pipe: a handler must not touch a lock that the code it interrupts may hold. Make it
    early: process 1 of a container loses a signal that comes before its handler. first: the first one's number."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self.first: int | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._caught)

    def wait(self) -> None:
        os.read(self._reader, 1)

    def _caught(self, number: int, _frame: FrameType | None) -> None:
        if self.first is None:
            self.first = number
            os.write(self._writer, b"!")
