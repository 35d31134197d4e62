"""What is told of names as requests spell them, and what is kept ready for that."""

import json
from collections import Counter

import pytest

from extender.policy.spelling import Spelled, respelled, sort_out_spelled, spelled_at, spelled_of

NODES = frozenset({"n1", "n2", "n3", "n4"})
LOST, SICK = "node lost", "unhealthy"


def spelled(**closed: str) -> Spelled:
    return spelled_at(spelled_of(NODES), closed)


@pytest.mark.parametrize(
    ("closed", "asked", "survivors", "refused"),
    [
        pytest.param({}, ["n2", "n1"], ["n2", "n1"], {}, id="nothing is closed"),
        pytest.param({"n3": SICK}, ["n2", "n1"], ["n2", "n1"], {}, id="another one is closed"),
        pytest.param({"n1": SICK}, ["n2", "n1"], ["n2"], {"n1": SICK}, id="one of them is"),
        pytest.param({"n1": SICK, "n2": SICK}, ["n2", "n1"], [], {"n1": SICK, "n2": SICK}, id="all of them are"),
        pytest.param(
            {"n1": SICK, "n2": LOST, "n4": SICK},
            ["n4", "n3", "n2", "n1"],
            ["n3"],
            {"n1": SICK, "n2": LOST, "n4": SICK},
            id="for several reasons",
        ),
        pytest.param({"n1": SICK, "n2": LOST}, ["n1", "n3"], ["n3"], {"n1": SICK}, id="one of several reasons"),
    ],
)
def test_names_that_are_all_known_are_sorted_out(
    closed: dict[str, str], asked: list[str], survivors: list[str], refused: dict[str, str]
) -> None:
    found = sort_out_spelled([json.dumps(name).encode() for name in asked], spelled(**closed))
    assert found is not None
    assert survivors == [json.loads(name) for name in found.survivors]
    assert refused == json.loads(found.refused.told)
    assert (sorted(refused), len(refused)) == (sorted(found.refused), len(found.refused))
    assert Counter(refused.values()) == found.refused.reasons
    assert {name: name in refused for name in asked} == {name: name in found.refused for name in asked}


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param([b'"n1"', b'"x"'], id="one that nobody knows"),
        pytest.param([b'"n1"', b'"n2"', b'"n1"'], id="one twice"),
        pytest.param([b'"n1"', b"n2"], id="what is no text"),
        pytest.param([b'"n1"', b""], id="nothing between two commas"),
        pytest.param([b'"n1"', b'"away"'], id="one that is closed and no node"),
    ],
)
def test_of_other_names_nothing_is_said(asked: list[bytes]) -> None:
    assert None is sort_out_spelled(asked, spelled(n1=SICK, away=SICK))


def test_a_name_that_is_closed_and_no_node_is_not_counted() -> None:
    """While it was, it would be waited for to be noted as refused, which it never is."""
    kept = spelled(n1=SICK, away=SICK)
    assert (1, spelled_of(NODES).keys()) == (kept.closed, kept.known.keys())


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param(NODES, ["n1", "n2", "n3", "n4"], id="none came or went"),
        pytest.param(NODES | {"n0", "n5"}, ["n1", "n2", "n3", "n4", "n0", "n5"], id="some came"),
        pytest.param(NODES - {"n2", "n3"}, ["n1", "n4"], id="some went"),
        pytest.param(NODES - {"n1"} | {"n0"}, ["n2", "n3", "n4", "n0"], id="one came for another"),
        pytest.param(frozenset(), [], id="all went"),
    ],
)
def test_nodes_that_stay_keep_their_order_and_those_that_come_are_the_last(
    after: frozenset[str], expected: list[str]
) -> None:
    assert expected == list(map(json.loads, respelled(spelled_of(NODES), NODES, after)))
