"""Pure: what has happened between two consecutive snapshots."""

from collections.abc import Iterable, Iterator, Mapping

from component.text import one_line
from extender.policy.decision import Decision, GateState, HeldBy, Storm
from extender.policy.layered_map import LayeredMap
from extender.policy.orders import Order, Orders
from extender.policy.reasons import OPEN
from extender.policy.snapshot import Snapshot
from extender.why.entries import Event

TEXT_LIMIT = 256  # characters
NOBODY = (HeldBy.NONE, HeldBy.NOT_GATED)
_NO_GATE = GateState("")


def events_between(before: Snapshot, after: Snapshot, *, at: float) -> Iterator[Event]:
    """Returns the events, all with serial 0. Of a first snapshot only deviations from normal; nothing about removed
    nodes."""
    for name, state in after.gates.items():
        was = before.gates.get(name, _NO_GATE)
        if was is state:
            continue
        if was.name and was.armed is not state.armed:
            yield Event(0, at, "order", name, note="armed" if state.armed else "in shadow")
        for node in _differing(was.decisions, state.decisions):
            decision = state.decisions.get(node)
            if decision is not None:
                yield from _of_node(name, node, was.decisions.get(node), decision, at)
        if state.cap.held and not was.cap.held:
            limit = "" if state.cap.limit is None else f" of {state.cap.limit}"
            note = f"{state.cap.held} held open: {state.cap.closed}{limit} may be closed and are"
            yield Event(0, at, "cap", name, held_by=HeldBy.CAP.value, note=note)
        yield from _storms(name, was.storms, state.storms, at)


def _differing(before: Mapping[str, Decision], after: Mapping[str, Decision]) -> Iterable[str]:
    if isinstance(after, LayeredMap):
        return after.differing(before)
    return [name for name, decision in after.items() if before.get(name) is not decision]


def _of_node(gate: str, node: str, before: Decision | None, after: Decision, at: float) -> Iterator[Event]:
    reason = OPEN if before is None else before.reason
    held_by = HeldBy.NONE if before is None or before.held_by in NOBODY else before.held_by
    holds = HeldBy.NONE if after.held_by in NOBODY else after.held_by
    if after.reason != reason:
        kind = "closed" if after.reason else "opened"
    elif holds != held_by:
        kind = "held" if holds else "released"
    else:
        return
    yield Event(
        0,
        at,
        kind,
        gate,
        node,
        after.reason or after.verdict,
        one_line(after.against, TEXT_LIMIT),
        holds.value,
        one_line(after.note, TEXT_LIMIT),
    )


def _storms(gate: str, before: tuple[Storm, ...], after: tuple[Storm, ...], at: float) -> Iterator[Event]:
    began, last = ({(one.reason, one.cause): one for one in storms} for storms in (before, after))
    for cause, storm in last.items():
        if cause not in began:
            suspect = one_line(storm.suspect, TEXT_LIMIT)
            note = f"{storm.nodes} nodes closed at once for one cause, held open"
            yield Event(0, at, "storm", gate, "", storm.reason, suspect, HeldBy.STORM.value, note)
    for cause, storm in began.items():
        if cause not in last:
            yield Event(0, at, "stormEnded", gate, "", storm.reason, note="calm again")


def events_of_orders(before: Orders, after: Orders, *, at: float) -> Iterator[Event]:
    """Returns events of orders that were given, changed, withdrawn or have ended, and of entries that became
    invalid."""
    was, given = ({order.id: order for order in orders.entries} for orders in (before, after))
    for name, order in given.items():
        if was.get(name) != order:
            yield _of_order(order, f"{order.kind.value} {name}{_by(order)}", at)
    for name, order in was.items():
        if name not in given:
            yield _of_order(order, f"{order.kind.value} {name} has ended{_by(order)}", at)
    for fault in after.faults:
        if fault not in before.faults:
            yield Event(0, at, "order", note=one_line(f"ignored: {fault}", TEXT_LIMIT))


def _by(order: Order) -> str:
    pool = f" of pool {order.pool}" if order.pool else ""
    return f"{pool} by {order.author}: {order.reason}" if order.author else f"{pool}: {order.reason}"


def _of_order(order: Order, note: str, at: float) -> Event:
    return Event(0, at, "order", order.gate, order.node, note=one_line(note, TEXT_LIMIT))
