"""A decision in people's words: what state a node is in, because of what, and what opens it. Pure."""

from typing import NamedTuple

from agent.wire.condition import REASON_CHECK_FAILED
from cli.layout import Style, age
from component.text import one_line
from extender.policy.reasons import (
    CLOSED_NO_HEALTH_POD,
    CLOSED_NODE_LOST,
    CLOSED_NOT_READY,
    CLOSED_STARTS_FAIL,
    CLOSED_UNHEALTHY,
)
from extender.web.schema import DecisionTold

HELD_BY_ORDER = ("hold", "pause", "exempt")
WARNED = "warned"  # open, with something said beside: the agent's checks that warn
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
    """state: one or two words. because, opens_when: a clause without a capital or a dot, "" where there is nothing."""

    state: str
    because: str
    opens_when: str
    style: Style


def words_of(decision: DecisionTold, heartbeat_age_s: float | None = None) -> Words:
    """heartbeat_age_s: since the node's kubelet last renewed its Lease, None if that is not looked at."""
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
    return Words(state, because(decision, heartbeat_age_s), opens_when(decision), style)


def _open(decision: DecisionTold) -> Words:
    if not decision.verdict:
        said = one_line(decision.evidence) if decision.held_by != "not-gated" else ""
        return Words(WARNED, said, "-", Style.HELD) if said else Words("open", "", "", Style.GOOD)
    until = decision.until_seconds
    left = "" if until is None else age(until)
    closes = {
        "cap": "when a place under the cap is free",
        "storm": f"in {left} if it goes on" if left else "when the storm is over",
        "grace": f"in {left}" if left else "when its time is over",
        "exempt": f"in {left}, when the exemption ends" if left else "when the exemption ends",
        "pause": f"in {left}, when the pause ends" if left else "when the pause ends",
    }.get(decision.held_by, "")
    state = _STATES.get(decision.held_by, "held open")
    return Words(state, because(decision), f"- (closes {closes})" if closes else "-", Style.HELD)


def because(decision: DecisionTold, heartbeat_age_s: float | None = None) -> str:
    """What is wrong with the node, or who says so."""
    note = one_line(decision.note)
    if decision.held_by == "damping":
        return note or "healthy again, but not for long enough yet"
    found = _found(decision, heartbeat_age_s)
    if decision.held_by in (*HELD_BY_ORDER, "cap", "storm"):
        return f"{note}: {found}" if note and found and decision.verdict else note or found
    return found


def _found(decision: DecisionTold, heartbeat_age_s: float | None) -> str:
    # Of one that is well and held all the same it tells no cause.
    evidence = one_line(decision.evidence) if decision.verdict or not decision.held_by else ""
    if evidence == _HEARTBEAT:
        return f"its kubelet has been silent for {age(heartbeat_age_s or decision.since_seconds)}"
    return evidence.partition(f"{REASON_CHECK_FAILED}: ")[2] or evidence or _plain(decision.verdict or decision.reason)


_BEGINS = (
    ("lost:", "lost:"),
    ("without", "it is without"),
    ("with ", "it has "),
    ("whose ", "its "),
)


def _plain(reason: str) -> str:
    """`node(s) without a health pod` is `it is without a health pod`, for one node."""
    rest = one_line(reason).removeprefix("node(s) ")
    if rest.startswith("on which "):
        return f"{rest.removeprefix('on which ')} on it"
    for begin, instead in _BEGINS:
        if rest.startswith(begin):
            return instead + rest.removeprefix(begin)
    return f"it is {rest}" if rest else ""


def opens_when(decision: DecisionTold) -> str:
    """The condition for it, without "opens"."""
    until = decision.until_seconds
    if decision.held_by == "damping":
        return "it has been healthy long enough" if until is None else f"it stays healthy for {age(until)} more"
    if decision.held_by == "hold":
        return "the hold is lifted" if until is None else f"the hold is lifted, or ends in {age(until)}"
    pod = one_line(decision.pod) or "its health pod"
    if decision.reason == CLOSED_NODE_LOST:
        return "its Lease moves" if decision.evidence == _HEARTBEAT else "its kubelet reports again"
    if decision.reason == CLOSED_NO_HEALTH_POD:
        return "a health pod on it is Ready"
    if decision.reason == CLOSED_UNHEALTHY:
        check = _check(decision.evidence)
        return f"check {check} passes" if check else f"{pod} reports it healthy"
    if decision.reason == CLOSED_NOT_READY:
        return f"{pod} is Ready"
    if decision.reason == CLOSED_STARTS_FAIL:
        return "a pod of these owners starts there, or none has failed there for a while"
    return "its health is known again, and good"


def _check(evidence: str) -> str:
    """The one check that has failed, by what the agent says of it; "" for several, or none."""
    name, colon, _ = evidence.partition(f"{REASON_CHECK_FAILED}: ")[2].partition(":")
    return (
        name if colon and name and " " not in name and REASON_CHECK_FAILED in evidence and ";" not in evidence else ""
    )
