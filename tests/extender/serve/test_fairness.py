"""Crowds that ask without a pause, and one client that asks beside them, by a clock that goes as far as answers cost.

And whose bytes are read next: descriptors are numbers, what epoll says of each is its name.
"""

import pytest

from extender.serve.fairness import NEW_S, PAST_S, REQUEST_S, SENIORS, Fairness, Readable, cost_s
from extender.serve.limits import CONNECTIONS_MAX

CHEAP_S = REQUEST_S  # as /livez
NAME = b'"node-0000000000000000000000000000000000",'
SCHEDULER_TIMEOUT_S = 1.0


def names_s(count):
    return cost_s(NAME * count)


DEAR_S = names_s(65_536)


def longest_wait_s(crowd_s, own_s, *, calls=5, pause_s=0.0005, slow=1.0, anew=False, begins_s=0.0, seniors=()):
    """Of these calls: from the question to the answer. crowd_s: what the requests of the others cost, each of whom asks
    again as soon as it has its answer. slow: how much longer each answer takes than it is thought to cost. anew: each
    of the others connects for each call. begins_s: when the own client, which is there from the beginning, asks first.
    seniors: who has been answered for longest: numbers of the others, and "own".
    """
    turns, now, asked, waits = Fairness(CONNECTIONS_MAX), 0.0, None, []
    charged_until = {"own": NEW_S} | dict.fromkeys(range(len(crowd_s)), NEW_S)
    for number, cost in enumerate(crowd_s):
        turns.put(number, cost, now, NEW_S, senior=number in seniors)
    asks_at = begins_s + pause_s
    while len(waits) < calls:
        if asked is None and now >= asks_at:
            asked = asks_at
            turns.put("own", own_s, now, charged_until["own"], senior="own" in seniors)
        client = turns.take()
        cost = own_s if client == "own" else crowd_s[client]
        now += slow * cost
        charged_until[client] = turns.charged(charged_until[client], slow * cost, now)
        if client == "own":
            waits.append(now - asked)
            asked, asks_at = None, now + pause_s
        else:
            charge = now + NEW_S if anew else charged_until[client]
            turns.put(client, cost, now, charge, senior=client in seniors)
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


ALIKE_S = [names_s(5_000)] * CROWD


@pytest.mark.parametrize(
    ("crowd_s", "names", "how"),
    [
        pytest.param(ALIKE_S, 5_000, {"pause_s": 0.6}, id="who asks alike"),
        pytest.param(ALIKE_S, 5_000, {"pause_s": 0.6, "anew": True}, id="who asks alike, and connects for each call"),
        pytest.param(ALIKE_S, 5_000, {"pause_s": 2.5, "slow": 4.0}, id="who asks alike, on a slow machine"),
        pytest.param(ALIKE_S, 812, {"pause_s": 0.5, "slow": 4.0}, id="who asks for more, on a slow machine"),
        pytest.param(
            [CHEAP_S] * 63 + [DEAR_S] * 64, 5_000, {"pause_s": 0.6}, id="who asks for health, and for much more"
        ),
        pytest.param([DEAR_S] * CROWD, 10_000, {"pause_s": 1.2}, id="who asks for much more"),
    ],
)
def test_one_that_asks_seldom_waits_for_the_answer_in_progress_and_one_more(crowd_s, names, how):
    """Beside a crowd that asks without a pause. Before, it waited for an answer of each: 0.25 s, and 1 s when slow."""
    own_s, slow = names_s(names), how.get("slow", 1.0)
    assert longest_wait_s(crowd_s, own_s, begins_s=10.0, **how) <= slow * (own_s + 2 * max(crowd_s)) * 1.001


@pytest.mark.parametrize("slow", [1.0, 4.0])
@pytest.mark.parametrize("names", [812, 5_000])
def test_beside_one_that_asks_much_those_that_ask_seldom_take_half_of_the_time_at_most(names, slow):
    """In the worst mixture that was found: all dear ones are behind it, and all cheap ones before."""
    crowd_s, own_s = [CHEAP_S] * 63 + [DEAR_S] * 64, names_s(names)
    all_alike_s = 0.55 if slow == 1.0 else 0.95
    saved_s = 63 * PAST_S / (2 * CONNECTIONS_MAX)  # of the cheap ones, who had asked for little until then
    assert longest_wait_s(crowd_s, own_s, calls=40, slow=slow, begins_s=10.0) <= (
        2 * all_alike_s + saved_s + 2 * slow * DEAR_S  # the one in progress, and the one that has waited longest
    )


MIXED_S = [CHEAP_S] * 63 + [DEAR_S] * 64


@pytest.mark.parametrize("slow", [1.0, 8.0])
@pytest.mark.parametrize(
    ("crowd_s", "answers"),
    [
        pytest.param(ALIKE_S, 12, id="who asks alike"),
        pytest.param(MIXED_S, 7, id="who asks for health, and for much more"),
        pytest.param([DEAR_S] * CROWD, 3, id="who asks for much more"),
    ],
)
def test_one_that_was_there_before_all_others_and_asks_without_a_pause_waits_for_a_few_answers(crowd_s, answers, slow):
    """Beside a crowd that does so too, some cycles of it later. Before, it waited for an answer of each: 0.25 s beside
    who asks alike, and 2 s on a machine that is eight times as slow."""
    begins_s = 4 * slow * sum(crowd_s)
    waited_s = longest_wait_s(crowd_s, names_s(5_000), calls=100, slow=slow, begins_s=begins_s, seniors=["own"])
    assert waited_s <= slow * answers * max(crowd_s)


@pytest.mark.parametrize("others", [0, 3, SENIORS - 1])
def test_of_several_that_were_there_before_each_waits_for_two_answers_of_each_other_one(others):
    seniors = ["own", *range(others)]
    waited_s = longest_wait_s(ALIKE_S, ALIKE_S[0], calls=50, begins_s=10.0, seniors=seniors)
    assert waited_s <= (3 * others + 4) * ALIKE_S[0]


@pytest.mark.parametrize(
    ("crowd_s", "names", "limit_s"),
    [
        pytest.param([DEAR_S] * CROWD, 812, 0.06, id="812 names beside who asks dear things without end"),
        pytest.param([DEAR_S] * CROWD, 5_000, 0.06, id="5,000 names beside the dear"),
        pytest.param(ALIKE_S, 5_000, 0.5, id="5,000 names beside who asks alike"),
        pytest.param([CHEAP_S] * CROWD, 5_000, 0.05, id="5,000 names beside who asks for health"),
    ],
)
def test_one_that_comes_after_those_that_ask_without_end_waits_twice_as_long_as_alone_at_most(crowd_s, names, limit_s):
    """Of these as many as can be have been there for longest."""
    waited_s = longest_wait_s(crowd_s, names_s(names), begins_s=10.0, calls=20, seniors=range(SENIORS))
    assert waited_s <= limit_s <= SCHEDULER_TIMEOUT_S


def test_the_one_that_has_waited_longest_is_next_when_those_before_it_have_cost_as_much():
    turns = Fairness(10)
    turns.put("dear", 0.01, 0.0)
    for number in range(20):
        turns.put(number, 0.001, 0.0)
    order = [turns.take() for _ in range(len(turns))]
    assert [*range(10), "dear", *range(10, 20)] == order


@pytest.mark.parametrize("after_s", [0.0, 0.001, 2.0])
def test_one_that_has_come_to_ask_once_is_answered_after_those_that_have_waited_longer(after_s):
    """Though it asks a moment after it came. Else a crowd that comes anew for each call would go before all others."""
    turns = Fairness(10)
    turns.put("asks much", 0.001, after_s, after_s + NEW_S)
    turns.put("has just come", 0.001, after_s, NEW_S)
    assert ["asks much", "has just come"] == [turns.take() for _ in range(2)]


def test_who_has_had_its_turn_out_of_order_is_forgotten():
    """One that asks seldom is always there, so of the others each is taken because it has waited longest."""
    turns, most = Fairness(4), 0
    costs_s = {"seldom": 0.01, "much": 0.001}
    for client, cost in costs_s.items():
        turns.put(client, cost, 0.0)
    for number in range(2_000):
        client, now = turns.take(), number * 0.001
        turns.put(client, costs_s[client], now, now + 2 * PAST_S if client == "much" else 0.0)
        most = max(most, len(turns._by_time))
    assert most <= 4 * 4
    assert 2 == len(turns)


def test_who_takes_a_turn_where_nobody_waits_is_told_so():
    with pytest.raises(LookupError):
        Fairness(10).take()


def test_alike_they_are_answered_in_the_order_they_came():
    turns = Fairness(10)
    for number in range(5):
        turns.put(number, 0.001, number * 0.0001)
    assert list(range(5)) == [turns.take() for _ in range(5)]


@pytest.mark.parametrize(
    ("charge_left_s", "cost_s", "expected"),
    [
        pytest.param(-100.0, 0.001, ["charged", "other"], id="a charge that is over costs nothing"),
        pytest.param(-100.0, 0.003, ["other", "charged"], id="and gives nothing"),
        pytest.param(0.0, 0.001, ["charged", "other"], id="nor does one that ends now"),
        pytest.param(
            0.05, 0.001, ["other", "charged"], id="50 ms that are left of a charge come after 20 ms of another"
        ),
    ],
)
def test_a_client_is_put_back_by_what_is_left_of_its_charge(charge_left_s, cost_s, expected):
    """The process has run for a day: a charge is compared with the present time."""
    turns, now = Fairness(10), 86_400.0
    turns.put("charged", cost_s, now, now + charge_left_s)
    turns.put("other", 0.002, now, now)
    assert [turns.take(), turns.take()] == expected


def chosen(ready, there, *, most=4, first=()):
    """Who is looked at in a turn in which these are ready."""
    return [fd for fd, _ in ready.chosen([(fd, fd + 100) for fd in there], lambda fd: fd in first, most)]


@pytest.mark.parametrize(
    ("there", "first", "expected"),
    [
        pytest.param([1, 2, 3], (), [1, 2, 3], id="all where there are few"),
        pytest.param([1, 2, 3, 4, 5, 6], (), [1, 2, 3, 4], id="of more those that the kernel names first"),
        pytest.param([1, 2, 3, 4, 5, 6], (6,), [6, 1, 2, 3], id="one that goes first, wherever it stands"),
        pytest.param([1, 2, 3, 4, 5, 6], (1, 2, 3, 4, 5), [1, 2, 3, 4], id="many that go first, in their order"),
        pytest.param([1, 2, 3, 4, 5, 6], (3, 4, 5, 6), [3, 4, 1, 2], id="half of a turn for them at most"),
        pytest.param([], (7,), [], id="nobody where nobody is ready"),
    ],
)
def test_who_is_chosen_of_those_that_are_ready(there, first, expected):
    assert expected == chosen(Readable(), there, first=first)


def test_each_comes_to_its_turn_though_the_kernel_names_the_same_ones_first():
    ready, there = Readable(), list(range(10))
    turns = [chosen(ready, there) for _ in range(5)]
    assert [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1], [2, 3, 4, 5], [6, 7, 0, 1]] == turns


def test_beside_some_that_always_go_first_each_other_one_comes_to_its_turn():
    ready, seen = Readable(), set()
    for _ in range(50):
        seen.update(chosen(ready, range(100), first=range(90, 100)))
    assert set(range(90)) <= seen


def test_who_is_ready_no_more_loses_its_place_in_the_order():
    ready = Readable()
    chosen(ready, [1, 2, 3, 4, 5, 6])
    assert [6, 1, 2, 3] == chosen(ready, [1, 2, 3, 4, 6])
    assert [4, 1, 2, 3] == chosen(ready, [1, 2, 3, 4, 5])


def test_what_the_kernel_says_now_counts():
    ready = Readable()
    ready.chosen([(1, 7), (2, 7), (3, 7)], lambda _: False, 2)
    assert [(3, 9), (1, 8)] == ready.chosen([(1, 8), (2, 8), (3, 9)], lambda _: False, 2)


def test_as_many_as_there_are_may_be_asked_for_and_those_not_looked_at_are_next():
    ready = Readable()
    assert [1, 2, 3, 4, 5, 6] == chosen(ready, [1, 2, 3, 4, 5, 6], most=100)
    ready.left([4, 5, 6])
    ready.left([6])
    assert [6, 4, 5, 1, 2, 3] == chosen(ready, [1, 2, 3, 4, 5, 6], most=100)
