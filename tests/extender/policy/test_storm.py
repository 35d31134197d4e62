"""When nodes that turn bad together are a storm, which of them it holds open, and when it is over."""

import math

from extender.policy.storm import Cause, StormRule, Turned, Weather, suspect, weather
from tools.kit.cases import cases

RULE = StormRule(percent=20, at_least=3, within_s=60.0, calm_s=60.0)
PROBE: Cause = ("node(s) with a health pod that is not Ready", "ContainersNotReady")
DISK: Cause = ("node(s) reported unhealthy", "CheckFailed")


def turned(*times: float, cause: Cause = PROBE, name: str = "n") -> dict[str, Turned]:
    return {f"{name}{i}": Turned(cause, at) for i, at in enumerate(times)}


@cases(
    "size, bad, held",
    ("two of ten: fewer than three are never a storm", 10, turned(100, 100), set()),
    ("two of three, though they are 66%", 3, turned(100, 100), set()),
    ("three of three", 3, turned(100, 100, 100), {"n0", "n1", "n2"}),
    ("three of 14 are 21%", 14, turned(100, 100, 100), {"n0", "n1", "n2"}),
    ("three of 15 are 20%: not more than that", 15, turned(100, 100, 100), set()),
    ("20 of 100", 100, turned(*[100] * 20), set()),
    ("21 of 100", 100, turned(*[100] * 21), {f"n{i}" for i in range(21)}),
    ("within a minute", 10, turned(40.5, 70, 100), {"n0", "n1", "n2"}),
    ("the first turned a minute ago", 10, turned(40, 70, 100), set()),
    ("whoever turned earlier stays closed", 10, turned(10, 60, 70, 100), {"n1", "n2", "n3"}),
    ("two each for two causes", 10, {**turned(100, 100), **turned(100, 100, cause=DISK, name="d")}, set()),
    ("one of which nothing tells when", 10, turned(-math.inf, 100, 100), set()),
    ("no nodes", 0, turned(), set()),
)
def test_which_nodes_a_storm_holds(size: int, bad: dict[str, Turned], held: set[str]) -> None:
    storms = weather(RULE, size, bad, (), monotonic=100.0)
    assert held == set().union(*(storm.nodes for storm in storms))


THREE = frozenset({"n0", "n1", "n2"})
RAGING = Weather(PROBE, THREE, began=100.0)
CALMING = Weather(PROBE, frozenset({"n0", "n1"}), 100.0, calm_since=150.0)
LATE, DISK_LATER = {"late": Turned(PROBE, 4999.0)}, {"n2": Turned(DISK, 4000.0)}
OTHERS = {"old": Turned(PROBE, 99.0), "other": Turned(DISK, 110.0)}


@cases(
    "bad, before, monotonic, expected",
    ("as long as they are bad", turned(100, 100, 100), RAGING, 5000.0, [(THREE, None)]),
    ("a later node of the same cause", {**turned(100, 100, 100), **LATE}, RAGING, 5000.0, [(THREE | {"late"}, None)]),
    ("an earlier node, or another cause", {**turned(100, 100, 100), **OTHERS}, RAGING, 110.0, [(THREE, None)]),
    ("it calms down", turned(100, 100), RAGING, 200.0, [(frozenset({"n0", "n1"}), 200.0)]),
    ("not yet over", turned(100, 100), CALMING, 209.9, [(frozenset({"n0", "n1"}), 150.0)]),
    ("over", turned(100, 100), Weather(PROBE, frozenset({"n0", "n1"}), 100.0, calm_since=150.0), 210.0, []),
    ("it rages again", turned(100, 100, 160), CALMING, 160.0, [(THREE, None)]),
    ("a node now has another cause", {**turned(100, 100), **DISK_LATER}, RAGING, 4100.0, [(THREE, None)]),
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
