"""How many pods, and how much of them, are remembered, and who is forgotten first."""

import tracemalloc
from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from extender.why.entries import PodRecord
from extender.why.journal import Journal
from extender.why.pods import FORGET_AFTER_S, NAMES_MAX, PODS_MAX, Pods
from tools.kit.cases import cases

MIB = 2**20


def record(name, *, at=0.0, nodes=0, unanswered=0):
    return PodRecord(
        "ns", name, "u", at, at, refused=nodes, nodes=b"\0\0\0\0" * nodes, codes=b"\0" * nodes, unanswered=unanswered
    )


def pods_of(*records, **bounds):
    pods = Pods(**bounds)
    for one in records:
        pods.put(one)
    return pods


@cases(
    "records, bounds, expected",
    ("there is room", [("a", 1), ("b", 1)], {"pods_max": 2}, []),
    ("the one asked about longest ago", [("a", 1), ("b", 1), ("c", 1)], {"pods_max": 2}, ["a"]),
    ("before it one that was refused nothing", [("a", 1), ("b", 0), ("c", 1)], {"pods_max": 2}, ["b"]),
    ("asked about again", [("a", 1), ("b", 1), ("a", 1), ("c", 1)], {"pods_max": 2}, ["b"]),
    ("one that holds names, for names", [("a", 3), ("b", 0), ("c", 2)], {"names_max": 4}, ["a"]),
    ("one that is too large alone", [("a", 1), ("b", 2), ("c", 9)], {"names_max": 4}, ["a", "b", "c"]),
    ("what was before does not count", [("a", 3), ("a", 2), ("b", 2)], {"names_max": 4}, []),
    ("nor what was refused once", [("a", 3), ("a", 0), ("b", 4)], {"names_max": 4}, []),
)
def test_who_must_go(records, bounds, expected):
    pods = pods_of(*(record(name, nodes=nodes) for name, nodes in records), **bounds)
    assert pods.too_many(9) == [f"ns/{name}" for name in expected]
    pods.drop(pods.too_many(9))
    assert pods.too_many(9) == []
    assert pods.names == sum(one.names for one in pods)


@pytest.mark.parametrize(
    "bounds", [{"pods_max": 100}, {"pods_max": 100, "names_max": 90}, {"pods_max": 1000, "names_max": 90}]
)
def test_a_flood_of_refused_pods_does_not_displace_the_newest_that_were_refused_nothing(bounds):
    pods = pods_of(*(record(f"refused{number}", nodes=1) for number in range(100)), **bounds)
    for number in range(50):
        for one in (record(f"new{number}"), record(f"more{number}", nodes=1)):
            pods.put(one)
            while gone := pods.too_many(9):
                pods.drop(gone)
    newest = [f"ns/new{number}" for number in range(41, 50)]
    assert newest == [key for key in newest if pods.get(key) is not None]
    assert len(pods) <= bounds["pods_max"]
    assert pods.names <= bounds.get("names_max", NAMES_MAX)


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


def ordinary(number: int) -> PodRecord:
    """As pods of a Deployment are named; refused a few nodes that are known."""
    name, uid = f"recommendation-service-7c9d8f6b5d-{number:05}", f"{number:08}-1d2c-4b3a-9f8e-0123456789ab"
    return PodRecord(
        "team-recommendations", name, uid, number, number, refused=9, nodes=b"\0\0\0\1" * 9, codes=b"\1" * 9
    )


def hostile(number: int, *, unknown: int, refused: int = 0) -> PodRecord:
    """The longest texts that are remembered, each its own."""
    names = tuple(f"{number * 10 + one:0253}" for one in range(unknown))
    return PodRecord(
        "n" * 63,
        f"{number:0253}",
        f"{number:064}",
        number,
        number,
        refused=refused,
        nodes=b"\0" * 4 * refused,
        codes=b"\0" * refused,
        unknown=names,
        unknown_count=unknown,
    )


def taken_mib(journal: Journal, records: Iterable[PodRecord]) -> float:
    """MiB, once these were put in, and so many forgotten as must go."""
    tracemalloc.start()
    try:
        for record in records:
            journal.put(record)
            journal.memory.pods.drop(journal.memory.pods.too_many(500))
        return tracemalloc.get_traced_memory()[0] / MIB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda number: hostile(number, unknown=8), id="refused nodes that nobody knows, by long names"),
        pytest.param(lambda number: hostile(number, unknown=0), id="refused nothing"),
        pytest.param(lambda number: hostile(number, unknown=0, refused=1), id="refused one node that is known"),
    ],
)
def test_pods_with_the_longest_names_take_less_memory_than_ordinary_ones(make):
    """At a tenth of 100,000 pods and four million names: 100,000 ordinary pods take 59 MiB, and 77 with all names."""
    journal = Journal(steps_max=0)
    journal.memory.pods = Pods(pods_max=10_000, names_max=400_000)
    assert taken_mib(journal, map(make, range(10_000))) <= 5.0


def test_a_pod_that_is_refused_other_long_names_each_time_fills_nothing():
    """For who follows the steps are kept, each with the names of its own."""
    assert taken_mib(Journal(), (hostile(number, unknown=8) for number in range(10_000))) <= 35.0
    records = (replace(hostile(0, unknown=0), unknown=hostile(number, unknown=8).unknown) for number in range(10_000))
    assert taken_mib(Journal(), records) <= 10.0


def test_as_many_pods_of_ordinary_names_are_remembered_as_there_may_be():
    pods = Pods()
    for number in range(PODS_MAX):
        pods.put(ordinary(number))
    assert (PODS_MAX, []) == (len(pods), pods.too_many(9))


def test_as_many_names_of_known_nodes_are_remembered_as_before():
    pods = pods_of(*(replace(ordinary(number), codes=b"\1" * 1000) for number in range(1000)))
    assert (1000, NAMES_MAX, []) == (len(pods), pods.names, pods.too_many(9))


def test_the_oldest_that_were_refused_nothing_go_first_by_their_characters_too():
    pods = pods_of(record("a", nodes=3), names_max=50, pods_max=9)
    pods.put(hostile(1, unknown=0))
    assert pods.too_many(9) == [hostile(1, unknown=0).key]
    pods.drop(pods.too_many(9))
    assert (pods.names, [one.name for one in pods]) == (3, ["a"])
