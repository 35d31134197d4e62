"""Writes pages to the terminal or a pipe: width, colours, progress, and watching for changes.

Progress goes to standard error, and only to a terminal.
"""

import contextlib
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType

import msgspec

from cli.shared.errors import CommandError
from cli.shared.layout import Page, line, painted, text_of
from component.command import EXIT_INTERRUPTED

WIDTH_LEAST, WIDTH_MOST, WIDTH_OF_A_PIPE = 40, 160, 120
PROGRESS_AFTER_S = 2.0
EVERY_S = 2.0
CLEAR = "\x1b[H\x1b[2J"


def width() -> int:
    """The width of the terminal in columns. COLUMNS overrides it."""
    found = shutil.get_terminal_size((WIDTH_OF_A_PIPE, 0)).columns
    return min(WIDTH_MOST, max(WIDTH_LEAST, found))


def has_colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("", "dumb")


def show(page: Page) -> None:
    sys.stdout.write(painted(page) if has_colours() else text_of(page))


def show_json(document: object) -> None:
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")


@contextlib.contextmanager
def progress(text: str) -> Iterator[None]:
    """Shows on a terminal what is going on, from the third second on."""
    if not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()

    def show_seconds() -> None:
        began = time.monotonic()
        wait_s = PROGRESS_AFTER_S
        while not ended.wait(wait_s):
            wait_s = 1.0
            sys.stderr.write(f"\r{text}: {time.monotonic() - began:.0f} s\x1b[K")
            sys.stderr.flush()
        if wait_s != PROGRESS_AFTER_S:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    thread = threading.Thread(target=show_seconds, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@dataclass(frozen=True)
class View:
    """The result of a command, ready to be shown."""

    code: int  # the exit code
    page: Callable[[int], Page]  # draws the page for a width
    headline: str  # the answer in one line
    key: object  # changes when the answer changes, but not as time passes
    document: object  # for `-o json`
    is_last: bool = False  # True if the answer cannot change any more
    notes: tuple[str, ...] = ()  # lines for standard error
    news: Callable[[object], Sequence[str]] | None = None  # lines about changes since the view with that key


def show_view(view: View, output: str) -> int:
    """Writes the view. Returns the exit code."""
    if output == "json":
        show_json(view.document)
    else:
        show(view.page(width()))
    for note in view.notes:
        print(note, file=sys.stderr)
    return view.code


class _Stopped(BaseException):
    """SIGTERM."""


def watch(read: Callable[[], View], output: str, *, every_s: float = EVERY_S) -> int:
    """Shows the views of `read` until the last one. Returns the exit code: 0 after SIGTERM, 130 after Ctrl-C.

    A terminal shows the current page. A pipe gets a line for each change, or the document in one line with `-o json`.
    If `read` raises CommandError, the error is reported and `read` is tried again. The first error is raised.
    """

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise _Stopped

    before = signal.signal(signal.SIGTERM, stop)
    shown: object = _Stopped
    failed = ""
    try:
        while True:
            try:
                view = read()
            except CommandError as e:
                if shown is _Stopped:
                    raise
                if str(e) != failed:
                    print(f"readygate: {e}", file=sys.stderr)
                failed = str(e)
                time.sleep(every_s)
                continue
            failed = ""
            if output == "table" and sys.stdout.isatty():
                sys.stdout.write(CLEAR)
                show(_topmost(view.page(width())))
                shown = view.key
            elif view.key != shown:
                sys.stdout.writelines(f"{text}\n" for text in _changed(view, shown, output))
                shown = view.key
            sys.stdout.flush()
            if view.is_last:
                return view.code
            time.sleep(every_s)
    except _Stopped:
        return 0
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)


def _changed(view: View, shown: object, output: str) -> list[str]:
    """The lines that a pipe gets. shown: the key of the previous view, _Stopped without one."""
    if output == "json":
        return [msgspec.json.encode(view.document).decode()]
    lines = (view.headline,) if view.news is None or shown is _Stopped else view.news(shown)
    return [f"{time.strftime('%H:%M:%S')} {text}" for text in lines]


def _topmost(page: Page) -> Page:
    """The first lines of a page, as many as the terminal can show at once."""
    room = shutil.get_terminal_size().lines - 2
    return page if len(page) <= room else [*page[:room], line(f"... {len(page) - room} more lines")]
