"""Pure: what the Node condition readygate.dev/NodeHealthy must say of a node, by the snapshot.

    False     a gate that refuses closes it
    Unknown   the same, because its state is unknown: lost, or no report on its health
    True      no gate closes it; the reason says whether a gate would, if it were armed or not held open
    (none)    no gate applies to it

It holds no times and no counts: each change of a text is a write.
"""

from collections.abc import Mapping
from typing import NamedTuple

from component.text import one_line
from extender.policy import reasons
from extender.policy.decision import Decision, GateState, HeldBy
from extender.policy.evidence import TOLD_HEALTHY, TOLD_HELD_CLOSED, TOLD_NOT_YET_HEALTHY
from kube.contract import STATUS_FALSE, STATUS_TRUE, STATUS_UNKNOWN

MESSAGE_LIMIT = 400  # characters
EVIDENCE_LIMIT = 160  # of one gate
HELD_OPEN = "HeldOpen"
WOULD_BE_CLOSED = "WouldBeClosed"  # by a gate in shadow
NOT_PREFERRED = "NotPreferred"
WARNED = "Warned"
WORDS: Mapping[str, str] = {
    reasons.CLOSED_NODE_LOST: "NodeLost",
    reasons.CLOSED_NO_HEALTH_POD: "NoHealthPod",
    reasons.CLOSED_UNHEALTHY: "Unhealthy",
    reasons.CLOSED_NOT_READY: "HealthPodNotReady",
    reasons.CLOSED_UNKNOWN: "HealthUnknown",
    reasons.CLOSED_STARTS_FAIL: "PodsFailToStart",
    reasons.CLOSED_HELD: TOLD_HELD_CLOSED,
}
NOTHING_KNOWN = frozenset({reasons.CLOSED_NODE_LOST, reasons.CLOSED_UNKNOWN})


class Standing(NamedTuple):
    """The text of the condition. status: of the condition. reason: a word in camel case. message: one line for
    humans."""

    status: str
    reason: str
    message: str


class _Word(NamedTuple):
    gate: str
    decision: Decision


def standing_of(gates: Mapping[str, GateState], node: str) -> Standing | None:
    """Returns the text, None if no gate applies to the node."""
    closed: list[_Word] = []
    held: list[_Word] = []
    others: dict[str, list[_Word]] = {WOULD_BE_CLOSED: [], NOT_PREFERRED: [], WARNED: []}
    open_at = []
    for state in gates.values():
        decision = state.decisions.get(node)
        if decision is None or decision.held_by is HeldBy.NOT_GATED:
            continue
        open_at.append(state.name)
        word = _Word(state.name, decision)
        if decision.reason != reasons.OPEN:
            (closed if state.refuses else others[_otherwise(state)]).append(word)
        elif state.refuses and decision.verdict != reasons.OPEN and decision.held_by is not HeldBy.GRACE:
            held.append(word)
    if not open_at:
        return None
    if closed:
        return _closed(closed)
    if held:
        return Standing(STATUS_TRUE, HELD_OPEN, _line("held open", held))
    for reason, words in others.items():
        if words:
            return Standing(STATUS_TRUE, reason, _line(_SAID[reason], words))
    return Standing(STATUS_TRUE, TOLD_HEALTHY, one_line(f"open at {_gates(open_at)}", MESSAGE_LIMIT))


_SAID = {
    WOULD_BE_CLOSED: "would be closed, were the gate armed",
    NOT_PREFERRED: "not preferred",
    WARNED: "open, but",
}


def _otherwise(state: GateState) -> str:
    if not state.armed:
        return WOULD_BE_CLOSED
    return NOT_PREFERRED if state.severity == "preferNot" else WARNED


def _closed(words: list[_Word]) -> Standing:
    known = [word for word in words if word.decision.reason not in NOTHING_KNOWN]
    first = (known or words)[0].decision.reason
    new = any(word.decision.new for word in words)  # a new extender reads it back, see cluster.observed
    word = TOLD_NOT_YET_HEALTHY if new else WORDS.get(first, "Closed")
    return Standing(STATUS_FALSE if known else STATUS_UNKNOWN, word, _line("closed", words))


def _line(said: str, words: list[_Word]) -> str:
    each = "; ".join(f"gate {word.gate}: {said_of(word.decision)}" for word in words)
    return one_line(f"{said}: {each}", MESSAGE_LIMIT)


def said_of(decision: Decision) -> str:
    """Returns in one line what is wrong with the node, the evidence, and what holds it."""
    reason = decision.reason or decision.verdict
    parts = [reason.removeprefix("node(s) ")]
    if decision.against:
        parts.append(one_line(decision.against, EVIDENCE_LIMIT))
    said = ": ".join(part for part in parts if part)
    if decision.held_by is HeldBy.NONE:
        return said
    # The note of an order names its author. The note of a cap or storm may count and change with each node.
    ordered = decision.held_by in (HeldBy.HOLD, HeldBy.PAUSE, HeldBy.EXEMPT) and decision.note
    note = f": {one_line(decision.note, EVIDENCE_LIMIT)}" if ordered else ""
    return f"{said} ({decision.held_by.value}{note})"


def _gates(names: list[str]) -> str:
    return f"gate{'s' if len(names) > 1 else ''} {', '.join(names)}"
