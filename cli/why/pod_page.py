"""`readygate why pod`: the answer first, then the nodes that matter, what is not ours, and what one may do. Pure."""

import shlex

from cli.shared.layout import EMPTY, Page, Span, Style, age, columns_of, line, span, wrapped
from cli.why.blame import Blame, Kept, Kind
from cli.why.scheduler_message import Said, short
from component.text import one_line

OTHERS_SHOWN = 6
NAME_MOST = 24  # columns; a longer name stands on its own line
_STYLES = {Kind.OURS: Style.BAD, Kind.BLIND: Style.BAD, Kind.UNKNOWN: Style.HELD}


def render(blame: Blame, width: int, *, problems: tuple[str, ...] = (), program: str = "readygate") -> Page:
    lines = wrapped(line(span(blame.first, _STYLES.get(blame.kind, Style.STRONG), limit=1000)), width)
    if blame.kept:
        lines += [EMPTY, *_nodes(blame.kept, width)]
        if blame.kept_count > len(blame.kept):
            lines += wrapped(line(f"... and {blame.kept_count - len(blame.kept):,} more"), width, indent=2)
    more = _others(blame, width)
    for text in blame.lines:
        more += wrapped(line(text), width, hang=2)
    for problem in problems:
        more += wrapped(line(Span("! ", Style.HELD), problem), width, hang=2)
    if more:
        lines += [EMPTY, *more]
    if blame.kept:
        closest = next((one for one in blame.kept if not one.open_now), blame.kept[0])
        lines.append(EMPTY)
        for text in _hints(blame, closest, program):
            lines += wrapped(line(text), width, indent=2, hang=4)
    return lines


def _hints(blame: Blame, closest: Kept, program: str) -> list[str]:
    """Commands to type as they stand."""
    node, gate = shlex.quote(one_line(closest.node)), shlex.quote(one_line(closest.gate))
    hints = [f"look closer: {program} why node {node}"]
    if blame.kind is Kind.OURS and closest.gate:
        hints.append(f"open it anyway: {program} exempt --gate {gate} --node {node} --for 1h --reason WHY")
    return hints


def _nodes(kept: tuple[Kept, ...], width: int) -> Page:
    hang = 2 + min(NAME_MOST, max(columns_of(span(one.node).text) for one in kept)) + 2
    lines: Page = []
    for one in kept:
        name = span(one.node, Style.STRONG)
        state = span(one.state, Style.GOOD if one.open_now else Style.BAD)
        told = (state, Span("   "), span(one.because)) if one.because else (state,)
        if columns_of(name.text) > NAME_MOST:
            lines.append((Span("  "), name))
            lines += wrapped(told, width, indent=hang)
        else:
            rest = wrapped(_spaced(told), width, indent=hang)
            gap = Span(" " * (hang - 2 - columns_of(name.text)))
            lines += [(Span("  "), name, gap, *rest[0][1:]), *rest[1:]]
        if one.opens_when:
            lines += wrapped(line("opens when ", span(one.opens_when)), width, indent=hang)
        for gate in one.also:
            lines += wrapped(line(f"also closed by gate {gate}"), width, indent=hang)
    return lines


def _spaced(parts: tuple[Span, ...]) -> tuple[Span, ...]:
    """What decides and why, told apart by a colon where colours are not seen."""
    if len(parts) < 3:
        return parts
    return (Span(f"{parts[0].text}:", parts[0].style), Span(" "), parts[2])


def _others(blame: Blame, width: int) -> Page:
    said = blame.said
    if said is None:
        return []
    when = "kube-scheduler" if blame.said_ago_s is None else f"kube-scheduler, {age(blame.said_ago_s)} ago"
    text = said.whole or ", ".join(_counted(said))
    if not text:
        return []
    number = said.total - said.ours
    if blame.kind is Kind.OURS and not said.whole:
        begin = f"The other {number:,} {'is' if number == 1 else 'are'} not ours:"
    else:
        begin = "What keeps it off:" if blame.kind is Kind.NOT_OURS else "What is said of it:"
    return wrapped(line(begin, "  ", text, f"   ({when})"), width, hang=2)


def _counted(said: Said) -> list[str]:
    reasons = sorted(said.others, key=lambda reason: (-reason.nodes, reason.text))
    shown = [f"{reason.nodes:,} {short(reason.text)}" for reason in reasons[:OTHERS_SHOWN]]
    return [*shown, f"{len(reasons) - OTHERS_SHOWN} reasons more"] if len(reasons) > OTHERS_SHOWN else shown
