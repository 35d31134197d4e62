"""The page of `readygate status`: the cluster on one screen. Pure."""

from dataclasses import dataclass

from cli.shared.explain import WARNED, Words, decisions_of, words_of
from cli.shared.layout import EMPTY, Column, Page, Span, Style, age, count, flowed, line, span, table, wrapped
from cli.shared.merge_answers import Difference
from extender.web.report import DecisionTold, GatesTold, GateTold, NodeVerdict, NodeVerdicts, SchedulerTold

NODES_SHOWN = 50
DIFFERENCES_SHOWN = 5
SHADOW = "* in shadow: closes nothing; (n) is what it would refuse"


@dataclass(frozen=True)
class Status:
    """What the page shows."""

    cluster: str  # its name in the kubeconfig, "" for extenders by URL
    nodes: NodeVerdicts  # of the extender with the newest data
    gates: GatesTold | None  # of the same extender
    answered: int  # how many extenders answered
    asked: int  # how many extenders were asked
    differences: tuple[Difference, ...] = ()
    problems: tuple[str, ...] = ()  # why extenders gave no answer
    releases: tuple[str, ...] = ()  # of all extenders
    schedulers: tuple[SchedulerTold, ...] = ()  # the calls that each extender got
    all_nodes: bool = False  # show open nodes too


def headline(status: Status) -> str:
    """The answer in one line."""
    if status.nodes.not_answering:
        return f"The extender gives no verdicts: {status.nodes.not_answering}."
    nodes = status.nodes.nodes
    opened = sum(node.open for node in nodes)
    return f"{opened:,} of {count(len(nodes), 'node')} open"


def render(status: Status, width: int) -> Page:
    lines = flowed(_first(status), width)
    if status.nodes.not_answering:
        lines += wrapped(line("kube-scheduler places pods unfiltered (protect), or pods wait (enforce)."), width)
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
    no_verdicts = bool(status.nodes.not_answering)
    closed = any(not node.open for node in status.nodes.nodes)
    parts.append(span(headline(status), Style.BAD if no_verdicts else Style.HELD if closed else Style.GOOD))
    gates = status.gates
    if gates is not None and gates.cap.limit is not None:
        parts.append(span(f"cap {gates.cap.limit:,}: {gates.cap.closed:,} used"))
    if gates is not None and gates.scheduler is not None and gates.scheduler.mode:
        parts.append(span(gates.scheduler.mode))
    if status.asked > 1:
        words = "agree" if status.answered == status.asked and not status.differences else "answer"
        parts.append(span(f"{status.answered} of {status.asked} extenders {words}"))
    if status.nodes.last_word_seconds is not None:
        parts.append(span(f"last API response {status.nodes.last_word_seconds:.1f}s ago"))
    return parts


def _scheduler(status: Status) -> str:
    """The calls of kube-scheduler. Only the leading kube-scheduler calls, usually the extender on its own host."""
    extenders = status.schedulers
    calls, unanswered = sum(one.calls for one in extenders), sum(one.unanswered for one in extenders)
    if not calls:
        return "Scheduler: has never called; `readygate doctor` shows whether readygate is registered."
    called = [one for one in extenders if one.per_second]
    if not called:
        ages = [one.last_call_seconds for one in extenders if one.last_call_seconds is not None]
        last = f"last call {age(min(ages))} ago" if ages else "no call for ten minutes"
        return f"Scheduler: {last}, {unanswered:,} of {calls:,} calls unanswered."
    bounds = [one.p99_seconds for one in called]
    p99 = "above 1s" if None in bounds else f"below {max(filter(None, bounds), default=0.0) * 1e3:g}ms"
    pace = sum(one.per_second for one in called)
    return (
        f"Scheduler: calls {len(called)} of {count(len(extenders), 'extender')}, {pace:.1f} calls/s, p99 {p99}, "
        f"{unanswered:,} of {calls:,} calls unanswered."
    )


def _disagreement(status: Status, width: int) -> Page:
    if not status.differences:
        return []
    found = count(len(status.differences), "node")
    lines = wrapped(line(Span("! ", Style.BAD), f"The extenders disagree on {found}:"), width, hang=2)
    for difference in status.differences[:DIFFERENCES_SHOWN]:
        verdicts = "; ".join(f"{verdict} at {replica}" for replica, verdict in difference.verdicts.items())
        lines += wrapped(line(f"{difference.node}: {verdicts}"), width, indent=2, hang=4)
    return lines


def _warnings(status: Status, width: int) -> Page:
    lines: Page = []
    if len(status.releases) > 1:
        text = f"The extenders run different releases: {', '.join(status.releases)}."
        lines += wrapped(line(Span("! ", Style.HELD), text), width, hang=2)
    if status.gates is None:
        return lines
    for gate in status.gates.gates:
        for storm in gate.storms:
            suspect = f" Suspect: {storm.suspect}." if storm.suspect else ""
            text = (
                storm.note
                or f"{count(storm.nodes, 'node')} became unhealthy at once ({storm.cause}), held open.{suspect}"
            )
            lines += wrapped(line(Span("STORM ", Style.BAD), f"gate {gate.gate}: {text}"), width, hang=2)
    for order in status.gates.orders:
        scope = [
            f"{kind} {name}"
            for kind, name in (("gate", order.scope.gate), ("pool", order.scope.pool), ("node", order.scope.node))
            if name
        ]
        ends = f", ends {order.expires}" if order.expires else ""
        text = f"{' and '.join(scope) or 'the cluster'}, by {order.author or 'an unknown author'}: {order.reason}{ends}"
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
    Column("CAUSE", flexible=True),
    Column("OPENS WHEN", flexible=True, label="opens when"),
)
_ORDER = (
    *("closed", "opening", "held open", "failing", "would close", "not preferred", "warn"),
    *(WARNED, "not gated", "open"),
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
            span(
                age(decision.since_seconds) if words.state != WARNED else "-"
            ),  # the text of the warning has its own times
            span(words.cause),
            span(words.opens_when),
        ]
        for node, decision, words in rows
    ]
    return table(_NODE_COLUMNS, cells, width)
