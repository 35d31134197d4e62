"""The page of `readygate impact`: what gates in shadow would have done, and what armed gates did. Pure."""

from cli.shared.layout import EMPTY, Column, Page, Span, Style, age, count, line, span, table, wrapped
from extender.web.report import Impact, ImpactTold

_COLUMNS = (
    Column("GATE"),
    Column("STATE"),
    Column("SINCE", right=True),
    Column("CLOSED NOW", right=True),
    Column("MAX", right=True),
    Column("REFUSED CALLS", right=True),
    Column("PODS", right=True),
    Column("CAP", right=True),
    Column("STORMS", right=True),
)


def first(answer: ImpactTold) -> str:
    """The answer: is it safe to arm?"""
    if answer.not_answering:
        return f"The extender gives no verdicts: {answer.not_answering}. It is unknown whether arming is safe."
    shadow = [gate for gate in answer.gates if not gate.armed]
    if not answer.gates:
        return "No extender reports any gate."
    if not shadow:
        return "Every gate is armed: nothing is in shadow."
    return " ".join(_sentence(gate) for gate in shadow)


def _sentence(gate: Impact) -> str:
    since = "" if gate.since_seconds is None else f" since {age(gate.since_seconds)}"
    if not gate.would_close_most and not gate.would_refuse_calls:
        return f"If armed, gate {gate.gate} would have closed nothing{since}."
    pods = f"{'at least ' if gate.pods_at_least else ''}{count(gate.pods, 'pod')}"
    calls = count(gate.would_refuse_calls, "call")
    return (
        f"If armed, gate {gate.gate} would close {count(gate.would_close, 'node')} now, {gate.would_close_most:,} at "
        f"most at once{since}, and would have refused nodes in {calls} for {pods}."
    )


def render(answer: ImpactTold, width: int, *, problems: tuple[str, ...] = (), program: str = "readygate") -> Page:
    lines = wrapped(line(span(first(answer), Style.STRONG, limit=2000)), width)
    for problem in problems:
        lines += wrapped(line(Span("! ", Style.HELD), problem), width, hang=2)
    if answer.gates:
        lines += [EMPTY, *_gates(answer, width)]
    if any(not gate.armed for gate in answer.gates):
        lines += [EMPTY, *wrapped(line(f"nodes: {program} status; timeline: {program} history"), width)]
    return lines


def _gates(answer: ImpactTold, width: int) -> Page:
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
            for gate in answer.gates
        ],
        width,
    )
