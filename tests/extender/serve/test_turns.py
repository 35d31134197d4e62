"""Crowds that ask without a pause, and one that asks beside them, by a clock that goes as far as answers cost."""

import pytest

from extender.serve.limits import CONNECTIONS_MAX
from extender.serve.turns import REQUEST_S, Turns, cost_s

CHEAP_S = REQUEST_S  # as /livez
NAME = b'"node-0000000000000000000000000000000000",'
SCHEDULER_TIMEOUT_S = 1.0


def names_s(count):
    return cost_s(NAME * count)


DEAR_S = names_s(65_536)


def longest_wait_s(crowd_s, own_s, *, calls=5, pause_s=0.0005):
    """Of these calls: from the question to the answer. crowd_s: what the requests of the others cost, each of whom asks
    again as soon as it has its answer.
    """
    turns, now, asked, waits = Turns(CONNECTIONS_MAX), 0.0, None, []
    for number, cost in enumerate(crowd_s):
        turns.put(number, cost, now)
    asks_at = pause_s
    while len(waits) < calls:
        if asked is None and now >= asks_at:
            asked = asks_at
            turns.put("own", own_s, now)
        client = turns.take()
        cost = own_s if client == "own" else crowd_s[client]
        now += cost
        if client == "own":
            waits.append(now - asked)
            asked, asks_at = None, now + pause_s
        else:
            turns.put(client, cost, now)
    return max(waits)


CROWD = CONNECTIONS_MAX - 1


@pytest.mark.parametrize(
    ("crowd_s", "names", "limit_s"),
    [
        pytest.param([CHEAP_S] * CROWD, 100, 0.02, id="100 names beside who asks for health without end"),
        pytest.param([CHEAP_S] * CROWD, 5_000, 0.05, id="5,000 names beside them"),
        pytest.param([CHEAP_S] * CROWD, 10_000, 0.05, id="10,000 names beside them"),
        pytest.param([CHEAP_S] * CROWD, 65_536, 0.3, id="as many names as there may be beside them"),
        pytest.param([DEAR_S] * CROWD, 812, 0.06, id="812 names beside who asks dear things without end"),
        pytest.param([DEAR_S] * CROWD, 10_000, 0.06, id="10,000 names beside the dear"),
        pytest.param([CHEAP_S] * 63 + [DEAR_S] * 64, 812, 0.15, id="812 names beside both"),
        pytest.param([CHEAP_S] * 63 + [DEAR_S] * 64, 5_000, 0.6, id="5,000 names beside both"),
        pytest.param([names_s(5_000)] * CROWD, 5_000, 0.3, id="5,000 names beside who asks alike"),
    ],
)
def test_how_long_a_call_waits_beside_a_crowd_that_asks_without_a_pause(crowd_s, names, limit_s):
    assert longest_wait_s(crowd_s, names_s(names)) <= limit_s <= SCHEDULER_TIMEOUT_S


def test_the_one_that_has_waited_longest_is_next_when_those_before_it_have_cost_as_much():
    turns = Turns(10)
    turns.put("dear", 0.01, 0.0)
    for number in range(20):
        turns.put(number, 0.001, 0.0)
    order = [turns.take() for _ in range(len(turns))]
    assert [*range(10), "dear", *range(10, 20)] == order


def test_who_takes_a_turn_where_nobody_waits_is_told_so():
    with pytest.raises(IndexError):
        Turns(10).take()


def test_alike_they_are_answered_in_the_order_they_came():
    turns = Turns(10)
    for number in range(5):
        turns.put(number, 0.001, number * 0.0001)
    assert list(range(5)) == [turns.take() for _ in range(5)]
