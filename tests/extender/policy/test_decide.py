"""From evidence and a ledger to decisions, with the time as an argument."""

import math
from collections.abc import Mapping

import pytest

from extender.policy.decide import Rules, decide
from extender.policy.decision import Decision, HeldBy
from extender.policy.evidence import HealthPod, NodeEvidence, Surroundings
from extender.policy.gates import Gate
from extender.policy.memory import Decided, DecisionMemory
from extender.policy.reasons import CLOSED_NO_HEALTH_POD, CLOSED_NOT_READY, OPEN
from tests.extender.builders import health_pod, observed_node
from tests.extender.policy.cluster import cluster, names
from tools.kit.cases import cases

RULES = Rules((Gate("health", missing_grace_s=30.0),))


def on_node(pod: HealthPod) -> NodeEvidence:
    return NodeEvidence(observed_node(), {"health": (pod,)})


GOOD, BAD = on_node(health_pod()), on_node(health_pod(ready="False"))
BAD_AND_SAYS_WHY = on_node(health_pod(ready="False", message="disk"))
MISSING = NodeEvidence(observed_node())
POD = "readygate-system/agent"
WALL = 1_767_225_500.0  # at 100 s of the monotonic clock the nodes are made
SAID = "health pod missing, last verdict"
KEPT = Decision(OPEN, "", SAID, 100.0, 140.0, CLOSED_NO_HEALTH_POD, HeldBy.GRACE, until=140.0, note=SAID)


def decided(previous: DecisionMemory, seen: Mapping[str, NodeEvidence | None], monotonic: float) -> Decided:
    return decide(RULES, previous, seen, Surroundings(), monotonic=monotonic, wall=WALL + monotonic)


def decisions(outcome: Decided) -> dict[str, Decision | None]:
    """Those that are other than before."""
    state = outcome.snapshot.gates["health"]
    return {name: state.decisions.get(name) for name in outcome.changed["health"]}


def ledger_after(*seen: NodeEvidence, monotonic: float = 100.0) -> DecisionMemory:
    previous = DecisionMemory()
    for one in seen:
        previous.keep(decided(previous, {"n1": one}, monotonic))
    return previous


def test_closed_nodes_are_copied_only_when_one_of_them_changed() -> None:
    """At 5,000 nodes each copy costs: evidence changes all the time, reasons seldom."""
    previous = ledger_after(BAD)
    before = previous.snapshot.gates["health"].closed
    previous.keep(decided(previous, {"n1": BAD_AND_SAYS_WHY}, 110.0))
    assert previous.snapshot.gates["health"].closed is before
    previous.keep(decided(previous, {"n1": GOOD}, 120.0))
    assert (dict(before), dict(previous.snapshot.gates["health"].closed)) == ({"n1": CLOSED_NOT_READY}, {})


def since(monotonic: float, reason: str, pod: str = "", detail: str = "") -> Decision:
    return Decision(reason, pod, detail, monotonic, verdict=reason)


@cases(
    "before, now, expected, turned",
    ("a new node", [], GOOD, Decision(OPEN, POD, "", 110.0), True),
    ("a new node without a pod", [], MISSING, since(110.0, CLOSED_NO_HEALTH_POD), True),
    ("another reason, from now on", [GOOD], BAD, since(110.0, CLOSED_NOT_READY, POD), True),
    ("as long as before", [BAD], BAD_AND_SAYS_WHY, since(100.0, CLOSED_NOT_READY, POD, "disk"), False),
    ("the last verdict, until the grace ends", [GOOD], MISSING, KEPT, False),
    ("a node that is no more", [GOOD, GOOD], None, None, False),
)
def test_what_is_decided(
    before: list[NodeEvidence], now: NodeEvidence | None, expected: Decision | None, turned: bool
) -> None:
    outcome = decided(ledger_after(*before), {"n1": now}, 110.0)
    assert ({"n1": expected}, ("n1",) if turned else ()) == (
        decisions(outcome),
        tuple(turn.node for turn in outcome.turned),
    )


@pytest.mark.parametrize(
    ("before", "now"),
    [pytest.param([GOOD], GOOD, id="the same evidence"), pytest.param([], None, id="a node nobody knew is no more")],
)
def test_where_nothing_differs_nothing_is_decided(before: list[NodeEvidence], now: NodeEvidence | None) -> None:
    outcome = decided(ledger_after(*before), {"n1": now}, 110.0)
    assert ({}, ()) == (decisions(outcome), tuple(turn.node for turn in outcome.turned))


def test_deciding_leaves_the_ledger_as_it_is() -> None:
    previous = ledger_after(GOOD)
    before = (previous.snapshot, dict(previous.gates["health"].rows), previous.gates["health"], dict(previous.groups))
    decided(previous, {"n1": BAD, "n2": GOOD}, 110.0)
    assert before == (
        previous.snapshot,
        dict(previous.gates["health"].rows),
        previous.gates["health"],
        dict(previous.groups),
    )


def test_of_a_node_that_is_no_more_nothing_is_remembered() -> None:
    previous = ledger_after(GOOD, MISSING)
    previous.keep(decided(previous, {"n1": None}, 110.0))
    health = previous.gates["health"]
    assert ({}, {}, frozenset(), []) == (health.rows, health.competing, previous.snapshot.nodes, previous.due(1000.0))
    outcome = decided(previous, {"n1": MISSING}, 120.0)
    closed = Decision(CLOSED_NO_HEALTH_POD, since_monotonic=120.0, verdict=CLOSED_NO_HEALTH_POD)
    assert {"n1": closed} == decisions(outcome)


def due_at(previous: DecisionMemory) -> float:
    return previous.due_at(100.0, WALL + 100.0)


def test_a_node_is_due_when_its_decision_changes_by_itself() -> None:
    previous = ledger_after(GOOD, MISSING)
    assert (130.0, [], ["n1"], math.inf) == (
        due_at(previous),
        previous.due(129.9),
        previous.due(130.0),
        due_at(previous),
    )


def test_a_pod_that_is_back_in_time_is_not_waited_for() -> None:
    assert [] == ledger_after(GOOD, MISSING, GOOD).due(1000.0)


def test_what_was_due_and_stays_undecided_is_due_again() -> None:
    previous = ledger_after(GOOD, MISSING)
    previous.due(130.0)
    previous.keep(decided(previous, {"n1": MISSING}, 129.0))
    assert ["n1"] == previous.due(130.0)


def test_what_heals_at_one_gate_makes_room_at_once_for_the_next_oldest_of_another_one() -> None:
    world = cluster(10, Gate("a"), Gate("b"))
    world.bad("n000", "n001", gate="a")
    world.turn(10.0)
    world.bad("n002", gate="b")
    world.turn(10.0)
    world.bad("n003", gate="b")
    world.turn(10.0)
    assert (names(0, 1), names(2), {"n003": "cap"}) == (world.closed("a"), world.closed("b"), world.held("b"))
    world.good("n000", gate="a")
    world.turn(10.0)
    assert (names(1), names(2, 3), {}) == (world.closed("a"), world.closed("b"), world.held("b"))
