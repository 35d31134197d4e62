"""Pure: nodes and gates of a snapshot, as the status API shows them."""

from collections.abc import Iterator, Mapping, Sequence

from component.text import one_line
from extender.policy.decision import CapState, Decision, GateState, HeldBy, Storm
from extender.policy.orders import Orders
from extender.policy.reasons import OPEN
from extender.policy.snapshot import Snapshot
from extender.web.schema import (
    CapTold,
    Change,
    DecisionTold,
    GateTold,
    NodeVerdict,
    OrderTold,
    Scope,
    StormTold,
)
from extender.why.counters import of_late
from extender.why.entries import Tally
from kube.times import format_time

EVERY_POD = "every pod"


def node_told(
    snapshot: Snapshot, name: str, decision: Decision, beats: Mapping[str, float], monotonic: float
) -> NodeVerdict:
    """Returns a node. decision: the one that merged() returns for it."""
    beat = beats.get(name)
    return NodeVerdict(
        node=name,
        open=decision.reason == OPEN,
        reason=decision.reason,
        since_seconds=ago(decision.since_monotonic, monotonic),
        pod=decision.pod,
        evidence=one_line(decision.evidence),
        heartbeat_age_seconds=None if beat is None else ago(beat, monotonic),
        gates=tuple(
            decision_told(state, found, monotonic)
            for state in snapshot.gates.values()
            if (found := state.decisions.get(name)) is not None
        ),
    )


def merged(snapshot: Snapshot) -> dict[str, Decision]:
    """Returns by node the decision for a pod to which every gate applies: of the first gate that refuses the node, else
    of the first gate that could, as open."""
    found: dict[str, Decision] = {}
    states = sorted(snapshot.gates.values(), key=lambda state: not state.refuses)
    for state in reversed(states):
        found.update(state.decisions)
    for name, decision in found.items():
        if decision.reason != OPEN:
            found[name] = Decision(OPEN, decision.pod, decision.evidence, decision.since_monotonic)
    for state in reversed(states):
        if state.refuses:
            found.update((name, state.decisions[name]) for name in state.closed)
    return found


def merged_of(snapshot: Snapshot, name: str) -> Decision | None:
    """Returns the same for one node; None if no gate knows it."""
    there = {
        gate: GateState(
            gate,
            {name: decision},
            {name: decision.reason} if decision.reason != OPEN else {},
            state.armed,
            state.severity,
        )
        for gate, state in snapshot.gates.items()
        if (decision := state.decisions.get(name)) is not None
    }
    return merged(Snapshot(there, frozenset([name]))).get(name)


def decision_told(state: GateState, decision: Decision, monotonic: float) -> DecisionTold:
    return DecisionTold(
        gate=state.name,
        armed=state.armed,
        severity=state.severity,
        open=decision.reason == OPEN,
        reason=decision.reason,
        verdict=decision.verdict,
        held_by=decision.held_by.value,
        since_seconds=ago(decision.since_monotonic, monotonic),
        until_seconds=until(decision.until, monotonic),
        pod=decision.pod,
        evidence=one_line(decision.evidence),
        note=one_line(decision.note),
    )


def gate_told(
    state: GateState, tally: Tally | None, speaks_for: str, last_change: Change | None, monotonic: float
) -> GateTold:
    held = not_gated = 0
    for decision in state.decisions.values():
        if decision.held_by is HeldBy.NOT_GATED:
            not_gated += 1
        elif decision.reason == OPEN and decision.verdict != OPEN:
            held += 1
    nodes = len(state.decisions) - not_gated
    late = 0 if tally is None else of_late(tally, monotonic)
    return GateTold(
        gate=state.name,
        armed=state.armed,
        severity=state.severity,
        for_=speaks_for,
        nodes=nodes,
        open=nodes - len(state.closed),
        closed=len(state.closed),
        held_open=held,
        not_gated=not_gated,
        refused10m=late if state.armed else 0,
        would_refuse10m=0 if state.armed else late,
        last_change=last_change,
        cap=cap_told(state.cap),
        storms=tuple(storm_told(storm, monotonic) for storm in state.storms),
    )


def cap_told(cap: CapState) -> CapTold:
    return CapTold(cap.limit, cap.closed, cap.held)


def storm_told(storm: Storm, monotonic: float) -> StormTold:
    return StormTold(
        cause=one_line(f"{storm.reason}: {storm.cause}" if storm.cause else storm.reason),
        nodes=storm.nodes,
        suspect=one_line(storm.suspect),
        until_seconds=until(storm.until, monotonic),
        note=f"began {ago(storm.began_monotonic, monotonic):.0f} s ago",
    )


def orders_told(orders: Orders, wall: float) -> Iterator[OrderTold]:
    """Returns the orders in force."""
    for order in orders.in_force(wall):
        expires = order.expires
        yield OrderTold(
            id=order.id,
            order=order.kind.value,
            scope=Scope(order.gate, order.pool, order.node),
            author=order.author,
            reason=order.reason,
            expires=format_time(expires) if expires < _FOREVER else None,
        )


def cluster_cap(snapshot: Snapshot) -> CapTold:
    """Returns the cap of all gates that refuse."""
    held = {
        name
        for state in snapshot.gates.values()
        if state.refuses and state.cap.held
        for name, decision in state.decisions.items()
        if decision.held_by is HeldBy.CAP
    }
    return CapTold(snapshot.cap, len(snapshot.view(snapshot.refusing)), len(held))


def page(names: Sequence[str], after: str, limit: int | None) -> tuple[Sequence[str], str]:
    """Returns one page of sorted names after `after`, and where the next page begins, "" at the end. Names that come or
    go between two pages move no others."""
    rest = [name for name in names if name > after] if after else names
    if limit is None or len(rest) <= limit:
        return rest, ""
    return rest[:limit], rest[limit - 1]


def ago(at: float, monotonic: float) -> float:
    return round(max(0.0, monotonic - at), 3)


def until(at: float | None, monotonic: float) -> float | None:
    return None if at is None else round(max(0.0, at - monotonic), 3)


_FOREVER = 253_402_300_800.0  # the year 10000, which RFC 3339 cannot write
