"""The page of `readygate history`: the changes, newest first. Pure."""

from dataclasses import dataclass

from cli.shared.layout import EMPTY, Column, Page, Span, Style, age, count, line, span, table, wrapped
from extender.web.report import Change, HistoryTold

_COLUMNS = (
    Column("AGO", right=True),
    Column("CHANGE"),
    Column("NODE"),
    Column("GATE"),
    Column("CAUSE", flexible=True),
)
_WORDS = {
    "closed": ("closed", Style.BAD),
    "opened": ("opened", Style.GOOD),
    "held": ("held", Style.HELD),
    "released": ("released", Style.PLAIN),
    "cap": ("cap reached", Style.HELD),
    "storm": ("storm begins", Style.BAD),
    "stormEnded": ("storm ends", Style.GOOD),
    "order": ("order", Style.HELD),
}


@dataclass(frozen=True)
class History:
    """What the page shows."""

    replica: str  # the extender whose memory is shown
    answer: HistoryTold
    filter: str = ""  # the filters in words, as ` of node n-1`


def headline(history: History) -> str:
    answer = history.answer
    back = (
        ""
        if answer.since_start_seconds is None
        else f" in the {age(answer.since_start_seconds)} that the extender remembers"
    )
    number = f"{count(len(answer.events), 'change')}{history.filter}{back}"
    return f"The newest {number.removeprefix('1 ')}; there are more" if answer.continue_ else number


def render(history: History, width: int, *, problems: tuple[str, ...] = ()) -> Page:
    lines = wrapped(line(span(f"{headline(history)}.", Style.STRONG)), width)
    if history.answer.forgotten:
        lines += wrapped(line(f"{history.answer.forgotten:,} older changes were dropped."), width)
    for problem in problems:
        lines += wrapped(line(Span("! ", Style.HELD), problem), width, hang=2)
    if history.answer.events:
        lines += [EMPTY, *table(_COLUMNS, [row(one) for one in history.answer.events], width)]
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
    """One change in one line, for a watch without a terminal."""
    _, what, node, gate, cause = (part.text for part in row(change))
    return f"{node} {what} (gate {gate}): {cause}"
