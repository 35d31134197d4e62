"""What the person reads: numbered sentences while it happens, a table at the end."""

import shutil
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tools.kit.waiting import wait_for

_WIDEST = 110
_NARROWEST = 40
_BESIDE = 90  # below it a table of three columns is unreadable
_MARGIN = "      "
T = TypeVar("T")


def width() -> int:
    """Of the terminal, as far as text is pleasant to read; without a terminal: the widest."""
    return min(max(shutil.get_terminal_size((_WIDEST, 24)).columns, _NARROWEST), _WIDEST)


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
        self.paragraph(sentence, f"{self._number:>3}.  ")

    def note(self, sentence: str) -> None:
        self.paragraph(sentence, _MARGIN)

    def quote(self, text: str) -> None:
        """Words of the cluster, unchanged but for line ends."""
        for line in textwrap.wrap(text, width() - len(_MARGIN) - 2, break_on_hyphens=False):
            self._write(f"{_MARGIN}| {line}")

    def seen(self, step: str, seen: str, seconds: float) -> None:
        """Books a row and says it."""
        self.rows.append(Row(f"{self._number}. {step}", seen, seconds))
        self.note(f"Seen after {seconds:.1f} s: {seen}.")

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
        """Step, what was seen, seconds; nothing where nothing was waited for."""
        if self.rows:
            self._write("")
            for line in table(self.rows, width()):
                self._write(line)
            self._write("")

    def paragraph(self, sentence: str, first: str = "") -> None:
        """`first`: what stands before the first line; the others begin below the text."""
        # Paths and addresses are copied: they stay whole.
        wrapper = textwrap.TextWrapper(width(), break_long_words=False, break_on_hyphens=False)
        wrapper.initial_indent, wrapper.subsequent_indent = first, " " * len(first)
        for line in wrapper.wrap(sentence):
            self._write(line)


def table(rows: list[Row], columns: int) -> list[str]:
    """Lines of at most so many columns, as far as words can be broken."""
    return _three_columns(rows, columns) if columns >= _BESIDE else _two_columns(rows, columns)


def _three_columns(rows: list[Row], columns: int) -> list[str]:
    step_width = max([len(row.step) for row in rows] + [4])
    seen_width = columns - step_width - 11
    lines = [f" {'step':<{step_width}}  {'seen':<{seen_width}}  {'s':>5}"]
    lines.append(f" {'-' * step_width}  {'-' * seen_width}  -----")
    for row in rows:
        first, *rest = textwrap.wrap(row.seen, seen_width) or [""]
        lines.append(f" {row.step:<{step_width}}  {first:<{seen_width}}  {_seconds(row):>5}")
        lines += [f" {'':<{step_width}}  {line}" for line in rest]
    return lines


def _two_columns(rows: list[Row], columns: int) -> list[str]:
    """What was seen stands below its step."""
    step_width = columns - 8
    lines = [f" {'step and what was seen':<{step_width}}  {'s':>5}", f" {'-' * step_width}  -----"]
    for row in rows:
        lines.append(f" {row.step:<{step_width}}  {_seconds(row):>5}")
        lines += [f"     {line}" for line in textwrap.wrap(row.seen, columns - 5)]
    return lines


def _seconds(row: Row) -> str:
    return "-" if row.seconds is None else f"{row.seconds:.1f}"
