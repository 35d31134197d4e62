"""The page of `readygate replay`: totals of both configurations, then where they differ. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime

from cli.replay.differences import Difference, Played, Sums
from cli.shared.layout import EMPTY, Column, Page, Span, Style, count, line, span, table, wrapped

SHOWN_MOST = 50


def headline(played: Played, found: Sequence[Difference]) -> str:
    """The answer in one line."""
    lasted = f"{played.ended - played.began:.0f} s of recording"
    if not found:
        return f"Nothing differs in {lasted}."
    nodes = len({one.node for one in found})
    return f"{count(len(found), 'difference')} at {count(nodes, 'node')} in {lasted}."


def render(played: Played, totals: tuple[Sums, Sums], found: Sequence[Difference], width: int) -> Page:
    told = wrapped(line(headline(played, found)), width)
    told.append(EMPTY)
    columns = [
        Column(""),
        Column("CLOSURES", right=True),
        Column("MOST AT ONCE", right=True),
        Column("CLOSED FOR", right=True),
        Column("HELD"),
    ]
    told += table(columns, [_sums_row("before", totals[0]), _sums_row("after", totals[1])], width)
    if not found:
        return told
    told.append(EMPTY)
    columns = [
        Column("AT (UTC)"),
        Column("FOR"),
        Column("NODE"),
        Column("GATE"),
        Column("BEFORE", True, "before"),
        Column("AFTER", True, "after"),
    ]
    days = _day(played.began) != _day(played.ended)
    told += table(columns, [_row(one, days=days) for one in found[:SHOWN_MOST]], width)
    if len(found) > SHOWN_MOST:
        told.append(line(span(f"... and {len(found) - SHOWN_MOST} more; -o json has all", Style.FAINT)))
    return told


def _sums_row(name: str, total: Sums) -> list[Span]:
    held = ", ".join(f"{number} by {who}" for who, number in total.held.items()) or "none"
    return [span(name), span(total.closures), span(total.most_closed), span(f"{total.closed_s:.0f} s"), span(held)]


def _day(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).strftime("%d %b")


def _row(one: Difference, *, days: bool) -> list[Span]:
    """days: whether the recording is of several."""
    lasted = "the rest" if one.until is None else f"{one.until - one.at:.0f} s"
    at = datetime.fromtimestamp(one.at, UTC).strftime("%H:%M:%S")
    return [
        span(f"{_day(one.at)} {at}" if days else at),
        span(lasted),
        span(one.node),
        span(one.gate),
        span(_said(one.before, one)),
        span(_said(one.after, one)),
    ]


def _said(reason: str | None, one: Difference) -> str:
    if reason is None:
        return "no such gate"
    if reason:
        return f"closed: {reason}"
    return f"open ({one.held_by}{': ' + one.note if one.note else ''})" if one.held_by else "open"
