"""What the steps of a run print, on one terminal and each to its log."""

import contextlib
import re
import subprocess
import threading
import time
from pathlib import Path

PROGRESS_S = 60.0
_ENDED = re.compile(r"\b\d+ (passed|failed|error)")
_terminal = threading.RLock()  # re-entrant: the signal handler speaks too


def say(text: str, end: str = "\n") -> None:
    # When the terminal was closed nobody reads, and the steps must still be ended. RuntimeError: in a signal handler,
    # in the middle of a print.
    with _terminal, contextlib.suppress(OSError, RuntimeError):
        print(text, end=end, flush=True)


class Output:
    """What one step prints, to its log and to the terminal. closing: the test runner's closing words."""

    def __init__(self, name: str, log: Path, *, held: bool) -> None:
        self.closing: list[str] = []
        self._name = name
        self._log = log
        self._held = held
        self._lines: list[str] = []

    def copy(self, child: "subprocess.Popen[str]") -> None:
        told = time.monotonic()
        with self._log.open("w", buffering=1) as log:
            for line in child.stdout or ():
                log.write(line)
                if _ENDED.search(line):
                    self.closing.append(line.strip(" =\n"))
                if not self._held:
                    say(line, end="")
                    continue
                self._lines.append(line)
                if line.strip() and time.monotonic() - told > PROGRESS_S:
                    told = time.monotonic()
                    say(f"== beside, {self._name}: {line.strip()}")

    def tell(self) -> None:
        """What was held back."""
        if self._held:
            say(f"\n== what {self._name} has printed\n{''.join(self._lines)}== end of {self._name}")
