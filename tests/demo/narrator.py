"""What the person reads: numbered sentences while it happens, a table at the end."""

import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tests.kit.waiting import wait_for

WIDTH = 110
_MARGIN = "      "
T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """`seconds` None: it was not seen."""

    step: str
    seen: str
    seconds: float | None


class StepMissedError(Exception):
    """A step was not seen in time; str = its name, what was wanted, what was seen instead."""


class Narrator:
    """Collects one row for each thing that was waited for."""

    def __init__(self, write: Callable[[str], None]):
        self.rows: list[Row] = []
        self._write = write
        self._number = 0

    def step(self, sentence: str) -> None:
        """Begins the next step with what is done now."""
        self._number += 1
        self._write("")
        self._paragraph(f"{self._number:>3}.  ", sentence)

    def note(self, sentence: str) -> None:
        self._paragraph(_MARGIN, sentence)

    def quote(self, text: str) -> None:
        """Words of the cluster, unchanged but for line ends."""
        for line in textwrap.wrap(text, WIDTH - len(_MARGIN) - 2):
            self._write(f"{_MARGIN}| {line}")

    def lines(self, lines: list[str]) -> None:
        for line in lines:
            self._write(f"{_MARGIN}{line}")

    def seen(self, step: str, seen: str, seconds: float) -> None:
        """Books a row and says it."""
        self.rows.append(Row(f"{self._number}. {step}", seen, seconds))
        self._paragraph(_MARGIN, f"Seen after {seconds:.1f} s: {seen}.")

    def await_seen(
        self,
        step: str,
        look: Callable[[], T | None],
        seen: Callable[[T], str],
        *,
        right: Callable[[T], bool] = lambda _: True,
        instead: Callable[[], str],
        limit_s: float,
        since: float | None = None,
    ) -> T:
        """Waits until `look` finds something, which must be `right`, and books what `seen` says of it.

        since: monotonic time from which the seconds count, if not from now. Raises StepMissedError.
        """
        started = time.monotonic() if since is None else since
        found = wait_for(look, timeout_s=limit_s, every_s=0.1)
        seconds = time.monotonic() - started
        if found is None or not right(found):
            why = f"not seen within {limit_s:.0f} s" if found is None else f"something else was seen: {seen(found)}"
            self.rows.append(Row(f"{self._number}. {step}", "NOT SEEN", None))
            raise StepMissedError(f"step {self._number}, {step}: {why}. The API server shows: {instead()}")
        self.seen(step, seen(found), seconds)
        return found

    def table(self) -> None:
        """Step, what was seen, seconds."""
        step_width = max([len(row.step) for row in self.rows] + [4])
        seen_width = WIDTH - step_width - 11
        self._write("")
        self._write(f" {'step':<{step_width}}  {'seen':<{seen_width}}  {'s':>5}")
        self._write(f" {'-' * step_width}  {'-' * seen_width}  -----")
        for row in self.rows:
            seconds = "-" if row.seconds is None else f"{row.seconds:.1f}"
            first, *rest = textwrap.wrap(row.seen, seen_width) or [""]
            self._write(f" {row.step:<{step_width}}  {first:<{seen_width}}  {seconds:>5}")
            for line in rest:
                self._write(f" {'':<{step_width}}  {line}")
        self._write("")

    def _paragraph(self, first: str, sentence: str) -> None:
        rest = " " * len(first)
        for line in textwrap.wrap(sentence, WIDTH, initial_indent=first, subsequent_indent=rest):
            self._write(line)
