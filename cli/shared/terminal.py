"""The terminal, or what stands in its place: its width, whether it shows colours, one page after the other.

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
    """Of the terminal; COLUMNS overrides it."""
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
    """Says what takes so long, from the third second on."""
    if not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()

    def tell() -> None:
        began = time.monotonic()
        wait_s = PROGRESS_AFTER_S
        while not ended.wait(wait_s):
            wait_s = 1.0
            sys.stderr.write(f"\r{text}: {time.monotonic() - began:.0f} s\x1b[K")
            sys.stderr.flush()
        if wait_s != PROGRESS_AFTER_S:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@dataclass(frozen=True)
class View:
    """What a command found.

    page: drawn for a width. headline: its answer in one line. key: changes when the answer does, and not because time
    has gone by. document: for `-o json`. is_last: whether to watch on is of no use. notes: lines for standard error.
    news: what has come since the view of another key, a line for each; not given: the headline says it all.
    """

    code: int
    page: Callable[[int], Page]
    headline: str
    key: object
    document: object
    is_last: bool = False
    notes: tuple[str, ...] = ()
    news: Callable[[object], Sequence[str]] | None = None


def show_view(view: View, output: str) -> int:
    """Its exit code."""
    if output == "json":
        show_json(view.document)
    else:
        show(view.page(width()))
    for note in view.notes:
        print(note, file=sys.stderr)
    return view.code


class _Stopped(BaseException):
    """SIGTERM."""


def watch(look: Callable[[], View], output: str, *, every_s: float = EVERY_S) -> int:
    """Shows what `look` gives until it says that this was the last, SIGTERM (0) or Ctrl-C (130).

    On a terminal the page is drawn anew; elsewhere a line is written each time that the answer has changed, or one for
    each thing that is new, with `-o json` the document in one line. A look that fails is told, and tried again, but for
    the first: that raises CommandError.
    """

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise _Stopped

    before = signal.signal(signal.SIGTERM, stop)
    shown: object = _Stopped
    failed = ""
    try:
        while True:
            try:
                view = look()
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
    """Lines for who has no terminal. shown: the key of the view before, _Stopped for none."""
    if output == "json":
        return [msgspec.json.encode(view.document).decode()]
    told = (view.headline,) if view.news is None or shown is _Stopped else view.news(shown)
    return [f"{time.strftime('%H:%M:%S')} {text}" for text in told]


def _topmost(page: Page) -> Page:
    """What of it a terminal can show at once: what scrolls away is not seen, and the first lines are the answer."""
    room = shutil.get_terminal_size().lines - 2
    return page if len(page) <= room else [*page[:room], line(f"... {len(page) - room} lines more")]
