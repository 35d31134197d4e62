"""What the log says of a decision."""

import pytest

from extender.policy.changes import NODES_NAMED, Line, lines
from extender.policy.decision import CapState, Decision, GateState, HeldBy, Storm
from extender.policy.reasons import CLOSED_HELD, CLOSED_NOT_READY, CLOSED_UNHEALTHY
from extender.policy.snapshot import Snapshot

GOOD = Decision("", "ns/pod")
BAD = Decision(CLOSED_NOT_READY, "ns/pod", "R: m", verdict=CLOSED_NOT_READY)
WORSE = Decision(CLOSED_UNHEALTHY, "ns/pod", "dns", verdict=CLOSED_UNHEALTHY)
CAPPED = Decision("", "ns/pod", "R: m", verdict=CLOSED_NOT_READY, held_by=HeldBy.CAP, note="3 of 3 are closed")
STORMED = Decision("", "ns/pod", "R: m", verdict=CLOSED_NOT_READY, held_by=HeldBy.STORM, note="dns?")
ORDERED = Decision(CLOSED_HELD, "ns/pod", "", held_by=HeldBy.HOLD, note="by anna: disk")
WAITING = Decision(CLOSED_NOT_READY, "ns/pod", "", held_by=HeldBy.DAMPING, note="healthy again")


def snapshot(**gates: GateState) -> Snapshot:
    return Snapshot({state.name: state for state in gates.values()})


def gate(decision: Decision | None = None, name: str = "health", **fields: object) -> GateState:
    return GateState(name, {} if decision is None else {"n1": decision}, **fields)  # type: ignore[arg-type]


def said(before: GateState, after: GateState) -> list[Line]:
    return lines(snapshot(one=before), snapshot(one=after), {"health": ("n1",)})


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        pytest.param(GOOD, BAD, "node closed", id="it closes"),
        pytest.param(None, BAD, "node closed", id="a new node, closed"),
        pytest.param(BAD, WORSE, "node closed", id="for another reason"),
        pytest.param(BAD, BAD, None, id="nothing has changed"),
        pytest.param(BAD, GOOD, "node opened", id="it opens"),
        pytest.param(None, GOOD, "node opened", id="a new node, open"),
        pytest.param(BAD, None, None, id="it is no more"),
        pytest.param(GOOD, CAPPED, "node held open", id="a cap holds it open"),
        pytest.param(None, CAPPED, "node held open", id="a new node, held open"),
        pytest.param(STORMED, CAPPED, "node held open", id="a cap after a storm"),
        pytest.param(BAD, STORMED, "node held open", id="it was closed, a storm opens it"),
        pytest.param(CAPPED, GOOD, None, id="it was held open and is healthy: it was open all the time"),
        pytest.param(CAPPED, BAD, "node closed", id="the cap has a place for it"),
        pytest.param(GOOD, ORDERED, "node closed", id="an order closes it"),
        pytest.param(BAD, WAITING, "node held closed", id="it is healthy and must stay so for a while"),
        pytest.param(WAITING, WAITING, None, id="it still must"),
        pytest.param(WAITING, GOOD, "node opened", id="it has stayed so"),
    ],
)
def test_what_is_said_of_a_node(before: Decision | None, after: Decision | None, message: str | None) -> None:
    assert ([] if message is None else [message]) == [line.message for line in said(gate(before), gate(after))]


def test_the_facts_of_a_line() -> None:
    (line,) = said(gate(GOOD), gate(CAPPED))
    assert {
        "node": "n1",
        "gate": "health",
        "reason": CLOSED_NOT_READY,
        "pod": "ns/pod",
        "evidence": "R: m",
        "held_by": "cap",
        "note": "3 of 3 are closed",
    } == line.facts
    (line,) = said(gate(BAD), gate(GOOD))
    assert {"node": "n1", "gate": "health", "pod": "ns/pod"} == line.facts


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, None, id="one that refuses"),
        pytest.param({"armed": False}, "shadow", id="one that only counts"),
        pytest.param({"severity": "preferNot"}, "preferNot", id="one that would rather not"),
        pytest.param({"armed": False, "severity": "warn"}, "shadow", id="shadow first"),
    ],
)
def test_a_gate_that_refuses_nothing_is_told_apart(fields: dict[str, object], expected: str | None) -> None:
    (line,) = said(gate(GOOD, **fields), gate(BAD, **fields))
    assert expected == line.facts.get("enforcement")


STORM = Storm(CLOSED_NOT_READY, "R", 40, "dns: no answer", 1.0)
GREATER = Storm(CLOSED_NOT_READY, "R", 50, "dns: no answer", 1.0, 9.0)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({}, {"storms": (STORM,)}, ["storm began: nodes are held open"], id="a storm begins"),
        pytest.param({"storms": (STORM,)}, {"storms": (GREATER,)}, [], id="it grows"),
        pytest.param({"storms": (STORM,)}, {}, ["storm ended"], id="it ends"),
        pytest.param({}, {"cap": CapState(3, 3, 1)}, ["cap reached: nodes are held open"], id="a cap is reached"),
        pytest.param({"cap": CapState(3, 3, 1)}, {"cap": CapState(3, 3, 2)}, [], id="by one more"),
        pytest.param({"cap": CapState(3, 3, 1)}, {"cap": CapState(3, 3, 0)}, ["cap no longer reached"], id="no more"),
        pytest.param({"armed": False}, {}, ["gate armed"], id="it is armed"),
        pytest.param({}, {"armed": False}, ["gate disarmed: refuses nothing"], id="it is disarmed"),
    ],
)
def test_what_is_said_of_a_gate(before: dict[str, object], after: dict[str, object], expected: list[str]) -> None:
    assert expected == [line.message for line in said(gate(**before), gate(**after))]


def test_the_first_snapshot_is_told_by_its_storms_and_caps_only() -> None:
    first = snapshot(one=gate(BAD, cap=CapState(3, 3, 9), storms=(STORM,)))
    assert ["storm began: nodes are held open", "cap reached: nodes are held open"] == [
        line.message for line in lines(Snapshot(), first, {"health": ("n1",)})
    ]


def test_of_thousands_of_nodes_a_few_are_named_and_the_rest_counted() -> None:
    names = [f"n{i}" for i in range(5000)]
    before = GateState("health", dict.fromkeys(names, GOOD))
    after = GateState("health", dict.fromkeys(names[:3000], BAD) | dict.fromkeys(names[3000:], CAPPED))
    found = lines(snapshot(one=before), snapshot(one=after), {"health": names})
    assert NODES_NAMED == len([line for line in found if "node" in line.facts])
    assert [
        ("more nodes closed", {"gate": "health", "nodes": 3000 - NODES_NAMED}),
        ("more nodes held open", {"gate": "health", "nodes": 2000}),
    ] == [(line.message, line.facts) for line in found[NODES_NAMED:]]
