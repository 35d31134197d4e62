"""`readygate history`: what has happened, the newest first. Pure."""

from dataclasses import dataclass

from cli.layout import EMPTY, Column, Page, Span, Style, age, count, line, span, table, wrapped
from extender.web.schema import Change, HistoryTold

_COLUMNS = (
    Column("AGO", right=True),
    Column("WHAT"),
    Column("NODE"),
    Column("GATE"),
    Column("BECAUSE", flexible=True),
)
_WORDS = {
    "closed": ("closed", Style.BAD),
    "opened": ("opened", Style.GOOD),
    "held": ("held", Style.HELD),
    "released": ("let go", Style.PLAIN),
    "cap": ("cap reached", Style.HELD),
    "storm": ("storm begins", Style.BAD),
    "stormEnded": ("storm ends", Style.GOOD),
    "order": ("order", Style.HELD),
}


@dataclass(frozen=True)
class History:
    """replica: whose memory it is. wanted: what was asked for, in words."""

    replica: str
    told: HistoryTold
    wanted: str = ""


def headline(history: History) -> str:
    told = history.told
    back = "" if told.since_start_seconds is None else f" in {age(told.since_start_seconds)}, as far as we remember"
    number = f"{count(len(told.events), 'change')}{history.wanted}{back}"
    return f"The newest {number.removeprefix('1 ')}; there are more" if told.continue_ else number


def page(history: History, width: int, *, problems: tuple[str, ...] = ()) -> Page:
    lines = wrapped(line(span(f"{headline(history)}.", Style.STRONG)), width)
    if history.told.forgotten:
        lines += wrapped(line(f"{history.told.forgotten:,} older ones are forgotten."), width)
    for problem in problems:
        lines += wrapped(line(Span("! ", Style.HELD), problem), width, hang=2)
    if history.told.events:
        lines += [EMPTY, *table(_COLUMNS, [row(one) for one in history.told.events], width)]
    return lines


def row(change: Change) -> list[Span]:
    word, style = _WORDS.get(change.kind, (change.kind, Style.PLAIN))
    by = f" by {change.held_by}" if change.kind == "held" and change.held_by else ""
    return [
        span(age(change.ago_seconds)),
        span(f"{word}{by}", style),
        span(change.node or "-", Style.STRONG),
        span(change.gate or "-"),
        span(change.note or change.evidence or change.reason or "-"),
    ]


def sentence(change: Change) -> str:
    """One change in one line, for those who watch without a terminal."""
    _, what, node, gate, why = (part.text for part in row(change))
    return f"{node} {what} (gate {gate}): {why}"
