"""Pure: what is decided on all nodes at all gates, from what is seen of them and what is remembered.

    1 each node at each gate for itself     `rows`: evidence, verdict, orders, damping
    2 the bad nodes of each gate together   `brakes`: storms, then caps; caps look at all armed gates at once
    3 what changes by that                  decisions, the state of each gate, the snapshot

A gate that is not armed is decided as if it were, with its own caps. What one event costs does not grow with the number
of nodes: rows of others are not looked at, and what has not changed is shared with the snapshot before.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from extender.policy.brakes import Competing, held_back, held_by_caps, held_by_storms, lingering, storms_of, turned
from extender.policy.caps import Caps, Place
from extender.policy.decision import CapState, Decision, GateState, HeldBy, Storm
from extender.policy.evidence import NodeEvidence, Surroundings
from extender.policy.gates import Gate
from extender.policy.ledger import Decided, GateMemory, Group, GroupMemory, Held, Ledger, NextGate, Turn
from extender.policy.orders import Kind
from extender.policy.overlay import Overlay
from extender.policy.reasons import OPEN
from extender.policy.rows import Around, Row, row_of
from extender.policy.snapshot import Snapshot
from extender.policy.storm import StormRule, Weather, suspect


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides, by the configuration. gates: in the order of the file. storm: None = there are none."""

    gates: tuple[Gate, ...]
    caps: Caps = field(default_factory=Caps)
    storm: StormRule | None = None

    def braked(self, gate: Gate) -> bool:
        return not (self.caps.off and gate.cap is None and self.storm is None)


Evidence = Mapping[str, NodeEvidence | None]


@dataclass(frozen=True, slots=True)
class _Seen:
    """Stage 1 of a gate. rows: as of NextGate. touched: whether the brakes must look again."""

    gate: Gate
    armed: bool
    memory: GateMemory
    rows: Mapping[str, Row | None]
    competing: Mapping[str, Row]
    total: int
    touched: bool


def decide(
    rules: Rules, ledger: Ledger, evidence: Evidence, surroundings: Surroundings, *, monotonic: float, wall: float
) -> Decided:
    """Decides on the nodes given, None being a node that is no more, and leaves the ledger as it is.

    evidence: of all that has changed, of the nodes that are due, and of all nodes if ledger.anew().
    """
    anew = ledger.anew(surroundings, wall)
    places: dict[tuple[str, str], Place] = {}
    seen = []
    for gate in rules.gates:
        placement = surroundings.placements.get(gate.name)
        around = Around(rules.caps, surroundings.orders, placement, rules.braked(gate), monotonic, wall, places)
        memory = ledger.gates.get(gate.name, _NO_MEMORY)
        seen.append(_seen(gate, memory, ledger, evidence, around, anew=anew))
    groups = {group: _next_group(group, seen, ledger) for group in _groups(seen)}
    storms = {one.gate.name: _storms(rules, one, monotonic) for one in seen}
    held: dict[str, Mapping[str, Held]] = {}
    for one in seen:
        state = ledger.snapshot.gates.get(one.gate.name, _NO_STATE)
        by_storms = held_by_storms(rules.storm, storms[one.gate.name])
        held[one.gate.name] = {**held_back(one.competing, state.closed), **by_storms}
    for group, after in groups.items():
        members = [one for one in seen if one.gate.name in group]
        calm = all(not one.touched and storms[one.gate.name] == one.memory.storms for one in members)
        _hold_by_caps(rules, members, held, after, anew=not calm or group not in ledger.groups)
    states: dict[str, GateState] = {}
    turns: list[Turn] = []
    changed: dict[str, tuple[str, ...]] = {}
    gates: dict[str, NextGate] = {}
    for one in seen:
        name = one.gate.name
        gates[name] = NextGate(one.rows, one.competing, one.total, storms[name], held[name])
        states[name], changed[name] = _state(rules.storm, one, gates[name], ledger, turns, monotonic)
    ends = (storm.until(rules.storm) for these in storms.values() for storm in these if rules.storm is not None)
    return Decided(
        snapshot=_snapshot(ledger, states, evidence),
        turned=tuple(turns),
        changed=changed,
        looked_at=tuple(evidence),
        gates=gates,
        groups=groups,
        surroundings=surroundings,
        brakes_at=min((at for at in ends if at is not None), default=math.inf),
        wall=wall,
    )


_NO_MEMORY = GateMemory()
_NO_STATE = GateState("")


# Stage 1.


def _seen(gate: Gate, memory: GateMemory, ledger: Ledger, evidence: Evidence, around: Around, *, anew: bool) -> _Seen:
    state = ledger.snapshot.gates.get(gate.name)
    closed: Mapping[str, str] = {} if state is None else state.closed
    rows: dict[str, Row | None] = {}
    competing: dict[str, Row] | None = None
    total, touched = memory.total, not memory.rows
    for name, seen in evidence.items():
        before = memory.rows.get(name)
        after = None if seen is None else _row(gate, seen, before, name in closed, around, anew=anew)
        if after is before:
            continue
        rows[name] = after
        total += (after is not None and after.counted) - (before is not None and before.counted)
        touched = touched or _stand(before) != _stand(after)
        if (after is not None and after.competes) or name in memory.competing:
            competing = dict(memory.competing) if competing is None else competing
            competing.pop(name, None)
            if after is not None and after.competes:
                competing[name] = after
            touched = True
    arming = around.orders.arming(gate.name, around.wall)
    armed = gate.armed if arming is None else arming.kind is Kind.ARM
    return _Seen(gate, armed, memory, rows, memory.competing if competing is None else competing, total, touched)


def _row(gate: Gate, seen: NodeEvidence, before: Row | None, was_closed: bool, around: Around, *, anew: bool) -> Row:
    asleep = before is not None and not anew and (before.changes_at is None or around.monotonic < before.changes_at)
    if before is not None and asleep and before.made_of(seen, gate.name):
        return before
    return row_of(gate, seen, before, was_closed, around)


def _stand(row: Row | None) -> tuple[bool, bool, Place] | None:
    """What the caps' fractions are made of."""
    return None if row is None else (row.counted, row.uncounted, row.place)


# Stage 2.


def _groups(seen: Iterable[_Seen]) -> list[Group]:
    """Armed gates that refuse share caps; any other is counted as if it were alone."""
    together = [one.gate.name for one in seen if _refuses(one)]
    alone: list[Group] = [(one.gate.name,) for one in seen if not _refuses(one)]
    return [tuple(together), *alone] if together else alone


def _refuses(one: _Seen) -> bool:
    return one.armed and one.gate.severity == "gate"


def _next_group(group: Group, seen: Iterable[_Seen], ledger: Ledger) -> GroupMemory:
    members = [one for one in seen if one.gate.name in group]
    before = ledger.groups.get(group)
    names: set[str] = set()
    if before is None:
        before = GroupMemory()
        names = {name for one in members for name in (*one.memory.rows, *one.rows)}
    else:
        for one in members:
            if one.touched:
                of = one.memory.rows
                names.update(name for name, row in one.rows.items() if _stand(of.get(name)) != _stand(row))
    if not names:
        return before
    places = {name: _counted_at(name, members) for name in names}
    left = [place for name in names if (place := before.places.get(name)) is not None]
    came = [place for place in places.values() if place is not None]
    return GroupMemory(before.places.with_changes(places), before.sizes.changed(left, came))


def _counted_at(name: str, members: Iterable[_Seen]) -> Place | None:
    """Where the node counts; None if at no gate, or if one closes it beside all caps."""
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
    if not one.touched and not one.memory.storms:
        return ()
    first = not one.memory.rows
    return storms_of(rules.storm, one.total, one.competing, one.memory.storms, monotonic=monotonic, first=first)


def _hold_by_caps(
    rules: Rules, members: list[_Seen], held: dict[str, Mapping[str, Held]], after: GroupMemory, *, anew: bool
) -> None:
    """Adds to `held`, which has those that are open in any case. anew: whether anything may be other than before."""
    if not anew:
        held.update((one.gate.name, one.memory.held) for one in members)
        return
    over: dict[str, dict[str, Held]] = {}
    displaced = True
    while displaced:  # whoever may not be closed anew leaves its place at once to the next
        competing = [
            Competing(one.gate.name, one.gate.cap, one.total, one.competing, held[one.gate.name]) for one in members
        ]
        over = held_by_caps(rules.caps, after.sizes, after.places, competing)
        displaced = False
        for one in members:
            rows = one.competing
            lingers = {node: lingering(rows[node]) for node in over[one.gate.name] if rows[node].lingers}
            if lingers:
                held[one.gate.name] = {**held[one.gate.name], **lingers}
                displaced = True
    held.update((name, {**held[name], **by_caps}) for name, by_caps in over.items())


# Stage 3.


def _state(
    rule: StormRule | None, one: _Seen, after: NextGate, ledger: Ledger, turns: list[Turn], monotonic: float
) -> tuple[GateState, tuple[str, ...]]:
    """The gate's state, and the nodes whose Decision is another one. Adds to `turns`."""
    name = one.gate.name
    known_state = ledger.snapshot.gates.get(name)
    quiet = not one.rows and after.held is one.memory.held and after.storms == one.memory.storms
    if known_state is not None and quiet and known_state.armed == one.armed:
        return known_state, ()
    before = known_state or GateState(name, decisions=Overlay[Decision]())
    redo = dict.fromkeys(one.rows)
    if after.held is not one.memory.held:
        old, new = one.memory.held, after.held
        redo.update((node, None) for node in (*old, *new) if old.get(node) != new.get(node))
    changes: dict[str, Decision | None] = {}
    closed: dict[str, str] | None = None
    for node in redo:
        row = one.rows[node] if node in one.rows else one.memory.rows.get(node)
        known = before.decisions.get(node)
        decision = None if row is None else _decision(row, after.held.get(node), known, monotonic)
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
    decisions = before.decisions if isinstance(before.decisions, Overlay) else Overlay(before.decisions)
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
    """Without a look at each node."""
    if before.decisions is not after.decisions or before.closed is not after.closed:
        return False
    return (before.armed, before.cap, before.storms) == (after.armed, after.cap, after.storms)


def _decision(row: Row, held: Held | None, known: Decision | None, monotonic: float) -> Decision:
    if held is None:
        reason, by, note, until = row.wants, row.held_by, row.note, row.until
    else:
        reason, (by, note, until) = OPEN, held
    verdict = row.verdict
    if reason == verdict.bare and by is not HeldBy.NOT_GATED:
        by, note, until = HeldBy.NONE, "", None
    since = known.since_monotonic if known is not None and known.reason == reason else monotonic
    decision = Decision(reason, verdict.pod, verdict.evidence, since, row.changes_at, verdict.bare, by, until, note)
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


def _snapshot(ledger: Ledger, states: Mapping[str, GateState], evidence: Evidence) -> Snapshot:
    before = ledger.snapshot
    nodes = before.nodes
    gone = [name for name, seen in evidence.items() if seen is None and name in nodes]
    came = [name for name, seen in evidence.items() if seen is not None and name not in nodes]
    if gone or came:
        nodes = nodes.difference(gone).union(came)
    same = nodes is before.nodes and states.keys() == before.gates.keys()
    if same and all(state is before.gates[name] for name, state in states.items()):
        return before
    return before.after(states, nodes)
