import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.cluster.heartbeat import INTERVALS_MIN, INTERVALS_QUIET, RENEWS_PER_DURATION, Heartbeats

B_GOES_ON = [("b", "1", 0), ("b", "2", 10), ("b", "3", 20)]


def beats(*renewals, limit_s=20.0):
    """Renewals are (node, renewTime, at)."""
    result = Heartbeats(limit_s)
    for node, renew_time, at in renewals:
        result.renewed(node, renew_time, 40.0, at)
    return result


@pytest.mark.parametrize(
    ("renewals", "contact", "expected"),
    [
        pytest.param([("a", "1", 0), ("b", "1", 0), ("b", "2", 10), ("b", "3", 20)], 20, set(), id="at the limit"),
        pytest.param([("a", "1", 0), *B_GOES_ON], 20.1, {"a"}, id="one stops while another goes on"),
        pytest.param([("a", "1", 0), ("a", "1", 15), *B_GOES_ON], 21, {"a"}, id="the same renewTime is no beat"),
        pytest.param([("a", "9", 0), ("a", "1", 15), *B_GOES_ON], 21, set(), id="any change is, also backwards"),
        pytest.param([("a", "1", 0), ("b", "1", 1)], 60, set(), id="none moves: the fault is not the nodes'"),
        pytest.param([("a", "1", 0), ("b", "1", 5)], 5, set(), id="a silent watch ages nobody"),
        pytest.param([], 100, set(), id="no Lease at all"),
    ],
)
def test_lost(renewals, contact, expected):
    assert expected == beats(*renewals).lost(contact)


def test_a_list_gives_all_a_fresh_grace():
    known = beats(("a", "1", 0), ("b", "1", 15))
    known.replace([("a", "1", 40.0), ("b", "1", 40.0)], 19)
    known.renewed("b", "2", 40.0, 29)
    known.renewed("b", "3", 40.0, 39)
    assert set() == known.lost(39)
    assert {"a"} == known.lost(39.1)


def test_a_list_is_no_sign_of_life_of_a_lost_node():
    known = beats(("a", "1", 0), ("c", "1", 0), *B_GOES_ON)
    assert {"a", "c"} == known.lost(21)
    known.replace([("a", "1", 40.0), ("b", "1", 40.0), ("c", "2", 40.0)], 22)
    assert {"a"} == known.lost(22)


def test_a_long_lease_has_a_longer_limit():
    known = Heartbeats(20.0)
    known.renewed("slow", "1", 400.0, 0)
    known.renewed("fast", "1", 40.0, 99)
    assert set() == known.lost(100)
    for at in range(109, 150, 10):
        known.renewed("fast", f"at {at}", 40.0, at)
    assert set() == known.lost(150)
    assert {"slow"} == known.lost(150.1)


def after_an_outage(*, ends_at, limit_s=20.0):
    """Ten nodes renew every ten seconds, one each second, until nothing is written or seen from 10 to `ends_at`."""
    known = beats(*((f"n{i}", "before", i) for i in range(10)), limit_s=limit_s)
    known.renewed("n0", "after", 40.0, ends_at)
    return known


@pytest.mark.parametrize("ends_at", [22, 30, 70, 3600])
def test_the_end_of_an_outage_loses_nobody(ends_at):
    """An API server comes back, or our watch of the Leases does: one kubelet must be the first."""
    assert set() == after_an_outage(ends_at=ends_at).lost(ends_at)


def test_who_does_not_come_back_after_an_outage_is_lost_a_limit_later():
    known = after_an_outage(ends_at=70)
    for i in range(1, 9):
        known.renewed(f"n{i}", "after", 40.0, 70 + i)
    known.renewed("n0", "again", 40.0, 80)
    assert set() == known.lost(90)
    assert {"n9"} == known.lost(90.1)


def test_who_was_lost_before_an_outage_stays_lost_after_it():
    known = beats(("a", "1", 0), ("c", "1", 1), *B_GOES_ON)
    assert {"a"} == known.lost(21)
    known.renewed("b", "4", 40.0, 40)
    assert {"a"} == known.lost(40)


def test_nobody_is_lost_while_an_outage_begins():
    """A bookmark is a contact, but no beat: n1 would be 22 s old by it."""
    known = beats(*((f"n{i}", "before", i) for i in range(10)))
    assert set() == known.lost(23)


def test_a_lost_node_opens_when_no_lease_moves_any_more():
    known = beats(("a", "1", 0), *B_GOES_ON)
    assert ({"a"}, {"a"}, set()) == (known.lost(21), known.lost(40), known.lost(40.1))


def test_age():
    known = beats(("a", "1", 5))
    assert (known.age_s("a", 8), known.age_s("a", 4), known.age_s("b", 8)) == (3.0, 0.0, None)
    known.forget("a")
    assert known.age_s("a", 8) is None


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param(beats(), math.inf, id="without a Lease never"),
        pytest.param(beats(("a", "1", 5), ("b", "1", 3)), 23.0, id="when the oldest beat reaches its limit"),
        pytest.param(beats(("a", "1", 0), *B_GOES_ON), 40.0, id="when a lost node opens as no Lease moves any more"),
        pytest.param(beats(("a", "1", 0), ("b", "1", 1)), -math.inf, id="at once where the next beat decides"),
    ],
)
def test_when_to_look_again(known, expected):
    if expected in (40.0, -math.inf):
        known.lost(21 if expected == 40.0 else 60)
    assert expected == known.due_at()


class Walked:
    """The same rules, over all beats at each look."""

    def __init__(self, limit_s):
        self.limit_s = limit_s
        self.beats = {}  # node -> renewTime, seen at, limit, quiet
        self.moved_at = -math.inf
        self.lost_before = set()

    def beat(self, renewed, duration_s, at):
        interval_s = duration_s / RENEWS_PER_DURATION
        return renewed, at, max(self.limit_s, INTERVALS_MIN * interval_s), INTERVALS_QUIET * interval_s

    def replace(self, leases, at):
        before, self.beats = self.beats, {}
        for node, renewed, duration_s in leases:
            stays = node in before and node in self.lost_before and before[node][0] == renewed
            self.beats[node] = before[node] if stays else self.beat(renewed, duration_s, at)
        self.moved_at = at

    def renewed(self, node, renewed, duration_s, at):
        if node in self.beats and self.beats[node][0] == renewed:
            return
        silent_s = at - self.moved_at
        for other, (text, _, limit_s, quiet_s) in self.beats.items():
            if silent_s > 1.0 and silent_s > quiet_s and other not in self.lost_before:
                self.beats[other] = (text, at, limit_s, quiet_s)
        self.beats[node] = self.beat(renewed, duration_s, at)
        self.moved_at = at

    def forget(self, node):
        self.beats.pop(node, None)

    def lost(self, contact):
        silent_s = contact - self.moved_at
        self.lost_before = {
            node
            for node, (_, seen_at, limit_s, quiet_s) in self.beats.items()
            if contact - seen_at > limit_s and silent_s <= (limit_s if node in self.lost_before else quiet_s)
        }
        return self.lost_before


NODES = st.sampled_from(["a", "b", "c"])
RENEWALS = st.tuples(NODES, st.sampled_from("12"), st.sampled_from([4.0, 40.0, 400.0]))
STEPS = st.lists(
    st.tuples(
        st.integers(0, 30),  # seconds passed
        st.one_of(
            st.tuples(st.just("renewed"), RENEWALS),
            st.tuples(st.just("replace"), st.lists(RENEWALS, unique_by=lambda renewal: renewal[0])),
            st.tuples(st.just("forget"), NODES),
            st.tuples(st.just("lost"), st.none()),
        ),
    ),
    min_size=5,
    max_size=40,
)


@given(STEPS)
def test_it_does_as_a_walk_over_all_beats_and_says_when_to_look(steps):
    known, walked, now = Heartbeats(20.0), Walked(20.0), 0.0
    for passed_s, (do, what) in steps:
        now += passed_s
        if do == "renewed":
            known.renewed(*what, now)
            walked.renewed(*what, now)
        elif do == "replace":
            known.replace(what, now)
            walked.replace(what, now)
        elif do == "forget":
            known.forget(what)
            walked.forget(what)
        else:
            assert walked.lost(now) == known.lost(now)
            if now < (due_at := known.due_at()) < math.inf:
                assert known.lost(due_at) == known.lost(now)
