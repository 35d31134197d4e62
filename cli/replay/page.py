"""The page of `readygate replay`: totals of both configurations, then where they differ. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime

from cli.replay.differences import Difference, ReplayResult, Totals
from cli.shared.layout import EMPTY, Column, Page, Span, Style, count, line, span, table, wrapped

SHOWN_MOST = 50


def headline(played: ReplayResult, found: Sequence[Difference]) -> str:
    """The answer in one line."""
    lasted = f"{played.ended - played.began:.0f} s of recording"
    if not found:
        return f"Nothing differs in {lasted}."
    nodes = len({one.node for one in found})
    return f"{count(len(found), 'difference')} at {count(nodes, 'node')} in {lasted}."


def render(played: ReplayResult, totals: tuple[Totals, Totals], found: Sequence[Difference], width: int) -> Page:
    page = wrapped(line(headline(played, found)), width)
    page.append(EMPTY)
    columns = [
        Column(""),
        Column("CLOSURES", right=True),
        Column("MOST AT ONCE", right=True),
        Column("CLOSED FOR", right=True),
        Column("HELD"),
    ]
    page += table(columns, [_sums_row("before", totals[0]), _sums_row("after", totals[1])], width)
    if not found:
        return page
    page.append(EMPTY)
    columns = [
        Column("AT (UTC)"),
        Column("FOR"),
        Column("NODE"),
        Column("GATE"),
        Column("BEFORE", True, "before"),
        Column("AFTER", True, "after"),
    ]
    days = _day(played.began) != _day(played.ended)
    page += table(columns, [_row(one, days=days) for one in found[:SHOWN_MOST]], width)
    if len(found) > SHOWN_MOST:
        page.append(line(span(f"... and {len(found) - SHOWN_MOST} more; -o json has all", Style.FAINT)))
    return page


def _sums_row(name: str, total: Totals) -> list[Span]:
    held = ", ".join(f"{number} by {who}" for who, number in total.held.items()) or "none"
    return [span(name), span(total.closures), span(total.most_closed), span(f"{total.closed_s:.0f} s"), span(held)]


def _day(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).strftime("%d %b")


def _row(one: Difference, *, days: bool) -> list[Span]:
    """One difference. days: whether the recording spans several days."""
    lasted = "the rest" if one.until is None else f"{one.until - one.at:.0f} s"
    at = datetime.fromtimestamp(one.at, UTC).strftime("%H:%M:%S")
    return [
        span(f"{_day(one.at)} {at}" if days else at),
        span(lasted),
        span(one.node),
        span(one.gate),
        span(_decision(one.before, one)),
        span(_decision(one.after, one)),
    ]


def _decision(reason: str | None, one: Difference) -> str:
    if reason is None:
        return "no such gate"
    if reason:
        return f"closed: {reason}"
    return f"open ({one.held_by}{': ' + one.note if one.note else ''})" if one.held_by else "open"
