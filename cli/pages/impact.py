"""`readygate impact`: what gates in shadow would have done, and what armed ones did. Pure."""

from cli.layout import EMPTY, Column, Page, Span, Style, age, count, line, span, table, wrapped
from extender.web.schema import Impact, ImpactTold

_COLUMNS = (
    Column("GATE"),
    Column("IN FORCE"),
    Column("SINCE", right=True),
    Column("CLOSED NOW", right=True),
    Column("MOST", right=True),
    Column("REFUSED CALLS", right=True),
    Column("PODS", right=True),
    Column("CAP", right=True),
    Column("STORMS", right=True),
)


def first(told: ImpactTold) -> str:
    """The answer: is it safe to arm?"""
    if told.not_answering:
        return f"We are blind: {told.not_answering}. Whether arming is safe cannot be known now."
    shadow = [gate for gate in told.gates if not gate.armed]
    if not told.gates:
        return "No extender tells of any gate."
    if not shadow:
        return "Every gate is armed: nothing is in shadow."
    return " ".join(_sentence(gate) for gate in shadow)


def _sentence(gate: Impact) -> str:
    since = "" if gate.since_seconds is None else f" since {age(gate.since_seconds)}"
    if not gate.would_close_most and not gate.would_refuse_calls:
        return f"Armed, gate {gate.gate} would have closed nothing{since}."
    pods = f"{'at least ' if gate.pods_at_least else ''}{count(gate.pods, 'pod')}"
    calls = count(gate.would_refuse_calls, "call")
    return (
        f"Armed, gate {gate.gate} would close {count(gate.would_close, 'node')} now, {gate.would_close_most:,} at most "
        f"at once{since}, and would have refused nodes in {calls} for {pods}."
    )


def page(told: ImpactTold, width: int, *, problems: tuple[str, ...] = (), program: str = "readygate") -> Page:
    lines = wrapped(line(span(first(told), Style.STRONG, limit=2000)), width)
    for problem in problems:
        lines += wrapped(line(Span("! ", Style.HELD), problem), width, hang=2)
    if told.gates:
        lines += [EMPTY, *_gates(told, width)]
    if any(not gate.armed for gate in told.gates):
        lines += [EMPTY, *wrapped(line(f"which nodes: {program} status; what happened when: {program} history"), width)]
    return lines


def _gates(told: ImpactTold, width: int) -> Page:
    return table(
        _COLUMNS,
        [
            [
                span(gate.gate, Style.STRONG),
                span("armed" if gate.armed else "shadow", Style.PLAIN if gate.armed else Style.HELD),
                span("-" if gate.since_seconds is None else age(gate.since_seconds)),
                span(f"{gate.would_close:,}"),
                span(f"{gate.would_close_most:,}"),
                span(f"{gate.would_refuse_calls:,}"),
                span(f"{gate.pods:,}{'+' if gate.pods_at_least else ''}"),
                span(f"{gate.cap_hits:,}"),
                span(f"{gate.storm_hits:,}"),
            ]
            for gate in told.gates
        ],
        width,
    )
