"""Pure: decides all nodes at all gates, from their evidence and the memory of earlier decisions.

    1 each node at each gate for itself     `node_rows`: evidence, verdict, orders, damping
    2 the bad nodes of each gate together   `limits`: storms, then caps; caps count all armed gates together
    3 what changes by that                  decisions, the state of each gate, the snapshot

A gate that is not armed is decided as if it were, with its own caps. The cost of one event does not grow with the
number of nodes: rows of other nodes are not read, and unchanged parts are shared with the previous snapshot.
"""

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from extender.policy.caps import Caps, Place, Sizes
from extender.policy.decision import CapState, Decision, GateState, HeldBy, Storm
from extender.policy.evidence import NodeEvidence, Surroundings
from extender.policy.gates import Gate
from extender.policy.layered_map import LayeredMap
from extender.policy.limits import Competing, held_back, held_by_caps, held_by_storms, lingering, storms_of, turned
from extender.policy.memory import Decided, DecisionMemory, GateMemory, Group, GroupMemory, Held, NextGate, Turn
from extender.policy.node_rows import Row, RowInputs, row_of
from extender.policy.orders import Kind, Orders
from extender.policy.reasons import OPEN
from extender.policy.snapshot import Snapshot
from extender.policy.storm import StormRule, Weather, suspect


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of the configuration. gates: in the order of the file. storm: None = no storms."""

    gates: tuple[Gate, ...]
    caps: Caps = field(default_factory=Caps)
    storm: StormRule | None = None

    def braked(self, gate: Gate) -> bool:
        return not (self.caps.off and gate.cap is None and self.storm is None)


Evidence = Mapping[str, NodeEvidence | None]


class _Seen(msgspec.Struct, frozen=True):
    """The result of stage 1 for a gate. rows: as of NextGate. touched: whether stage 2 must run again."""

    gate: Gate
    armed: bool
    memory: GateMemory
    rows: Mapping[str, Row | None]
    competing: Mapping[str, Row]
    total: int
    touched: bool


def decide(
    rules: Rules,
    previous: DecisionMemory,
    evidence: Evidence,
    surroundings: Surroundings,
    *,
    monotonic: float,
    wall: float,
) -> Decided:
    """Decides the given nodes and leaves the memory unchanged. A node with evidence None is gone.

    evidence: of all changed nodes, of the due nodes, and of all nodes if previous.needs_all().
    """
    needs_all = previous.needs_all(surroundings, wall)
    places: dict[tuple[str, str], Place] = {}
    seen = []
    for gate in rules.gates:
        memory = previous.gates.get(gate.name, _NO_MEMORY)
        moved = evidence if needs_all or not memory.rows else _moved(memory.rows, evidence, gate.name, monotonic)
        if not moved and memory.rows:
            armed = _armed(gate, surroundings.orders, wall)
            seen.append(_Seen(gate, armed, memory, _NO_ROWS, memory.competing, memory.total, touched=False))
            continue
        placement = surroundings.placements.get(gate.name)
        inputs = RowInputs(rules.caps, surroundings.orders, placement, rules.braked(gate), monotonic, wall, places)
        seen.append(_seen(gate, memory, previous, moved, inputs))
    storms = {one.gate.name: _storms(rules, one, monotonic) if one.touched or one.memory.storms else () for one in seen}
    held: dict[str, Mapping[str, Held]] = {}
    groups: dict[Group, GroupMemory] = {}
    for members in _groups(seen):
        group = tuple([one.gate.name for one in members])
        groups[group] = after = _next_group(members, previous.groups.get(group))
        if group in previous.groups and _calm(members, storms):
            held.update((one.gate.name, one.memory.held) for one in members)
        else:
            held.update(_held(rules, members, storms, after, previous))
    ends = [storm.until(rules.storm) for these in storms.values() for storm in these if rules.storm is not None]
    states: dict[str, GateState] = {}
    turns: list[Turn] = []
    changed: dict[str, tuple[str, ...]] = {}
    gates: dict[str, NextGate] = {}
    for one in seen:
        name = one.gate.name
        known = previous.snapshot.gates.get(name)
        quiet = not one.rows and held[name] is one.memory.held and storms[name] == one.memory.storms
        if quiet and known is not None and known.armed == one.armed:
            states[name], changed[name] = known, ()
            continue
        gates[name] = NextGate(one.rows, one.competing, one.total, storms[name], held[name])
        states[name], changed[name] = _state(rules.storm, one, gates[name], previous, turns, monotonic)
    return Decided(
        snapshot=_snapshot(previous, states, evidence, _cap(rules.caps, states, groups)),
        turned=tuple(turns),
        changed=changed,
        looked_at=tuple(evidence),
        gates=gates,
        groups=groups,
        surroundings=surroundings,
        brakes_at=min((at for at in ends if at is not None), default=math.inf) if ends else math.inf,
        wall=wall,
    )


_NO_MEMORY = GateMemory()
_NO_STATE = GateState("")
_NO_ROWS: Mapping[str, Row | None] = {}
_NOBODY: Mapping[str, Held] = {}


# Stage 1: each node for itself.


def _moved(rows: Mapping[str, Row], evidence: Evidence, gate: str, monotonic: float) -> Evidence:
    """Returns the nodes that have changed at the gate. When one pod changes, most gates have none."""
    moved = {}
    for name, seen in evidence.items():
        row = rows.get(name)
        if row is None or seen is None or not row.stays(seen, gate, monotonic):
            moved[name] = seen
    return moved


def _seen(gate: Gate, memory: GateMemory, previous: DecisionMemory, moved: Evidence, inputs: RowInputs) -> _Seen:
    state = previous.snapshot.gates.get(gate.name)
    closed: Mapping[str, str] = {} if state is None else state.closed
    rows: dict[str, Row | None] = {}
    competing: dict[str, Row] | None = None
    total, touched = memory.total, not memory.rows
    known = memory.rows.get
    for name, seen in moved.items():
        before = known(name)
        after = None if seen is None else row_of(gate, seen, before, name in closed, inputs)
        if after is before:
            continue
        rows[name] = after
        total += (after is not None and after.counted) - (before is not None and before.counted)
        touched = touched or not _stands_alike(before, after)
        if (after is not None and after.competes) or name in memory.competing:
            competing = dict(memory.competing) if competing is None else competing
            competing.pop(name, None)
            if after is not None and after.competes:
                competing[name] = after
            touched = True
    armed = _armed(gate, inputs.orders, inputs.wall)
    return _Seen(gate, armed, memory, rows, memory.competing if competing is None else competing, total, touched)


def _armed(gate: Gate, orders: Orders, wall: float) -> bool:
    arming = orders.arming(gate.name, wall) if orders.entries else None
    return gate.armed if arming is None else arming.kind is Kind.ARM


def _stands_alike(one: Row | None, other: Row | None) -> bool:
    """Returns whether the caps count both rows alike."""
    if one is None or other is None:
        return one is other
    same = one.counted == other.counted and one.uncounted == other.uncounted
    return same and (one.place is other.place or one.place == other.place)


# Stage 2: bad nodes together.


def _groups(seen: Iterable[_Seen]) -> list[list[_Seen]]:
    """Groups gates: armed gates that refuse share caps, and any other gate is counted alone."""
    together: list[_Seen] = []
    alone: list[list[_Seen]] = []
    for one in seen:
        if one.armed and one.gate.severity == "gate":
            together.append(one)
        else:
            alone.append([one])
    return [together, *alone] if together else alone


def _calm(members: Iterable[_Seen], storms: Mapping[str, tuple[Weather, ...]]) -> bool:
    """Returns whether storms and caps hold the same nodes as before."""
    for one in members:  # noqa: SIM110 - a generator would cost more than all that it asks
        if one.touched or storms[one.gate.name] != one.memory.storms:
            return False
    return True


def _next_group(members: Sequence[_Seen], before: GroupMemory | None) -> GroupMemory:
    if before is None:
        there = _all_counted(members)
        return GroupMemory(LayeredMap(there), Sizes().changed((), there.values()))
    names: set[str] = set()
    for one in members:
        if one.touched:
            of = one.memory.rows
            names.update(name for name, row in one.rows.items() if not _stands_alike(of.get(name), row))
    if not names:
        return before
    places = {name: _counted_at(name, members) for name in names}
    left = [place for name in names if (place := before.places.get(name)) is not None]
    came = [place for place in places.values() if place is not None]
    return GroupMemory(before.places.with_changes(places), before.sizes.changed(left, came))


def _all_counted(members: Iterable[_Seen]) -> dict[str, Place]:
    """Counts all nodes again."""
    places: dict[str, Place] = {}
    beside: list[str] = []
    for one in members:
        rows = {**one.memory.rows, **one.rows} if one.memory.rows else one.rows
        places.update((name, row.place) for name, row in rows.items() if row is not None and row.counted)
        beside += (name for name, row in rows.items() if row is not None and row.uncounted)
    for name in beside:
        places.pop(name, None)
    return places


def _counted_at(name: str, members: Iterable[_Seen]) -> Place | None:
    """Returns pool and zone in which the node counts; None if it counts at no gate, or if a gate closes it regardless
    of caps."""
    place = None
    for one in members:
        row = one.rows[name] if name in one.rows else one.memory.rows.get(name)
        if row is None:
            continue
        if row.uncounted:
            return None
        if row.counted:
            place = row.place
    return place


def _storms(rules: Rules, one: _Seen, monotonic: float) -> tuple[Weather, ...]:
    first = not one.memory.rows
    return storms_of(rules.storm, one.total, one.competing, one.memory.storms, monotonic=monotonic, first=first)


def _held(
    rules: Rules,
    members: Iterable[_Seen],
    storms: Mapping[str, tuple[Weather, ...]],
    after: GroupMemory,
    previous: DecisionMemory,
) -> dict[str, Mapping[str, Held]]:
    """Returns by gate which competing nodes are held open: by storms and pauses in any case, then by the caps."""
    held: dict[str, Mapping[str, Held]] = {}
    competing: list[Competing] = []
    for one in members:
        name = one.gate.name
        if not one.competing:
            held[name] = _NOBODY
            continue
        closed = previous.snapshot.gates.get(name, _NO_STATE).closed
        anyway: Mapping[str, Held] = {**held_back(one.competing, closed), **held_by_storms(rules.storm, storms[name])}
        held[name] = anyway
        competing.append(Competing(name, one.gate.cap, one.total, one.competing, anyway))
    while over := held_by_caps(rules.caps, after.sizes, after.places, competing):
        displaced = False  # a node that may not be closed again gives its place to the next one at once
        for at, (name, _, _, rows, anyway) in enumerate(competing):
            lingers = {node: lingering(rows[node]) for node in over.get(name, ()) if rows[node].lingers}
            if lingers:
                held[name] = {**anyway, **lingers}
                competing[at] = competing[at]._replace(held=held[name])
                displaced = True
        if not displaced:
            held.update((name, {**held[name], **by_caps}) for name, by_caps in over.items())
            break
    for one in members:
        if held[one.gate.name] == one.memory.held:
            held[one.gate.name] = one.memory.held
    return held


# Stage 3: decisions and states.


def _state(
    rule: StormRule | None, one: _Seen, after: NextGate, previous: DecisionMemory, turns: list[Turn], monotonic: float
) -> tuple[GateState, tuple[str, ...]]:
    """Returns the gate's state and the nodes whose Decision changed. Appends to `turns`."""
    name = one.gate.name
    known_state = previous.snapshot.gates.get(name)
    before = known_state or GateState(name, decisions=LayeredMap[Decision]())
    redo = dict.fromkeys(one.rows)
    if after.held is not one.memory.held:
        old, new = one.memory.held, after.held
        redo.update((node, None) for node in (*old, *new) if old.get(node) != new.get(node))
    changes: dict[str, Decision | None] = {}
    closed: dict[str, str] | None = None
    rows, held, was = one.rows, after.held, before.decisions
    for node in redo:
        row = rows[node] if node in rows else one.memory.rows.get(node)
        known = was.get(node)
        decision = None if row is None else _decision(row, held.get(node), known, monotonic)
        if decision is known:
            continue
        changes[node] = decision
        reason = OPEN if decision is None else decision.reason
        if decision is not None and (known is None or known.reason != reason):
            turns.append(Turn(name, node, known, decision))
        if reason != before.closed.get(node, OPEN):
            closed = dict(before.closed) if closed is None else closed
            closed[node] = reason
            if reason == OPEN:
                del closed[node]
    decisions = before.decisions if isinstance(before.decisions, LayeredMap) else LayeredMap(before.decisions)
    state = GateState(
        name,
        decisions.with_changes(changes),
        before.closed if closed is None else closed,
        one.armed,
        one.gate.severity,
        _cap_state(one, after) if one.touched or after.held is not one.memory.held else before.cap,
        _storm_states(rule, after) if one.touched or after.storms != one.memory.storms else before.storms,
    )
    return (before if known_state is not None and _same(before, state) else state), tuple(changes)


def _same(before: GateState, after: GateState) -> bool:
    """Compares without reading each node."""
    if before.decisions is not after.decisions or before.closed is not after.closed:
        return False
    return (before.armed, before.cap, before.storms) == (after.armed, after.cap, after.storms)


def _decision(row: Row, held: Held | None, known: Decision | None, monotonic: float) -> Decision:
    verdict = row.verdict
    if held is not None:
        reason, (by, note, until) = OPEN, held
    elif known is None and row.wants == verdict.bare and row.held_by is HeldBy.NONE:
        return Decision(row.wants, verdict.pod, verdict.evidence, monotonic, row.changes_at, verdict.bare, new=row.new)
    else:
        reason, by, note, until = row.wants, row.held_by, row.note, row.until
    if reason == verdict.bare and by is not HeldBy.NOT_GATED:
        by, note, until = HeldBy.NONE, "", None
    since = known.since_monotonic if known is not None and known.reason == reason else monotonic
    new = row.new and reason != OPEN
    decision = Decision(
        reason, verdict.pod, verdict.evidence, since, row.changes_at, verdict.bare, by, until, note, new
    )
    return known if known is not None and decision == known else decision


def _cap_state(one: _Seen, after: NextGate) -> CapState:
    limit = None if one.gate.cap is None else one.gate.cap.of(one.total)
    held = sum(why.by is HeldBy.CAP for why in after.held.values())
    return CapState(limit, len(after.competing) - len(after.held), held)


def _storm_states(rule: StormRule | None, after: NextGate) -> tuple[Storm, ...]:
    if not after.storms:
        return ()
    bad = turned(after.competing)
    return tuple(
        Storm(
            *storm.cause,
            nodes=len(storm.nodes),
            suspect=suspect(storm, bad),
            began_monotonic=storm.began,
            until=None if rule is None else storm.until(rule),
        )
        for storm in after.storms
    )


def _cap(caps: Caps, states: Mapping[str, GateState], groups: Mapping[Group, GroupMemory]) -> int | None:
    """Returns how many nodes all refusing gates together may close."""
    if caps.cluster is None or not groups:
        return None
    group, memory = next(iter(groups.items()))  # the refusing gates come first
    return caps.cluster.of(memory.sizes.total) if states[group[0]].refuses else None


def _snapshot(
    previous: DecisionMemory, states: Mapping[str, GateState], evidence: Evidence, cap: int | None
) -> Snapshot:
    before = previous.snapshot
    nodes = before.nodes
    turned_up = [name for name, seen in evidence.items() if (seen is None) is (name in nodes)]
    if turned_up:
        nodes = nodes.symmetric_difference(turned_up)
    same = nodes is before.nodes and len(states) == len(before.gates) and cap == before.cap
    if same and all(map(operator.is_, states.values(), map(before.gates.get, states))):
        return before
    return before.after(states, nodes, cap)
