"""When nodes that turn bad together are a storm, which of them it holds open, and when it is over."""

import math

import pytest

from extender.policy.storm import Cause, StormRule, Turned, Weather, suspect, weather

RULE = StormRule(percent=20, at_least=3, within_s=60.0, calm_s=60.0)
PROBE: Cause = ("node(s) with a health pod that is not Ready", "ContainersNotReady")
DISK: Cause = ("node(s) reported unhealthy", "CheckFailed")


def turned(*times: float, cause: Cause = PROBE, name: str = "n") -> dict[str, Turned]:
    return {f"{name}{i}": Turned(cause, at) for i, at in enumerate(times)}


@pytest.mark.parametrize(
    ("size", "bad", "held"),
    [
        pytest.param(10, turned(100, 100), set(), id="two of ten: fewer than three are never a storm"),
        pytest.param(3, turned(100, 100), set(), id="two of three, though they are 66%"),
        pytest.param(3, turned(100, 100, 100), {"n0", "n1", "n2"}, id="three of three"),
        pytest.param(14, turned(100, 100, 100), {"n0", "n1", "n2"}, id="three of 14 are 21%"),
        pytest.param(15, turned(100, 100, 100), set(), id="three of 15 are 20%: not more than that"),
        pytest.param(100, turned(*[100] * 20), set(), id="20 of 100"),
        pytest.param(100, turned(*[100] * 21), {f"n{i}" for i in range(21)}, id="21 of 100"),
        pytest.param(10, turned(40.5, 70, 100), {"n0", "n1", "n2"}, id="within a minute"),
        pytest.param(10, turned(40, 70, 100), set(), id="the first turned a minute ago"),
        pytest.param(10, turned(10, 60, 70, 100), {"n1", "n2", "n3"}, id="whoever turned earlier stays closed"),
        pytest.param(
            10, {**turned(100, 100), **turned(100, 100, cause=DISK, name="d")}, set(), id="two each for two causes"
        ),
        pytest.param(10, turned(-math.inf, 100, 100), set(), id="one of which nothing tells when"),
        pytest.param(0, turned(), set(), id="no nodes"),
    ],
)
def test_which_nodes_a_storm_holds(size: int, bad: dict[str, Turned], held: set[str]) -> None:
    storms = weather(RULE, size, bad, (), monotonic=100.0)
    assert held == set().union(*(storm.nodes for storm in storms))


RAGING = Weather(PROBE, frozenset({"n0", "n1", "n2"}), began=100.0)


@pytest.mark.parametrize(
    ("bad", "before", "monotonic", "expected"),
    [
        pytest.param(
            turned(100, 100, 100),
            RAGING,
            5000.0,
            [(frozenset({"n0", "n1", "n2"}), None)],
            id="as long as they are bad, however long",
        ),
        pytest.param(
            {**turned(100, 100, 100), "late": Turned(PROBE, 4999.0)},
            RAGING,
            5000.0,
            [(frozenset({"n0", "n1", "n2", "late"}), None)],
            id="who turns for the same cause is held too",
        ),
        pytest.param(
            {**turned(100, 100, 100), "old": Turned(PROBE, 99.0), "other": Turned(DISK, 110.0)},
            RAGING,
            110.0,
            [(frozenset({"n0", "n1", "n2"}), None)],
            id="who was bad before, or for another cause, is not",
        ),
        pytest.param(turned(100, 100), RAGING, 200.0, [(frozenset({"n0", "n1"}), 200.0)], id="it calms down"),
        pytest.param(
            turned(100, 100),
            Weather(PROBE, frozenset({"n0", "n1"}), 100.0, calm_since=150.0),
            209.9,
            [(frozenset({"n0", "n1"}), 150.0)],
            id="not yet over",
        ),
        pytest.param(
            turned(100, 100), Weather(PROBE, frozenset({"n0", "n1"}), 100.0, calm_since=150.0), 210.0, [], id="over"
        ),
        pytest.param(
            turned(100, 100, 160),
            Weather(PROBE, frozenset({"n0", "n1"}), 100.0, calm_since=150.0),
            160.0,
            [(frozenset({"n0", "n1", "n2"}), None)],
            id="it rages again",
        ),
        pytest.param(
            {**turned(100, 100), "n2": Turned(DISK, 4000.0)},
            RAGING,
            4100.0,
            [(frozenset({"n0", "n1", "n2"}), None)],
            id="one of its nodes is bad for another cause by now",
        ),
    ],
)
def test_how_a_storm_goes_on(bad, before, monotonic, expected) -> None:
    storms = weather(RULE, 10, bad, [before], monotonic=monotonic)
    assert expected == [(storm.nodes, storm.calm_since) for storm in storms]


def test_a_process_that_starts_knows_a_storm_of_yesterday_by_when_its_nodes_turned() -> None:
    bad = {**turned(-86_400, -86_390, -86_380), "late": Turned(PROBE, -40.0), "long": Turned(PROBE, -99_000.0)}
    storms = weather(RULE, 10, bad, (), monotonic=100.0, first=True)
    assert [(frozenset({"n0", "n1", "n2", "late"}), -86_400)] == [(storm.nodes, storm.began) for storm in storms]


def test_and_takes_nodes_that_turned_one_after_the_other_for_none() -> None:
    assert () == weather(RULE, 10, turned(-300, -200, -100, 0), (), monotonic=100.0, first=True)


def test_two_storms_at_once_hold_their_own_nodes() -> None:
    bad = {**turned(100, 100, 100), **turned(100, 100, 100, cause=DISK, name="d")}
    storms = weather(RULE, 10, bad, (), monotonic=100.0)
    assert {PROBE: 3, DISK: 3} == {storm.cause: len(storm.nodes) for storm in storms}
    assert not storms[0].nodes & storms[1].nodes


def test_the_suspect_is_what_most_of_them_say() -> None:
    bad = {"a": Turned(DISK, 1, "dns: timeout"), "b": Turned(DISK, 1, "dns: timeout"), "c": Turned(DISK, 1, "disk")}
    storm = Weather(DISK, frozenset({"a", "b", "c", "gone"}), 1.0)
    assert ("dns: timeout", "") == (suspect(storm, bad), suspect(storm, {}))
