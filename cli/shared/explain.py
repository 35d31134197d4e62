"""Explains a decision in plain words: the state of a node, its cause, and what opens the node. Pure."""

from typing import NamedTuple

from agent.wire.condition import REASON_CHECK_FAILED
from cli.shared.layout import Style, age
from component.text import one_line
from extender.policy.reasons import (
    CLOSED_NO_HEALTH_POD,
    CLOSED_NODE_LOST,
    CLOSED_NOT_READY,
    CLOSED_STARTS_FAIL,
    CLOSED_UNHEALTHY,
)
from extender.web.report import DecisionTold, NodeVerdict

HELD_BY_ORDER = ("hold", "pause", "exempt")
WARNED = "warned"  # open, although a check of the agent warns
_STATES = {
    "cap": "held open",
    "storm": "held open",
    "exempt": "held open",
    "pause": "held open",
    "grace": "failing",
    "not-gated": "not gated",
}
_HEARTBEAT = "kubelet Lease not renewed"


class Words(NamedTuple):
    """A decision in words. The clauses begin in lower case and end without a full stop."""

    state: str  # one or two words
    cause: str  # a clause, "" without a cause
    opens_when: str  # a clause, "" for an open node
    style: Style


def decisions_of(node: NodeVerdict) -> tuple[DecisionTold, ...]:
    """What each gate decided. An extender without decisions for each gate counts as one gate."""
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


def words_of(decision: DecisionTold, heartbeat_age_s: float | None = None) -> Words:
    """Explains a decision. heartbeat_age_s: since the kubelet last renewed its Lease, None if unknown."""
    if decision.open:
        return _open(decision)
    shadow = "" if decision.armed else "would close"
    state = "opening" if decision.held_by == "damping" else shadow or "closed"
    if decision.severity == "warn":
        state = "warn"
    elif decision.severity == "preferNot":
        state = "not preferred"
    bad = decision.armed and decision.severity == "gate" and state == "closed"
    style = Style.BAD if bad else Style.HELD
    return Words(state, cause_of(decision, heartbeat_age_s), opens_when(decision), style)


def _open(decision: DecisionTold) -> Words:
    if not decision.verdict:
        warning = one_line(decision.evidence) if decision.held_by != "not-gated" else ""
        return Words(WARNED, warning, "-", Style.HELD) if warning else Words("open", "", "", Style.GOOD)
    until = decision.until_seconds
    left = "" if until is None else age(until)
    closes = {
        "cap": "when the cap has room",
        "storm": f"in {left} if the storm goes on" if left else "when the storm ends",
        "grace": f"in {left}" if left else "when the grace period ends",
        "exempt": f"in {left}, when the exemption ends" if left else "when the exemption ends",
        "pause": f"in {left}, when the pause ends" if left else "when the pause ends",
    }.get(decision.held_by, "")
    state = _STATES.get(decision.held_by, "held open")
    return Words(state, cause_of(decision), f"- (closes {closes})" if closes else "-", Style.HELD)


def cause_of(decision: DecisionTold, heartbeat_age_s: float | None = None) -> str:
    """What is wrong with the node, or which order holds it."""
    note = one_line(decision.note)
    if decision.held_by == "damping":
        return note or "healthy again, but not for long enough yet"
    evidence = _evidence(decision, heartbeat_age_s)
    if decision.held_by in (*HELD_BY_ORDER, "cap", "storm"):
        return f"{note}: {evidence}" if note and evidence and decision.verdict else note or evidence
    return evidence


def _evidence(decision: DecisionTold, heartbeat_age_s: float | None) -> str:
    # A healthy node that is held closed has no evidence against it.
    evidence = one_line(decision.evidence) if decision.verdict or not decision.held_by else ""
    if evidence == _HEARTBEAT:
        return f"kubelet Lease not renewed for {age(heartbeat_age_s or decision.since_seconds)}"
    return evidence.partition(f"{REASON_CHECK_FAILED}: ")[2] or evidence or _plain(decision.verdict or decision.reason)


_BEGINS = (
    ("lost:", "lost:"),
    ("without", "it is without"),
    ("with ", "it has "),
    ("whose ", "its "),
)


def _plain(reason: str) -> str:
    """Rewrites a reason for one node: `node(s) without a health pod` becomes `it is without a health pod`."""
    rest = one_line(reason).removeprefix("node(s) ")
    if rest.startswith("on which "):
        return f"{rest.removeprefix('on which ')} on it"
    for begin, instead in _BEGINS:
        if rest.startswith(begin):
            return instead + rest.removeprefix(begin)
    return f"it is {rest}" if rest else ""


def opens_when(decision: DecisionTold) -> str:
    """What must happen for the node to open: the clause after "opens when"."""
    until = decision.until_seconds
    if decision.held_by == "damping":
        return "it has been healthy long enough" if until is None else f"it stays healthy for {age(until)} more"
    if decision.held_by == "hold":
        return "the hold is lifted" if until is None else f"the hold is lifted, or ends in {age(until)}"
    pod = one_line(decision.pod) or "its health pod"
    if decision.reason == CLOSED_NODE_LOST:
        return "its kubelet renews its Lease" if decision.evidence == _HEARTBEAT else "its kubelet reports again"
    if decision.reason == CLOSED_NO_HEALTH_POD:
        return "a health pod on it is Ready"
    if decision.reason == CLOSED_UNHEALTHY:
        check = _check(decision.evidence)
        return f"check {check} passes" if check else f"{pod} reports it healthy"
    if decision.reason == CLOSED_NOT_READY:
        return f"{pod} is Ready"
    if decision.reason == CLOSED_STARTS_FAIL:
        return "a pod of these owners starts there, or none has failed there for a while"
    return "its health is known and good again"


def _check(evidence: str) -> str:
    """The name of the failed check in the agent's evidence; "" for several checks, or none."""
    name, colon, _ = evidence.partition(f"{REASON_CHECK_FAILED}: ")[2].partition(":")
    return (
        name if colon and name and " " not in name and REASON_CHECK_FAILED in evidence and ";" not in evidence else ""
    )
