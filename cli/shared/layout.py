"""Lays out pages: spans, paragraphs, tables that fit a width, ages, counts. Pure.

A page is a list of lines, and a line is a tuple of spans. Only `span` and `line` turn text of a cluster into spans.
They make it one printable line, without escape sequences for the terminal and without right-to-left overrides.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from component.text import one_line

CELL_LIMIT = 256  # characters of one piece of free text
GAP = 2  # blanks between the columns of a table
WORD_MOST = 40
FLEXIBLE_LEAST = 24  # columns; free text is hard to read in a narrower column


class Style(Enum):
    """How a terminal shows a span. The text alone must carry the meaning. The value follows ESC."""

    PLAIN = ""
    STRONG = "[1m"
    FAINT = "[2m"
    BAD = "[31m"
    GOOD = "[32m"
    HELD = "[33m"


class Span(NamedTuple):
    text: str
    style: Style = Style.PLAIN


Line = tuple[Span, ...]
Page = list[Line]
EMPTY: Line = ()


def span(text: object, style: Style = Style.PLAIN, *, limit: int = CELL_LIMIT) -> Span:
    """Makes free text safe to show. Text that is cut off ends with `...`."""
    shown = one_line(text, limit + 1)
    return Span(shown if len(shown) <= limit else f"{shown[: limit - 3]}...", style)


def line(*parts: object) -> Line:
    """Joins spans and texts to a line. Texts are made safe, except for the blanks at their ends."""
    return tuple(part if isinstance(part, Span) else _edged(str(part)) for part in parts)


def _edged(text: str) -> Span:
    inner = text.strip(" ")
    before = len(text) - len(text.lstrip(" ")) if inner else len(text)
    after = len(text) - before - len(inner)
    return Span(" " * before + one_line(inner, 10 * CELL_LIMIT) + " " * after)


def text_of(page: Iterable[Line]) -> str:
    """The page as text without colours. Ends with a newline."""
    return "".join("".join(part.text for part in row).rstrip() + "\n" for row in page)


def painted(page: Iterable[Line]) -> str:
    """The page as text with colours, for a terminal."""
    return "".join("".join(_painted(part) for part in row).rstrip() + "\n" for row in page)


def _painted(part: Span) -> str:
    return f"\x1b{part.style.value}{part.text}\x1b[0m" if part.style.value and part.text else part.text


def columns_of(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def wrapped(parts: Line, width: int, *, indent: int = 0, hang: int | None = None) -> Page:
    """Wraps a paragraph at blanks, and words that are too long in their middle. hang: the indent after line one."""
    words: list[tuple[str, Style, bool]] = []  # text, style, whether a blank is before it
    blank = False
    for part in parts:
        pieces = part.text.split(" ")
        for place, piece in enumerate(pieces):
            blank = blank or place > 0
            if piece:
                words.append((piece, part.style, blank))
                blank = False
    page: Page = []
    edge = indent
    row: list[Span] = []
    used = edge
    for word, style, apart in _fitting(words, max(1, width - max(indent, hang or indent))):
        gap = " " if apart and row else ""
        if row and apart and used + len(gap) + columns_of(word) > width:
            page.append((Span(" " * edge), *row))
            edge, row, gap = (indent if hang is None else hang), [], ""
            used = edge
        row.append(Span(gap + word, style))
        used += len(gap) + columns_of(word)
    page.append((Span(" " * edge), *row))
    return page


def _fitting(words: list[tuple[str, Style, bool]], most: int) -> Iterable[tuple[str, Style, bool]]:
    for word, style, apart in words:
        yield word[:most], style, apart
        for begin in range(most, len(word), most):
            yield word[begin : begin + most], style, True


def flowed(parts: Sequence[Span], width: int, *, gap: int = 3) -> Page:
    """Puts spans side by side, with a line break between two spans where they do not fit."""
    page: Page = []
    row: list[Span] = []
    used = 0
    for part in parts:
        needed = columns_of(part.text)
        if row and used + gap + needed > width:
            page += wrapped(tuple(row), width) if used > width else [tuple(row)]
            row, used = [], 0
        row += [Span(" " * gap), part] if row else [part]
        used += needed + (gap if len(row) > 1 else 0)
    return page + (wrapped(tuple(row), width) if used > width else [tuple(row)])


class Column(NamedTuple):
    """A column of a table."""

    heading: str
    flexible: bool = False  # free text, wrapped if the table would be too wide
    label: str = ""  # shown before the text where the text is on its own line
    right: bool = False  # aligned to the right, for numbers


def table(columns: Sequence[Column], rows: Sequence[Sequence[Span]], width: int) -> Page:
    """Lays out a table for a width.

    If the columns do not fit, the free text of each row is put below the row, indented. If the other columns do not fit
    either, each cell is shown with its heading.
    """
    head = tuple(Span(column.heading, Style.FAINT) for column in columns)
    natural = [max(columns_of(row[place].text) for row in (head, *rows)) for place in range(len(columns))]
    flexible = [place for place, column in enumerate(columns) if column.flexible]
    fixed = sum(natural) - sum(natural[place] for place in flexible) + GAP * (len(columns) - 1)
    least = {place: _least(row[place] for row in (head, *rows)) for place in flexible}
    widths = _shared(natural, least, width - fixed)
    if widths is None:
        return _stacked(columns, head, rows, width)
    return [row for cells in (head, *rows) for row in _beside(columns, cells, widths)]


def _shared(natural: list[int], least: Mapping[int, int], left: int) -> list[int] | None:
    """The width of each column. Columns of free text share the rest of the line; None if it is too short."""
    rest = left - sum(least.values())
    if rest < 0:
        return None
    widths = [least.get(place, width) for place, width in enumerate(natural)]
    wanting = sorted(least, key=lambda place: natural[place] - least[place])
    for done, place in enumerate(wanting):
        more = min(natural[place] - least[place], rest // (len(wanting) - done))
        widths[place] += more
        rest -= more
    return widths


def _least(cells: Iterable[Span]) -> int:
    """The least width of a column of free text: no word is broken unless it is very long."""
    texts = [cell.text for cell in cells]
    word = max((columns_of(word) for text in texts for word in text.split(" ")), default=0)
    return min(max(map(columns_of, texts), default=0), max(FLEXIBLE_LEAST, min(word, WORD_MOST)))


def _beside(columns: Sequence[Column], cells: Sequence[Span], widths: Sequence[int]) -> Page:
    broken = [wrapped((cell,), room) if cell.text else [EMPTY] for cell, room in zip(cells, widths, strict=True)]
    page: Page = []
    for height in range(max(len(cell) for cell in broken)):
        row: list[Span] = []
        for column, cell, room in zip(columns, broken, widths, strict=True):
            part = cell[height] if height < len(cell) else EMPTY
            blank = Span(" " * (room - sum(columns_of(piece.text) for piece in part)))
            row += [blank, *part] if column.right else [*part, blank]
            row.append(Span(" " * GAP))
        page.append(tuple(row))
    return page


def _stacked(columns: Sequence[Column], head: Line, rows: Sequence[Sequence[Span]], width: int) -> Page:
    fixed = [place for place, column in enumerate(columns) if not column.flexible]
    narrow = [columns[place] for place in fixed]
    picked = [[row[place] for place in fixed] for row in (head, *rows)]
    widths = [max(columns_of(row[place].text) for row in picked) for place in range(len(narrow))]
    fits = sum(widths) + GAP * (len(widths) - 1) <= width
    page: Page = []
    for number, cells in enumerate((head, *rows)):
        if fits:
            page += _beside(narrow, picked[number], widths)
        elif number:
            page += flowed(
                [_labelled(column, cell) for column, cell in zip(narrow, picked[number], strict=True)], width
            )
        if number == 0:
            continue
        for column, cell in zip(columns, cells, strict=True):
            if column.flexible and cell.text and (cell.text != "-" or column.label.endswith(":")):
                bare = cell.text.startswith("- (") or not column.label
                label = "" if bare else f"{column.label} "
                page += wrapped((Span(label + cell.text, cell.style),), width, indent=GAP, hang=GAP + 2)
    return page


def _labelled(column: Column, cell: Span) -> Span:
    """A cell with its heading, for a table without a head."""
    return Span(f"{column.heading.lower()} {cell.text}".strip(), cell.style)


def age(seconds: float) -> str:
    """A duration in at most two units: 42s, 4m12s, 3h5m, 2d3h."""
    left = max(0, int(seconds))
    if left < 60:
        return f"{left}s"
    for unit_s, unit, part_s, part in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if left >= unit_s:
            rest = left % unit_s // part_s
            return f"{left // unit_s}{unit}{f'{rest}{part}' if rest else ''}"
    return ""


_SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def count(number: int, one: str, many: str = "") -> str:
    """A number with its noun: `1 node`, `2 nodes`, `5,000 nodes`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def spoken(number: int) -> str:
    """Spells out numbers up to ten."""
    return _SMALL[number] if 0 <= number < len(_SMALL) else f"{number:,}"
