"""`readygate why node`: what holds for one node, why, and what it does to pods. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from cli.because import words_of
from cli.layout import EMPTY, Column, Page, Span, Style, age, count, line, span, table, wrapped
from cli.pages.status import decisions_of
from extender.web.schema import Change, DecisionTold, GatesTold, NodeTold

CHANGES_SHOWN, PODS_SHOWN = 10, 10


@dataclass(frozen=True)
class Shown:
    """told: the word of one replica; answers: of all, by name."""

    name: str
    told: NodeTold
    gates: GatesTold | None
    answers: Mapping[str, NodeTold]


def first(shown: Shown, width: int) -> Page:
    """The answer: open or closed, for whom, since when."""
    node = shown.told.node
    if node is None:
        return wrapped(line(f"Nobody knows a node {shown.name}."), width)
    if shown.told.not_answering:
        blind = f"We are blind: {shown.told.not_answering}. What was known of {shown.name} last:"
        return wrapped(line(span(blind, Style.BAD)), width)
    closing = [one for one in decisions_of(node) if not one.open and one.armed and one.severity == "gate"]
    if not closing:
        held = [one for one in decisions_of(node) if one.verdict and one.held_by in ("cap", "storm", "exempt", "pause")]
        by = f", although not healthy: held open by {', '.join(sorted({one.held_by for one in held}))}" if held else ""
        return wrapped(line(span(f"{shown.name} is open{by}.", Style.HELD if held else Style.GOOD)), width)
    oldest = max(one.since_seconds for one in closing)
    whom = ", ".join(_whom(shown, one) for one in closing)
    return wrapped(line(span(f"{shown.name} is closed for {whom}, since {age(oldest)}.", Style.BAD)), width)


def _whom(shown: Shown, decision: DecisionTold) -> str:
    gates = shown.gates.gates if shown.gates is not None else ()
    return next((gate.for_ for gate in gates if gate.gate == decision.gate), "every pod")


_GATES = (
    Column("GATE"),
    Column("STATE"),
    Column("FOR"),
    Column("BECAUSE", flexible=True),
    Column("OPENS WHEN", flexible=True, label="opens when"),
    Column("HEALTH POD", flexible=True, label="health pod"),
)
_CHANGES = (Column("AGO", right=True), Column("WHAT"), Column("GATE"), Column("BECAUSE", flexible=True))
_PODS = (Column("POD"), Column("GATE"), Column("TIMES", right=True), Column("LAST", right=True))


def page(shown: Shown, width: int, *, problems: tuple[str, ...] = ()) -> Page:
    lines = first(shown, width)
    node = shown.told.node
    if node is None:
        return lines
    for problem in problems:
        lines += wrapped(line(Span("! ", Style.HELD), problem), width, hang=2)
    lines += _disagreement(shown, width)
    rows = []
    for one in decisions_of(node):
        words = words_of(one, node.heartbeat_age_seconds)
        rows.append(
            [
                span(one.gate if one.armed else f"{one.gate} (shadow)", Style.STRONG),
                span(words.state, words.style),
                span(age(one.since_seconds)),
                span(words.because or "-"),
                span(words.opens_when or "-"),
                span(one.pod or "-"),
            ]
        )
    lines += [EMPTY, *table(_GATES, rows, width)]
    if node.heartbeat_age_seconds is not None:
        lines += [EMPTY, *wrapped(line(f"Its kubelet was heard {age(node.heartbeat_age_seconds)} ago."), width)]
    changes = shown.told.transitions
    if changes:
        told = [_change(one) for one in changes[:CHANGES_SHOWN]]
        lines += [EMPTY, *table(_CHANGES, told, width)]
    pods = shown.told.refused_pods
    if pods:
        kept = [
            [span(f"{one.namespace}/{one.name}"), span(one.gate), span(f"{one.times:,}"), span(age(one.last_seconds))]
            for one in pods[:PODS_SHOWN]
        ]
        lines += [EMPTY, *wrapped(line(f"Kept off it: {count(len(pods), 'pod')}"), width), *table(_PODS, kept, width)]
    return lines


def _change(change: Change) -> list[Span]:
    return [
        span(age(change.ago_seconds)),
        span(change.kind),
        span(change.gate),
        span(change.note or change.evidence or change.reason or "-"),
    ]


def said(answers: Mapping[str, NodeTold]) -> dict[str, str]:
    """What each replica says of the node, by its name."""
    return {who: "open" if one.node.open else one.node.reason for who, one in answers.items() if one.node}


def _disagreement(shown: Shown, width: int) -> Page:
    found = said(shown.answers)
    if len(set(found.values())) < 2:
        return []
    told = ", ".join(f"{who} says {what}" for who, what in found.items())
    return wrapped(line(Span("! ", Style.BAD), f"The extenders do not agree: {told}"), width, hang=2)
