"""Gates as a snapshot shows them, in a word or two a node."""

from extender.policy import reasons
from extender.policy.decision import Decision, GateState, HeldBy

REASONS = {
    "open": reasons.OPEN,
    "lost": reasons.CLOSED_NODE_LOST,
    "missing": reasons.CLOSED_NO_HEALTH_POD,
    "unhealthy": reasons.CLOSED_UNHEALTHY,
    "not ready": reasons.CLOSED_NOT_READY,
    "unknown": reasons.CLOSED_UNKNOWN,
    "starts fail": reasons.CLOSED_STARTS_FAIL,
    "held": reasons.CLOSED_HELD,
}


def closed(word, evidence="", held_by="", note="", *, new=False):
    reason = REASONS[word]
    return Decision(reason, "ns/pod", evidence, verdict=reason, held_by=HeldBy(held_by), note=note, new=new)


def opened(verdict="open", evidence="", held_by="", note=""):
    return Decision(reasons.OPEN, "ns/pod", evidence, verdict=REASONS[verdict], held_by=HeldBy(held_by), note=note)


def gate(name, *, armed=True, severity="gate", **decisions):
    """decisions: by node; None for a node it knows nothing of."""
    found = {node: one for node, one in decisions.items() if one is not None}
    shut = {node: one.reason for node, one in found.items() if one.reason}
    return GateState(name, found, shut, armed=armed, severity=severity)


def gates(*states):
    return {state.name: state for state in states}
