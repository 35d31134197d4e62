"""How many nodes a cap lets close, by table; and which ones."""

import random

import pytest

from extender.policy.caps import Caps, Limit, Place, Sizes, beyond, beyond_caps, room_for
from tools.kit.cases import cases
from tools.kit.scope import draws


def percent(share: int) -> Limit:
    return Limit(percent=share)


def nodes(number: int) -> Limit:
    return Limit(absolute=number)


@pytest.mark.parametrize(
    ("limit", "count", "expected"),
    [
        pytest.param(percent(30), 0, 0, id="no node, none"),
        pytest.param(percent(30), 1, 0, id="the only node stays open"),
        pytest.param(percent(30), 2, 1, id="30% of 2 is 0.6: one may close"),
        pytest.param(percent(30), 3, 1, id="30% of 3 is 0.9: one may close"),
        pytest.param(percent(30), 4, 1, id="30% of 4 is 1.2"),
        pytest.param(percent(30), 6, 1, id="30% of 6 is 1.8, rounded down"),
        pytest.param(percent(30), 7, 2, id="30% of 7 is 2.1"),
        pytest.param(percent(30), 9, 2, id="30% of 9 is 2.7, rounded down"),
        pytest.param(percent(30), 10, 3, id="30% of 10 is 3, exactly"),
        pytest.param(percent(30), 13, 3, id="30% of 13 is 3.9, rounded down"),
        pytest.param(percent(30), 33, 9, id="30% of 33 is 9.9, rounded down"),
        pytest.param(percent(30), 99, 29, id="30% of 99 is 29.7, rounded down"),
        pytest.param(percent(30), 100, 30, id="30% of 100"),
        pytest.param(percent(30), 101, 30, id="30% of 101 is 30.3"),
        pytest.param(percent(30), 5000, 1500, id="30% of 5,000"),
        pytest.param(percent(1), 2, 1, id="1% of 2: one may close all the same"),
        pytest.param(percent(1), 99, 1, id="1% of 99 is 0.99: one may close"),
        pytest.param(percent(1), 100, 1, id="1% of 100"),
        pytest.param(percent(1), 199, 1, id="1% of 199, rounded down"),
        pytest.param(percent(1), 200, 2, id="1% of 200"),
        pytest.param(percent(33), 3, 1, id="33% of 3 is 0.99: one may close"),
        pytest.param(percent(33), 9, 2, id="33% of 9 is 2.97, rounded down"),
        pytest.param(percent(33), 100, 33, id="33% of 100"),
        pytest.param(percent(34), 3, 1, id="34% of 3 is 1.02"),
        pytest.param(percent(50), 2, 1, id="half of 2"),
        pytest.param(percent(50), 3, 1, id="half of 3, rounded down"),
        pytest.param(percent(50), 5, 2, id="half of 5, rounded down"),
        pytest.param(percent(54), 100, 54, id="54% of 100"),
        pytest.param(percent(55), 100, 55, id="55% of 100"),
        pytest.param(percent(55), 11, 6, id="55% of 11 is 6.05"),
        pytest.param(percent(57), 100, 57, id="57% of 100: 0.57 * 100 is not 57 as a float"),
        pytest.param(percent(29), 100, 29, id="29% of 100: nor is 0.29 * 100"),
        pytest.param(percent(67), 3, 2, id="67% of 3 is 2.01"),
        pytest.param(percent(99), 100, 99, id="99% of 100"),
        pytest.param(percent(100), 1, 0, id="100% of one node: it stays open"),
        pytest.param(percent(100), 7, 7, id="100% of 7"),
        pytest.param(nodes(1), 0, 0, id="a number, no node"),
        pytest.param(nodes(1), 1, 1, id="a number counts for one node too"),
        pytest.param(nodes(5), 3, 3, id="never more than there are"),
        pytest.param(nodes(5), 5000, 5, id="a number does not grow with the cluster"),
    ],
)
def test_how_many_nodes_a_limit_lets_close(limit: Limit, count: int, expected: int) -> None:
    assert expected == limit.of(count)


def test_without_a_limit_all_may_close() -> None:
    assert [] == beyond(None, 3, ["a", "b", "c"])


def test_beyond_a_limit_the_newest_are_held_open() -> None:
    assert ["b", "c"] == beyond(percent(30), 3, ["a", "b", "c"])


GPU, WEB, NO_POOL = Place("gpu", "z1"), Place("web", "z2"), Place("", "z1")
CLUSTER_AND_POOL = Caps(cluster=nodes(2), pool=percent(30))
CLUSTER_AND_POOL_HOLD = {"b": "cap of pool gpu: 30%", "d": "cap of the cluster: 2"}
LEAVE_ONE = Caps(cluster=percent(100), leave_in_pool=1)
ONE_IS_LEFT = {"b": "1 left open in the nodes without a pool", "f": "1 left open in pool gpu"}
SIZES = Sizes().changed((), [GPU] * 4 + [WEB] * 4 + [NO_POOL] * 2)


@cases(
    "caps, oldest_first, held",
    ("no cap, all close", Caps(), [GPU, GPU, WEB], {}),
    ("30% of ten: three", Caps(cluster=percent(30)), [GPU, GPU, WEB, WEB], {"d": "cap of the cluster: 30%"}),
    ("a node that its pool holds makes room", CLUSTER_AND_POOL, [GPU, GPU, WEB, NO_POOL], CLUSTER_AND_POOL_HOLD),
    ("pools of one zone share its cap", Caps(zone=nodes(1)), [GPU, NO_POOL, WEB], {"b": "cap of zone z1: 1"}),
    ("one is left open in each pool", LEAVE_ONE, [NO_POOL, NO_POOL, GPU, GPU, GPU, GPU], ONE_IS_LEFT),
    ("a pool smaller than what stays", Caps(leave_in_pool=9), [GPU], {"a": "9 left open in pool gpu"}),
)
def test_which_nodes_caps_hold_open(caps: Caps, oldest_first: list[Place], held: dict[str, str]) -> None:
    assert held == beyond_caps(caps, SIZES, list(zip("abcdef", oldest_first, strict=False)))


def test_there_is_room_for_all_when_nobody_is_held_and_only_then(seed: int) -> None:
    chance = random.Random(f"{seed} room")
    limits = (None, percent(30), percent(100), nodes(1), nodes(2), nodes(5))
    found = set()
    for _ in range(draws(400, 2000)):
        caps = Caps(*(chance.choice(limits) for _ in range(3)), leave_in_pool=chance.choice((0, 1)))
        closing = [chance.choice((GPU, WEB, NO_POOL)) for _ in range(chance.randrange(6))]
        held = beyond_caps(caps, SIZES, [(f"n{number}", place) for number, place in enumerate(closing)])
        assert (not held) == room_for(caps, SIZES, closing), (caps, closing, held)
        found.add(not held)
    assert {True, False} == found


def test_sizes_follow_who_leaves_and_who_comes() -> None:
    after = SIZES.changed([NO_POOL, NO_POOL, WEB], [GPU])
    assert Sizes(8, {"gpu": 5, "web": 3}, {"z1": 5, "z2": 3}) == after
