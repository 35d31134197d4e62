"""Snapshots of which a test sets the decisions itself."""

from collections.abc import Mapping

from msgspec.structs import replace

from extender.policy.decision import Decision, GateState
from extender.policy.layered_map import LayeredMap
from extender.policy.reasons import OPEN
from extender.policy.snapshot import Snapshot


def with_decisions(snapshot: Snapshot, gate: str, decisions: Mapping[str, Decision | None]) -> Snapshot:
    """The snapshot after these decisions at one gate. None removes a node from all gates."""
    before = snapshot.gates.get(gate, GateState(gate))
    closed = dict(before.closed)
    for name, decision in decisions.items():
        closed.pop(name, None)
        if decision is not None and decision.reason != OPEN:
            closed[name] = decision.reason
    shared = before.decisions if isinstance(before.decisions, LayeredMap) else LayeredMap(before.decisions)
    after = replace(before, decisions=shared.with_changes(decisions))
    if closed != before.closed:
        after = replace(after, closed=closed)
    gone = {name for name, decision in decisions.items() if decision is None}
    came = {name for name, decision in decisions.items() if decision is not None} - snapshot.nodes
    nodes = (snapshot.nodes | came) - gone if came or gone else snapshot.nodes
    return snapshot.after({**snapshot.gates, gate: after}, nodes, snapshot.cap)
