"""The output of the steps of a run: all on one terminal, each in a log of its own."""

import contextlib
import re
import subprocess
import threading
import time
from pathlib import Path

PROGRESS_S = 60.0
_ENDED = re.compile(r"\b\d+ (passed|failed|error)")
_terminal = threading.RLock()  # re-entrant: the signal handler prints too


def say(text: str, end: str = "\n") -> None:
    # OSError: the terminal was closed, and the steps must still be ended. RuntimeError: a signal handler interrupted
    # another print.
    with _terminal, contextlib.suppress(OSError, RuntimeError):
        print(text, end=end, flush=True)


class Output:
    """Copies what one step prints to its log and to the terminal. closing: the lines in which pytest counts results."""

    def __init__(self, name: str, log: Path, *, held: bool) -> None:
        self.closing: list[str] = []
        self._name = name
        self._log = log
        self._held = held
        self._lines: list[str] = []

    def copy(self, child: "subprocess.Popen[str]") -> None:
        printed_at = time.monotonic()
        with self._log.open("w", buffering=1) as log:
            for line in child.stdout or ():
                log.write(line)
                if _ENDED.search(line):
                    self.closing.append(line.strip(" =\n"))
                if not self._held:
                    say(line, end="")
                    continue
                self._lines.append(line)
                if line.strip() and time.monotonic() - printed_at > PROGRESS_S:
                    printed_at = time.monotonic()
                    say(f"== {self._name}: {line.strip()}")

    def print_held(self) -> None:
        """Prints the output that was held back, if any was."""
        if self._held:
            say(f"\n== output of {self._name}\n{''.join(self._lines)}== end of {self._name}")
