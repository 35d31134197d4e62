"""The page of `readygate why pod`: the answer, the nodes that refused the pod, other causes, commands to try. Pure."""

import shlex

from cli.shared.layout import EMPTY, Page, Span, Style, age, columns_of, line, span, wrapped
from cli.why.blame import Blame, Kind, RefusedAt
from cli.why.scheduler_message import SchedulerMessage, short
from component.text import one_line

OTHERS_SHOWN = 6
NAME_MOST = 24  # columns; a longer name gets its own line
_STYLES = {Kind.BLOCKED: Style.BAD, Kind.NO_VERDICTS: Style.BAD, Kind.UNKNOWN: Style.HELD}


def render(blame: Blame, width: int, *, problems: tuple[str, ...] = (), program: str = "readygate") -> Page:
    lines = wrapped(line(span(blame.first, _STYLES.get(blame.kind, Style.STRONG), limit=1000)), width)
    if blame.nodes:
        lines += [EMPTY, *_nodes(blame.nodes, width)]
        if blame.node_count > len(blame.nodes):
            lines += wrapped(line(f"... and {blame.node_count - len(blame.nodes):,} more"), width, indent=2)
    more = _others(blame, width)
    for text in blame.lines:
        more += wrapped(line(text), width, hang=2)
    for problem in problems:
        more += wrapped(line(Span("! ", Style.HELD), problem), width, hang=2)
    if more:
        lines += [EMPTY, *more]
    if blame.nodes:
        closest = next((one for one in blame.nodes if not one.open_now), blame.nodes[0])
        lines.append(EMPTY)
        for text in _hints(blame, closest, program):
            lines += wrapped(line(text), width, indent=2, hang=4)
    return lines


def _hints(blame: Blame, closest: RefusedAt, program: str) -> list[str]:
    """Commands that can be run as they are shown."""
    node, gate = shlex.quote(one_line(closest.node)), shlex.quote(one_line(closest.gate))
    hints = [f"details: {program} why node {node}"]
    if blame.kind is Kind.BLOCKED and closest.gate:
        hints.append(f"open it anyway: {program} exempt --gate {gate} --node {node} --for 1h --reason WHY")
    return hints


def _nodes(nodes: tuple[RefusedAt, ...], width: int) -> Page:
    hang = 2 + min(NAME_MOST, max(columns_of(span(one.node).text) for one in nodes)) + 2
    lines: Page = []
    for one in nodes:
        name = span(one.node, Style.STRONG)
        state = span(one.state, Style.GOOD if one.open_now else Style.BAD)
        parts = (state, Span("   "), span(one.cause)) if one.cause else (state,)
        if columns_of(name.text) > NAME_MOST:
            lines.append((Span("  "), name))
            lines += wrapped(parts, width, indent=hang)
        else:
            rest = wrapped(_with_colon(parts), width, indent=hang)
            gap = Span(" " * (hang - 2 - columns_of(name.text)))
            lines += [(Span("  "), name, gap, *rest[0][1:]), *rest[1:]]
        if one.opens_when:
            lines += wrapped(line("opens when ", span(one.opens_when)), width, indent=hang)
        for gate in one.also:
            lines += wrapped(line(f"also closed by gate {gate}"), width, indent=hang)
    return lines


def _with_colon(parts: tuple[Span, ...]) -> tuple[Span, ...]:
    """Puts a colon between state and cause, for terminals without colours."""
    if len(parts) < 3:
        return parts
    return (Span(f"{parts[0].text}:", parts[0].style), Span(" "), parts[2])


def _others(blame: Blame, width: int) -> Page:
    message = blame.message
    if message is None:
        return []
    when = "kube-scheduler" if blame.message_ago_s is None else f"kube-scheduler, {age(blame.message_ago_s)} ago"
    text = message.whole or ", ".join(_counted(message))
    if not text:
        return []
    number = message.total - message.refused
    if blame.kind is Kind.BLOCKED and not message.whole:
        begin = f"The other {number:,} {'is' if number == 1 else 'are'} unrelated to readygate:"
    else:
        begin = "Other causes:" if blame.kind is Kind.NOT_BLOCKED else "Reported:"
    return wrapped(line(begin, "  ", text, f"   ({when})"), width, hang=2)


def _counted(message: SchedulerMessage) -> list[str]:
    reasons = sorted(message.others, key=lambda reason: (-reason.nodes, reason.text))
    shown = [f"{reason.nodes:,} {short(reason.text)}" for reason in reasons[:OTHERS_SHOWN]]
    return [*shown, f"{len(reasons) - OTHERS_SHOWN} more reasons"] if len(reasons) > OTHERS_SHOWN else shown
