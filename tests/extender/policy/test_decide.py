"""From evidence and a ledger to decisions, with the time as an argument."""

import math

import pytest

from extender.policy.decide import Gate, Ledger, decide
from extender.policy.decision import Decision
from extender.policy.evidence import HealthPod, NodeEvidence
from extender.policy.reasons import CLOSED_NO_HEALTH_POD, CLOSED_NOT_READY, OPEN
from tests.extender.builders import health_pod, observed_node

GATE = Gate("health", missing_grace_s=30.0)


def on_node(pod: HealthPod) -> NodeEvidence:
    return NodeEvidence(observed_node(), {"health": (pod,)})


GOOD, BAD = on_node(health_pod()), on_node(health_pod(ready="False"))
BAD_AND_SAYS_WHY = on_node(health_pod(ready="False", message="disk"))
MISSING = NodeEvidence(observed_node())
POD = "readygate-system/agent"


def ledger_after(*seen: NodeEvidence, monotonic: float = 100.0) -> Ledger:
    ledger = Ledger()
    for one in seen:
        ledger.keep(decide(GATE, ledger, {"n1": one}, monotonic=monotonic), ["n1"])
    return ledger


@pytest.mark.parametrize(
    ("before", "now", "expected", "turned"),
    [
        pytest.param([], GOOD, Decision(OPEN, POD, "", 110.0), True, id="a new node"),
        pytest.param(
            [],
            MISSING,
            Decision(CLOSED_NO_HEALTH_POD, "", "", 110.0, verdict=CLOSED_NO_HEALTH_POD),
            True,
            id="a new node without a pod",
        ),
        pytest.param(
            [GOOD],
            BAD,
            Decision(CLOSED_NOT_READY, POD, "", 110.0, verdict=CLOSED_NOT_READY),
            True,
            id="another reason, from now on",
        ),
        pytest.param(
            [BAD],
            BAD_AND_SAYS_WHY,
            Decision(CLOSED_NOT_READY, POD, "disk", 100.0, verdict=CLOSED_NOT_READY),
            False,
            id="as long as before",
        ),
        pytest.param(
            [GOOD],
            MISSING,
            Decision(OPEN, "", "health pod missing, last verdict", 100.0, changes_at=140.0),
            False,
            id="the last verdict, until the grace ends",
        ),
        pytest.param([GOOD, GOOD], None, None, False, id="a node that is no more"),
    ],
)
def test_what_is_decided(
    before: list[NodeEvidence], now: NodeEvidence | None, expected: Decision | None, turned: bool
) -> None:
    outcome = decide(GATE, ledger_after(*before), {"n1": now}, monotonic=110.0)
    assert ({"n1": expected}, ("n1",) if turned else ()) == (outcome.decisions, outcome.turned)


@pytest.mark.parametrize(
    ("before", "now"),
    [pytest.param([GOOD], GOOD, id="the same evidence"), pytest.param([], None, id="a node nobody knew is no more")],
)
def test_where_nothing_differs_nothing_is_decided(before: list[NodeEvidence], now: NodeEvidence | None) -> None:
    outcome = decide(GATE, ledger_after(*before), {"n1": now}, monotonic=110.0)
    assert ({}, ()) == (outcome.decisions, outcome.turned)


def test_deciding_leaves_the_ledger_as_it_is() -> None:
    ledger = ledger_after(GOOD)
    decisions, memories = dict(ledger.decisions), dict(ledger.memories)
    decide(GATE, ledger, {"n1": BAD, "n2": GOOD}, monotonic=110.0)
    assert (decisions, memories) == (ledger.decisions, ledger.memories)


def test_of_a_node_that_is_no_more_nothing_is_remembered() -> None:
    ledger = ledger_after(GOOD, MISSING)
    ledger.keep(decide(GATE, ledger, {"n1": None}, monotonic=110.0), ["n1"])
    assert ({}, {}, []) == (ledger.decisions, ledger.memories, ledger.due(1000.0))
    outcome = decide(GATE, ledger, {"n1": MISSING}, monotonic=120.0)
    assert {
        "n1": Decision(CLOSED_NO_HEALTH_POD, since_monotonic=120.0, verdict=CLOSED_NO_HEALTH_POD)
    } == outcome.decisions


def test_a_node_is_due_when_its_decision_changes_by_itself() -> None:
    ledger = ledger_after(GOOD, MISSING)
    assert (130.0, [], ["n1"], math.inf) == (ledger.due_at(), ledger.due(129.9), ledger.due(130.0), ledger.due_at())


def test_a_pod_that_is_back_in_time_is_not_waited_for() -> None:
    assert [] == ledger_after(GOOD, MISSING, GOOD).due(1000.0)


def test_what_was_due_and_stays_undecided_is_due_again() -> None:
    ledger = ledger_after(GOOD, MISSING)
    ledger.due(130.0)
    ledger.keep(decide(GATE, ledger, {"n1": MISSING}, monotonic=129.0), ["n1"])
    assert ["n1"] == ledger.due(130.0)
