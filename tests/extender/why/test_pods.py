"""How many pods, and names of nodes in them, are remembered, and who is forgotten first."""

import pytest

from extender.why.entries import PodRecord
from extender.why.pods import FORGET_AFTER_S, Pods


def record(name, *, at=0.0, nodes=0, unanswered=0):
    return PodRecord(
        "ns", name, "u", at, at, refused=nodes, nodes=b"\0\0\0\0" * nodes, codes=b"\0" * nodes, unanswered=unanswered
    )


def pods_of(*records, **bounds):
    pods = Pods(**bounds)
    for one in records:
        pods.put(one)
    return pods


@pytest.mark.parametrize(
    ("records", "bounds", "expected"),
    [
        pytest.param([("a", 1), ("b", 1)], {"pods_max": 2}, [], id="there is room"),
        pytest.param([("a", 1), ("b", 1), ("c", 1)], {"pods_max": 2}, ["a"], id="the one asked about longest ago"),
        pytest.param(
            [("a", 1), ("b", 0), ("c", 1)], {"pods_max": 2}, ["b"], id="before it one that was refused nothing"
        ),
        pytest.param([("a", 1), ("b", 1), ("a", 1), ("c", 1)], {"pods_max": 2}, ["b"], id="asked about again"),
        pytest.param([("a", 3), ("b", 0), ("c", 2)], {"names_max": 4}, ["a"], id="one that holds names, for names"),
        pytest.param(
            [("a", 1), ("b", 2), ("c", 9)], {"names_max": 4}, ["a", "b", "c"], id="one that is too large alone"
        ),
        pytest.param([("a", 3), ("a", 2), ("b", 2)], {"names_max": 4}, [], id="what was before does not count"),
        pytest.param([("a", 3), ("a", 0), ("b", 4)], {"names_max": 4}, [], id="nor what was refused once"),
    ],
)
def test_who_must_go(records, bounds, expected):
    pods = pods_of(*(record(name, nodes=nodes) for name, nodes in records), **bounds)
    assert pods.too_many(9) == [f"ns/{name}" for name in expected]
    pods.drop(pods.too_many(9))
    assert pods.too_many(9) == []
    assert pods.names == sum(one.names for one in pods)


def test_a_pod_that_nobody_asks_about_any_more_is_forgotten():
    pods = pods_of(record("a", at=0.0, nodes=1), record("b", at=1.0), record("c", at=5.0, nodes=1))
    assert pods.aged(FORGET_AFTER_S, 9) == []
    assert pods.aged(FORGET_AFTER_S + 0.5, 9) == ["ns/a"]
    assert pods.aged(FORGET_AFTER_S + 1.5, 9) == ["ns/b", "ns/a"]
    assert pods.aged(2 * FORGET_AFTER_S, 9) == ["ns/b", "ns/a", "ns/c"]


def test_no_more_than_a_few_are_forgotten_at_once():
    pods = pods_of(*(record(f"p{number}", nodes=1) for number in range(9)), pods_max=1)
    assert (2, 3) == (len(pods.too_many(2)), len(pods.aged(2 * FORGET_AFTER_S, 3)))


def test_where_there_are_many_a_few_more_go_than_must_so_that_they_are_looked_for_once_in_a_while():
    pods = pods_of(*(record(f"p{number}", nodes=1) for number in range(401)), pods_max=400)
    assert ["ns/p0", "ns/p1", "ns/p2"] == pods.too_many(9)


def test_a_pod_that_was_never_answered_stays_as_long_as_one_that_was_refused():
    pods = pods_of(record("a", unanswered=1), record("b"), pods_max=1)
    assert pods.too_many(9) == ["ns/b"]


def test_which_pods_were_refused_a_node():
    def refused(name, numbers, of_them):
        nodes = b"".join(number.to_bytes(4, "little") for number in numbers)
        return PodRecord("ns", name, "u", 0.0, 0.0, refused=of_them, nodes=nodes, codes=b"\0" * len(numbers))

    pods = pods_of(refused("a", [1, 2], 2), refused("b", [2, 3], 1), refused("c", [3, 2], 1), refused("d", [2], 1))
    assert [one.name for one in pods.refused_on(2)] == ["d", "b", "a"]
    assert [one.name for one in pods.refused_on(9)] == []
