"""When a node's condition is due, and which node's turn it is."""

import itertools
import math

import pytest

from extender.outlets.node_condition_text import Standing
from extender.outlets.observed_conditions import ObservedCondition, ObservedConditions
from extender.outlets.rate_limit import RateLimit
from extender.outlets.write_order import NEVER, Due, WriteOrder, due_of
from kube.times import format_time
from tests.extender.builders import node

OPEN = Standing("True", "Healthy", "open")
SHUT = Standing("False", "Unhealthy", "closed: cni")
NOON = 1_800_000_000.0


def mark(standing, age_s=0.0):
    return ObservedCondition("u", *standing, changed=format_time(NOON - 9999), seen=format_time(NOON - age_s))


@pytest.mark.parametrize(
    ("wanted", "there", "expected"),
    [
        pytest.param(OPEN, ObservedCondition("u"), Due(0.0, urgent=True), id="none there yet"),
        pytest.param(SHUT, mark(OPEN), Due(0.0, urgent=True), id="another status: at once"),
        pytest.param(OPEN, mark(OPEN, 10), Due(290.0), id="the same, just said: when it is to be refreshed"),
        pytest.param(OPEN, mark(OPEN, 4000), Due(0.0), id="the same, said long ago"),
        pytest.param(SHUT, mark(SHUT._replace(message="closed: dns"), 10), Due(50.0), id="another message: calmly"),
        pytest.param(SHUT, mark(SHUT._replace(message="closed: dns"), 70), Due(0.0), id="after a calm minute"),
        pytest.param(SHUT, mark(SHUT._replace(reason="Other"), 10), Due(50.0), id="another reason: calmly"),
        pytest.param(OPEN, mark(OPEN, -5000), Due(300.0), id="said by a clock that is ahead: it counts as just said"),
        pytest.param(OPEN, mark(OPEN)._replace(seen="rubbish"), Due(0.0), id="said at no time that can be read"),
        pytest.param(OPEN, mark(OPEN)._replace(seen=""), Due(0.0), id="said at no time"),
        pytest.param(None, mark(OPEN), Due(0.0), id="no gate speaks for it any more: taken away"),
        pytest.param(None, ObservedCondition("u"), NEVER, id="no gate speaks for it, and none is there"),
    ],
)
def test_when_a_condition_is_to_be_written(wanted, there, expected):
    assert expected == due_of(wanted, there, wall=NOON, refresh_s=300.0)


@pytest.mark.parametrize("seen", ["", "2020-01-01T00:00:00Z"])
def test_without_a_refresh_what_is_true_stays(seen):
    assert due_of(OPEN, mark(OPEN)._replace(seen=seen), wall=NOON, refresh_s=math.inf) == NEVER


class Played:
    """Turns with a clock; `sent` holds what was written."""

    def __init__(self, per_second=10.0):
        self.time, self.sent = 1000.0, []
        self.turns = WriteOrder(per_second=per_second, random=lambda: 0.0)

    def put(self, node, due, uid="u"):
        self.turns.put(node, uid, due, self.time)

    def write(self, seconds):
        """All there is to write within so many seconds."""
        end = self.time + seconds
        while self.turns.next_at(self.time) <= end:
            self.time = max(self.time, self.turns.next_at(self.time))
            taken = self.turns.take(self.time)
            if taken is not None:
                self.sent.append(taken[0])
                self.turns.written(taken[0], self.time)
        self.time = end


def test_what_others_wait_for_comes_first_in_order_of_coming():
    played = Played()
    played.put("calm", Due(0.0))
    played.put("second", Due(0.0, urgent=True))
    played.put("third", Due(0.0, urgent=True))
    played.write(1)
    assert ["second", "third", "calm"] == played.sent


def test_a_node_waits_in_one_place_only_and_is_written_once():
    played = Played()
    for due in (Due(5.0), Due(0.0, urgent=True), Due(0.0), Due(0.0, urgent=True)):
        played.put("n", due)
    played.write(60)
    assert ["n"] == played.sent


def test_what_has_turned_back_before_its_turn_is_not_written():
    played = Played()
    played.put("n", Due(0.0, urgent=True))
    played.put("n", NEVER)
    played.write(60)
    assert [] == played.sent


def test_five_thousand_at_once_are_rationed():
    played = Played(per_second=20)
    for number in range(5000):
        played.put(f"n{number}", Due(0.0, urgent=True))
    assert 5000 == played.turns.waiting
    played.write(10)
    assert 20 + 20 * 10 >= len(played.sent) >= 20 * 10
    played.write(250)
    assert (5000, 0) == (len(played.sent), played.turns.waiting)


def test_refreshes_of_five_thousand_do_not_hold_up_a_change():
    played = Played(per_second=20)
    for number in range(5000):
        played.put(f"n{number}", Due(0.0))
    played.write(10)
    played.put("changed", Due(0.0, urgent=True))
    before = len(played.sent)
    played.write(1)
    assert "changed" == played.sent[before]


def test_after_a_failure_all_rest_longer_and_longer_and_another_node_is_next():
    played = Played()
    for name in ("a", "b", "c"):
        played.put(name, Due(0.0, urgent=True))
    tried, times = [], []
    for _ in range(5):
        played.time = max(played.time, played.turns.next_at(played.time))
        node, _ = played.turns.take(played.time)
        tried.append(node)
        times.append(played.time)
        played.turns.failed(node, played.time, None)
    assert ["a", "b", "c", "a", "b"] == tried
    assert [0.5, 1.0, 2.0, 4.0] == [later - sooner for sooner, later in itertools.pairwise(times)]


def test_what_the_server_asks_for_is_waited_for():
    played = Played()
    played.put("a", Due(0.0, urgent=True))
    played.turns.failed(played.turns.take(played.time)[0], played.time, 20.0)
    assert 20.0 == played.turns.next_at(played.time) - played.time


def test_one_node_that_is_refused_is_put_aside_and_the_others_go_on():
    played = Played()
    for name in ("a", "b"):
        played.put(name, Due(0.0, urgent=True))
    refused, _ = played.turns.take(played.time)
    played.turns.refused(refused, "u", played.time, denied=True)
    played.put(refused, Due(0.0, urgent=True))
    played.write(200)
    assert ["b"] == played.sent
    played.write(200)
    assert ["b", "a"] == played.sent


def test_a_node_that_was_refused_and_is_made_anew_waits_no_longer():
    played = Played()
    played.put("a", Due(0.0, urgent=True), uid="old")
    played.turns.refused(played.turns.take(played.time)[0], "old", played.time, denied=False)
    played.put("a", Due(0.0, urgent=True), uid="new")
    played.write(1)
    assert ["a"] == played.sent


def test_three_nodes_that_are_denied_and_no_other_is_tried_for_five_minutes():
    played = Played()
    for number in range(5000):
        played.put(f"n{number}", Due(0.0, urgent=True))
    tried = 0
    while played.turns.next_at(played.time) < 1000.0 + 299:
        played.time = max(played.time, played.turns.next_at(played.time))
        node, _ = played.turns.take(played.time)
        tried += 1
        played.turns.refused(node, "u", played.time, denied=True)
    assert 3 == tried


@pytest.mark.parametrize(
    ("takes", "expected"),
    [
        pytest.param([], 0.0, id="full at first"),
        pytest.param([0.0, 0.0], 0.0, id="some are kept"),
        pytest.param([0.0, 0.0, 0.0], 0.5, id="empty: the time of one"),
        pytest.param([0.0, 0.0, 0.0, 0.25], 0.75, id="and no debt"),
        pytest.param([-100.0, 0.0, 0.0, 0.0], 0.5, id="no more are kept than fit, however long nothing was taken"),
    ],
)
def test_when_a_token_is_there(takes, expected):
    bucket = RateLimit(per_s=2.0, most=3.0)
    for at in takes:
        bucket.take(at)
    assert round(bucket.free_at(max(takes, default=0.0)), 6) == expected


def marked(name, status, *, uid="u"):
    return node(name, uid=uid, Ready="True", **({"NodeHealthy": status} if status else {}))


def test_the_marks_are_those_of_the_nodes_as_they_came():
    marks = ObservedConditions()
    marks.replace([marked("a", "True"), marked("b", "")])
    assert (["a", "b"], "True", ObservedCondition("u"), None) == (
        marks.names(),
        marks.get("a").status,
        marks.get("b"),
        marks.get("c"),
    )


def test_of_the_marks_those_are_told_that_came_went_or_say_another_thing():
    marks = ObservedConditions()
    marks.replace([marked(name, "True") for name in "abcd"])
    assert ["a", "b", "c", "d"] == [*marks.take_changed()]
    marks.upsert(marked("a", "True"))
    marks.upsert(marked("b", "False"))
    marks.upsert(marked("c", "True", uid="another"))
    marks.remove(marked("d", "True"))
    assert (["b", "c", "d"], []) == ([*marks.take_changed()], [*marks.take_changed()])
