"""A gate by how pods start, under the same brakes and orders as any other."""

import pytest

from extender.policy.damping import Damping
from extender.policy.decision import HeldBy
from extender.policy.gates import Gate
from extender.policy.reasons import CLOSED_STARTS_FAIL
from extender.policy.snapshot import SCORE_AVOIDED
from extender.policy.storm import StormRule
from tests.extender.policy.cluster import THIRTY, Cluster, cluster, names

STARTS = Gate("starts", cap=THIRTY, damping=Damping(), by_starts=True, severity="preferNot")
HEALTH = Gate("health", cap=THIRTY, damping=Damping())
BLACK = names(3)


def black(count: int = 10, *nodes: int, storm: StormRule | None = None, gate: Gate = STARTS) -> Cluster:
    made = cluster(count, HEALTH, gate, storm=storm)
    made.swallow(*names(*nodes))
    made.turn(1.0)
    return made


def test_it_closes_the_node_at_this_gate_alone_and_says_why() -> None:
    made = black(10, 3)
    assert (set(), BLACK) == (made.closed("health"), made.closed("starts"))
    decision = made.decision("n003", "starts")
    assert (CLOSED_STARTS_FAIL, "pods of 3 namespaces fail to start here") == (decision.reason, decision.evidence)


@pytest.mark.parametrize(
    ("gate", "refused", "avoided"),
    [
        pytest.param(STARTS, set(), BLACK, id="preferNot lowers its score"),
        pytest.param(Gate("starts", by_starts=True), BLACK, set(), id="gate refuses it"),
        pytest.param(Gate("starts", by_starts=True, armed=False), set(), set(), id="in shadow it does nothing"),
    ],
)
def test_what_it_means_to_pods_is_its_severity(gate: Gate, refused: set[str], avoided: set[str]) -> None:
    made = black(10, 3, gate=gate)
    scores = made.board.score(sorted(made.nodes))
    assert (refused, avoided) == (
        set(made.board.look_up(sorted(made.nodes)).refused),
        {name for name, score in scores.items() if score == SCORE_AVOIDED},
    )


def test_what_it_refuses_with_stays_the_same_while_more_and_more_owners_fail() -> None:
    """kube-scheduler tries a pod without a pause whose text changes."""
    made = black(10, 3, gate=Gate("starts", by_starts=True))
    refused = []
    for count in (3, 4, 40):
        made.swallow("n003", namespaces=count)
        made.turn(1.0)
        refused.append((made.board.look_up(["n003"]).refused["n003"], made.decision("n003", "starts").evidence))
    assert [(CLOSED_STARTS_FAIL, f"pods of {count} namespaces fail to start here") for count in (3, 4, 40)] == refused


def test_it_opens_as_soon_as_pods_start_there() -> None:
    made = black(10, 3)
    made.swallow()
    made.run(60.0)
    assert made.closed("starts") == set()


def test_a_node_that_swallows_pods_again_and_again_stays_closed_for_longer() -> None:
    made = black(10, 3)
    for _ in range(4):
        made.swallow()
        made.turn(1.0)
        made.swallow("n003")
        made.turn(1.0)
    made.swallow()
    made.turn(1.0)
    assert (BLACK, HeldBy.DAMPING) == (made.closed("starts"), made.decision("n003", "starts").held_by)


def test_the_cap_holds_for_it_as_for_any_gate() -> None:
    made = black(10, *range(6))
    assert (3, 3) == (len(made.closed("starts")), list(made.held("starts").values()).count("cap"))


def test_many_at_once_are_a_storm() -> None:
    """An API server that told of no start for a while looks like that."""
    made = black(10, 1, 2, 3, 4, storm=StormRule())
    assert set() == made.closed("starts")
    assert {"storm"} == set(made.held("starts").values())


def test_an_order_speaks_of_it_too() -> None:
    made = black(10, 3)
    made.order(known="{order: exempt, scope: {node: n003, gate: starts}}")
    made.turn(1.0)
    assert ({"n003": "exempt"}, set()) == (made.held("starts"), made.closed("starts"))
