"""`readygate status`: the cluster in a screenful. Pure."""

from dataclasses import dataclass

from cli.because import WARNED, Words, words_of
from cli.layout import EMPTY, Column, Page, Span, Style, age, count, flowed, line, span, table, wrapped
from cli.replicas import Difference
from extender.web.schema import DecisionTold, GatesTold, GateTold, NodeVerdict, NodeVerdicts, SchedulerTold

NODES_SHOWN = 50
DIFFERENCES_SHOWN = 5
SHADOW = "* in shadow: closes nothing; in brackets what it would do"


@dataclass(frozen=True)
class Status:
    """cluster: as the user calls it, "" if by URL. nodes, gates: the word of one replica. answered, asked: replicas.

    schedulers: what is asked of each of them.
    """

    cluster: str
    nodes: NodeVerdicts
    gates: GatesTold | None
    answered: int
    asked: int
    differences: tuple[Difference, ...] = ()
    problems: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    schedulers: tuple[SchedulerTold, ...] = ()
    all_nodes: bool = False


def headline(status: Status) -> str:
    """The answer in one line."""
    if status.nodes.not_answering:
        return f"We are blind: {status.nodes.not_answering}."
    nodes = status.nodes.nodes
    opened = sum(node.open for node in nodes)
    return f"{opened:,} of {count(len(nodes), 'node')} open"


def page(status: Status, width: int) -> Page:
    lines = flowed(_first(status), width)
    if status.nodes.not_answering:
        lines += wrapped(
            line("kube-scheduler gets no verdicts: it places pods unfiltered (protect) or waits (enforce)."), width
        )
    for problem in status.problems:
        lines += wrapped(line(Span("! ", Style.BAD), problem), width, hang=2)
    lines += _disagreement(status, width)
    lines += _warnings(status, width)
    if status.gates is not None and status.gates.gates:
        lines += [EMPTY, *_gates(status.gates.gates, width)]
        if any(not gate.armed for gate in status.gates.gates):
            lines += [EMPTY, *wrapped(line(SHADOW), width, hang=2)]
    rows = _rows(status)
    if rows:
        lines += [EMPTY, *_nodes(rows[: None if status.all_nodes else NODES_SHOWN], width)]
        if len(rows) > NODES_SHOWN and not status.all_nodes:
            lines += wrapped(line(f"... and {len(rows) - NODES_SHOWN:,} more: readygate status -a shows all"), width)
    if status.schedulers:
        lines += [EMPTY, *wrapped(line(_scheduler(status)), width, hang=2)]
    return lines


def _first(status: Status) -> list[Span]:
    parts = [span(status.cluster, Style.STRONG)] if status.cluster else []
    blind = bool(status.nodes.not_answering)
    bad = blind or any(not node.open for node in status.nodes.nodes)
    parts.append(span(headline(status), Style.BAD if blind else Style.HELD if bad else Style.GOOD))
    gates = status.gates
    if gates is not None and gates.cap.limit is not None:
        parts.append(span(f"cap {gates.cap.limit:,}: {gates.cap.closed:,} used"))
    if gates is not None and gates.scheduler is not None and gates.scheduler.mode:
        parts.append(span(gates.scheduler.mode))
    if status.asked > 1:
        words = "agree" if status.answered == status.asked and not status.differences else "answer"
        parts.append(span(f"{status.answered} of {status.asked} extenders {words}"))
    if status.nodes.last_word_seconds is not None:
        parts.append(span(f"last word {status.nodes.last_word_seconds:.1f}s ago"))
    return parts


def _scheduler(status: Status) -> str:
    """Of several kube-schedulers one leads and asks, as a rule the extender beside it."""
    told = status.schedulers
    calls, unanswered = sum(one.calls for one in told), sum(one.unanswered for one in told)
    if not calls:
        return "Scheduler: has never asked; `readygate doctor` says whether it is told to."
    asked = [one for one in told if one.per_second]
    if not asked:
        ages = [one.last_call_seconds for one in told if one.last_call_seconds is not None]
        last = f"asked last {age(min(ages))} ago" if ages else "has not asked for ten minutes"
        return f"Scheduler: {last}, {unanswered:,} of {calls:,} calls unanswered."
    bounds = [one.p99_seconds for one in asked]
    p99 = "above 1s" if None in bounds else f"below {max(filter(None, bounds), default=0.0) * 1e3:g}ms"
    pace = sum(one.per_second for one in asked)
    return (
        f"Scheduler: asks {len(asked)} of {count(len(told), 'extender')}, {pace:.1f} calls/s, p99 {p99}, "
        f"{unanswered:,} of {calls:,} calls unanswered."
    )


def _disagreement(status: Status, width: int) -> Page:
    if not status.differences:
        return []
    found = count(len(status.differences), "node")
    lines = wrapped(line(Span("! ", Style.BAD), f"The extenders do not say the same of {found}:"), width, hang=2)
    for difference in status.differences[:DIFFERENCES_SHOWN]:
        said = ", ".join(f"{replica} says {what}" for replica, what in difference.said.items())
        lines += wrapped(line(f"{difference.node}: {said}"), width, indent=2, hang=4)
    return lines


def _warnings(status: Status, width: int) -> Page:
    lines: Page = []
    if len(status.releases) > 1:
        text = f"The extenders are of different releases: {', '.join(status.releases)}."
        lines += wrapped(line(Span("! ", Style.HELD), text), width, hang=2)
    if status.gates is None:
        return lines
    for gate in status.gates.gates:
        for storm in gate.storms:
            suspect = f" Suspect: {storm.suspect}." if storm.suspect else ""
            text = storm.note or f"{count(storm.nodes, 'node')} turned bad at once ({storm.cause}), held open.{suspect}"
            lines += wrapped(line(Span("STORM ", Style.BAD), f"gate {gate.gate}: {text}"), width, hang=2)
    for order in status.gates.orders:
        scope = [
            f"{kind} {name}"
            for kind, name in (("gate", order.scope.gate), ("pool", order.scope.pool), ("node", order.scope.node))
            if name
        ]
        ends = f", ends {order.expires}" if order.expires else ""
        text = f"{' and '.join(scope) or 'the cluster'}, by {order.author or 'somebody'}: {order.reason}{ends}"
        lines += wrapped(line(Span(f"{order.order.upper()} ", Style.HELD), text), width, hang=2)
    for fault in status.gates.faults:
        lines += wrapped(line(Span("! ", Style.HELD), f"order ignored: {fault}"), width, hang=2)
    return lines


_GATE_COLUMNS = (
    Column("GATE"),
    Column("FOR", flexible=True, label="for"),
    Column("OPEN", right=True),
    Column("CLOSED", right=True),
    Column("HELD OPEN", right=True),
    Column("REFUSED/10m", right=True),
    Column("LAST CHANGE", flexible=True, label="last change:"),
)


def _gates(gates: tuple[GateTold, ...], width: int) -> Page:
    return table(_GATE_COLUMNS, [_gate(gate) for gate in gates], width)


def _gate(gate: GateTold) -> list[Span]:
    name = gate.gate if gate.armed else f"{gate.gate} *"
    refused = f"{gate.refused10m:,}" if gate.armed else f"({gate.would_refuse10m:,})"
    change = gate.last_change
    last = "-" if change is None else f"{change.node} {change.kind} {age(change.ago_seconds)} ago"
    return [
        span(name, Style.STRONG),
        span(gate.for_ if gate.severity == "gate" else f"{gate.for_} ({gate.severity})"),
        span(f"{gate.open:,}"),
        span(f"{gate.closed:,}", Style.BAD if gate.closed and gate.armed else Style.PLAIN),
        span(f"{gate.held_open:,}", Style.HELD if gate.held_open else Style.PLAIN),
        span(refused),
        span(last),
    ]


_NODE_COLUMNS = (
    Column("NODE"),
    Column("GATE"),
    Column("STATE"),
    Column("FOR"),
    Column("BECAUSE", flexible=True),
    Column("OPENS WHEN", flexible=True, label="opens when"),
)
_ORDER = (
    *("closed", "opening", "held open", "failing", "would close", "not preferred", "warn"),
    *(WARNED, "not gated", "open"),
)


def decisions_of(node: NodeVerdict) -> tuple[DecisionTold, ...]:
    """What each gate decided; of an extender that does not tell, what it told of the node."""
    if node.gates:
        return node.gates
    return (
        DecisionTold(
            gate="-",
            open=node.open,
            reason=node.reason,
            verdict=node.reason,
            since_seconds=node.since_seconds,
            pod=node.pod,
            evidence=node.evidence,
        ),
    )


def _rows(status: Status) -> list[tuple[NodeVerdict, DecisionTold, Words]]:
    found = []
    for node in status.nodes.nodes:
        for decision in decisions_of(node):
            words = words_of(decision, node.heartbeat_age_seconds)
            plain = decision.open and (not decision.verdict or decision.held_by == "not-gated")
            if status.all_nodes or not plain or words.state == WARNED:
                found.append((node, decision, words))
    found.sort(key=lambda row: (_ORDER.index(row[2].state), row[1].since_seconds, row[0].node))
    return found


def _nodes(rows: list[tuple[NodeVerdict, DecisionTold, Words]], width: int) -> Page:
    cells = [
        [
            span(node.node, Style.STRONG),
            span(decision.gate),
            span(words.state, words.style),
            span(age(decision.since_seconds) if words.state != WARNED else "-"),  # what is said tells itself since when
            span(words.because),
            span(words.opens_when),
        ]
        for node, decision, words in rows
    ]
    return table(_NODE_COLUMNS, cells, width)
