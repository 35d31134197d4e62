"""The page of `readygate why node`: the state of one node, its cause, and the pods that it refused. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from cli.shared.explain import decisions_of, words_of
from cli.shared.layout import EMPTY, Column, Page, Span, Style, age, line, span, table, wrapped
from extender.web.report import Change, DecisionTold, GatesTold, NodeTold

CHANGES_SHOWN, PODS_SHOWN = 10, 10


@dataclass(frozen=True)
class Shown:
    """What the page shows."""

    name: str  # of the node
    answer: NodeTold  # of the extender with the newest data
    gates: GatesTold | None  # of the same extender
    answers: Mapping[str, NodeTold]  # of all extenders, by their names


def first(shown: Shown, width: int) -> Page:
    """The answer: open or closed, for which pods, since when."""
    node = shown.answer.node
    if node is None:
        return wrapped(line(f"No extender knows node {shown.name}."), width)
    if shown.answer.not_answering:
        last_known = f"The extender gives no verdicts: {shown.answer.not_answering}. Last known state of {shown.name}:"
        return wrapped(line(span(last_known, Style.BAD)), width)
    closing = [one for one in decisions_of(node) if not one.open and one.armed and one.severity == "gate"]
    if not closing:
        held = [one for one in decisions_of(node) if one.verdict and one.held_by in ("cap", "storm", "exempt", "pause")]
        by = f", although not healthy: held open by {', '.join(sorted({one.held_by for one in held}))}" if held else ""
        return wrapped(line(span(f"{shown.name} is open{by}.", Style.HELD if held else Style.GOOD)), width)
    oldest = max(one.since_seconds for one in closing)
    pods = ", ".join(_for(shown, one) for one in closing)
    return wrapped(line(span(f"{shown.name} is closed for {pods}, since {age(oldest)}.", Style.BAD)), width)


def _for(shown: Shown, decision: DecisionTold) -> str:
    gates = shown.gates.gates if shown.gates is not None else ()
    return next((gate.for_ for gate in gates if gate.gate == decision.gate), "every pod")


_GATES = (
    Column("GATE"),
    Column("STATE"),
    Column("FOR"),
    Column("CAUSE", flexible=True),
    Column("OPENS WHEN", flexible=True, label="opens when"),
    Column("HEALTH POD", flexible=True, label="health pod"),
)
_CHANGES = (Column("AGO", right=True), Column("CHANGE"), Column("GATE"), Column("CAUSE", flexible=True))
_PODS = (Column("POD"), Column("GATE"), Column("TIMES", right=True), Column("LAST", right=True))


def render(shown: Shown, width: int, *, problems: tuple[str, ...] = ()) -> Page:
    lines = first(shown, width)
    node = shown.answer.node
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
                span(words.cause or "-"),
                span(words.opens_when or "-"),
                span(one.pod or "-"),
            ]
        )
    lines += [EMPTY, *table(_GATES, rows, width)]
    if node.heartbeat_age_seconds is not None:
        lines += [EMPTY, *wrapped(line(f"Its kubelet renewed its Lease {age(node.heartbeat_age_seconds)} ago."), width)]
    changes = shown.answer.transitions
    if changes:
        rows = [_change(one) for one in changes[:CHANGES_SHOWN]]
        lines += [EMPTY, *table(_CHANGES, rows, width)]
    pods = shown.answer.refused_pods
    if pods:
        refused = [
            [span(f"{one.namespace}/{one.name}"), span(one.gate), span(f"{one.times:,}"), span(age(one.last_seconds))]
            for one in pods[:PODS_SHOWN]
        ]
        lines += [EMPTY, *wrapped(line(f"Pods refused here: {len(pods):,}"), width), *table(_PODS, refused, width)]
    return lines


def _change(change: Change) -> list[Span]:
    return [
        span(age(change.ago_seconds)),
        span(change.kind),
        span(change.gate),
        span(change.note or change.evidence or change.reason or "-"),
    ]


def verdicts(answers: Mapping[str, NodeTold]) -> dict[str, str]:
    """The verdict of each extender on the node: "open" or the reason, by the extender's name."""
    return {name: "open" if one.node.open else one.node.reason for name, one in answers.items() if one.node}


def _disagreement(shown: Shown, width: int) -> Page:
    found = verdicts(shown.answers)
    if len(set(found.values())) < 2:
        return []
    text = "; ".join(f"{verdict} at {name}" for name, verdict in found.items())
    return wrapped(line(Span("! ", Style.BAD), f"The extenders disagree: {text}"), width, hang=2)
