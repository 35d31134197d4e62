"""Pure: what a decision has changed, as log lines.

Nodes are named while few change at once. Beyond that a line gives their number: nobody reads thousands of lines a
second, and they take time to write.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from extender.policy.decision import Decision, GateState, Storm
from extender.policy.reasons import OPEN
from extender.policy.snapshot import Snapshot

NODES_NAMED = 50  # in one decision


class Line(NamedTuple):
    """One log line. facts: the fields after the message."""

    level: Literal["info", "warning"]
    message: str
    facts: dict[str, object]


def lines(before: Snapshot, after: Snapshot, changed: Mapping[str, Iterable[str]]) -> list[Line]:
    """Returns the lines. changed: by gate, the nodes whose Decision has changed or is gone.

    Of the first snapshot only storms and caps are logged.
    """
    found = []
    for name, state in after.gates.items():
        earlier = before.gates.get(name)
        found += _of_gate(earlier or GateState(name, armed=state.armed), state)
        if earlier is not None:
            found += [line for node in changed.get(name, ()) if (line := _of_node(node, earlier, state)) is not None]
    named = [line for line in found if "node" in line.facts]
    if len(named) <= NODES_NAMED:
        return found
    rest = Counter((line.message, line.facts["gate"]) for line in named[NODES_NAMED:])
    kept = [line for line in found if "node" not in line.facts] + named[:NODES_NAMED]
    return kept + [
        Line("info", message.replace("node", "more nodes", 1), {"gate": gate, "nodes": number})
        for (message, gate), number in rest.items()
    ]


def _of_node(node: str, earlier: GateState, state: GateState) -> Line | None:
    before, after = earlier.decisions.get(node), state.decisions.get(node)
    message = "" if after is None else _message(before, after)
    if after is None or not message:
        return None
    facts: dict[str, object] = {"node": node, "gate": state.name}
    if not state.refuses:
        facts["enforcement"] = "shadow" if not state.armed else state.severity
    if message != OPENED:
        facts |= {"reason": after.reason or after.verdict}
    facts["pod"] = after.pod
    if message != OPENED:
        facts["evidence"] = after.against
    if after.held_by:
        facts |= {"held_by": after.held_by.value, "note": after.note}
    return Line("info", message, facts)


CLOSED, OPENED, HELD_OPEN, HELD_CLOSED = "node closed", "node opened", "node held open", "node held closed"


def _message(before: Decision | None, after: Decision) -> str:
    """Returns the message about a node, "" for none."""
    if after.reason != OPEN:
        if before is None or before.reason != after.reason:
            return CLOSED
        held_anew = after.verdict == OPEN and (before.verdict != OPEN or before.held_by != after.held_by)
        return HELD_CLOSED if held_anew and after.held_by else ""
    if after.verdict != OPEN and (before is None or before.verdict == OPEN or before.held_by != after.held_by):
        return HELD_OPEN
    return OPENED if before is None or before.reason != OPEN else ""


def _of_gate(before: GateState, after: GateState) -> list[Line]:
    found = []
    facts: dict[str, object] = {"gate": after.name}
    if before.armed != after.armed:
        found.append(Line("warning", "gate armed" if after.armed else "gate disarmed: refuses nothing", facts))
    began = {_key(storm): storm for storm in after.storms}
    ended = {_key(storm): storm for storm in before.storms}
    found += [
        Line("warning", "storm began: nodes are held open", facts | _storm_facts(storm))
        for key, storm in began.items()
        if key not in ended
    ]
    found += [
        Line("info", "storm ended", facts | _storm_facts(storm)) for key, storm in ended.items() if key not in began
    ]
    if after.cap.held and not before.cap.held:
        cap: dict[str, object] = {"closed": after.cap.closed, "held": after.cap.held, "limit": after.cap.limit}
        found.append(Line("warning", "cap reached: nodes are held open", facts | cap))
    elif before.cap.held and not after.cap.held:
        found.append(Line("info", "cap no longer reached", facts | {"closed": after.cap.closed}))
    return found


def _key(storm: Storm) -> tuple[str, str]:
    return storm.reason, storm.cause


def _storm_facts(storm: Storm) -> dict[str, object]:
    return {"nodes": storm.nodes, "reason": storm.reason, "cause": storm.cause, "suspect": storm.suspect}
