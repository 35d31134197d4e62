"""The rules of extender.cluster.lease_age one by one; how they work together is in test_dead_kubelets."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.cluster.lease_age import (
    BLIND_LIMIT_S,
    DURATION_MAX_S,
    FRESH_LEASES_MAX,
    READ_EARLY_S,
    RETURN_S,
    LeaseAges,
    Renewal,
)
from tools.kit.cases import cases


def renewal(node, renew_time="1", duration_s=40.0, written=""):
    return Renewal(node, renew_time, duration_s, written)


def at(minute, second):
    return f"2026-01-01T00:{minute:02}:{second:02}Z"


def beats(*renewals, limit_s=24.0):
    """Renewals are (node, renewTime, at)."""
    result = LeaseAges(limit_s)
    for node, renew_time, seen_at in renewals:
        result.renewed(renewal(node, renew_time), seen_at)
    return result


def b_goes_on(until):
    return [("b", f"at {second}", second) for second in range(0, until + 1, 10)]


@pytest.mark.parametrize(
    ("renewals", "monotonic", "expected"),
    [
        pytest.param([("a", "1", 0), *b_goes_on(20), ("b", "x", 23)], 23.9, set(), id="below the limit"),
        pytest.param([("a", "1", 0), *b_goes_on(20), ("b", "x", 23)], 24.0, {"a"}, id="one stops, another goes on"),
        pytest.param([("a", "1", 0), *b_goes_on(20), ("a", "1", 23)], 24.0, {"a"}, id="the same renewTime is no beat"),
        pytest.param([("a", "9", 0), *b_goes_on(20), ("a", "1", 23)], 24.0, set(), id="any change is, also backwards"),
        pytest.param([("a", "1", 0), *b_goes_on(20)], 24.0, set(), id="not before what is known is fresh"),
        pytest.param([("a", "1", 0), *b_goes_on(10), ("b", "x", 23)], 24.0, set(), id="after a gap all may return"),
        pytest.param([], 100.0, set(), id="no Lease at all"),
    ],
)
def test_lost(renewals, monotonic, expected):
    assert expected == beats(*renewals).lost(monotonic)


def test_the_last_kubelet_is_lost_by_lists_beside_the_watch():
    known = beats(("a", "1", 0))
    due = []
    for _ in range(2):
        due.append(known.read_due_at())
        known.read([renewal("a")], due[-1], due[-1])
    assert ([11.0, 22.0], set(), {"a"}, math.inf) == (due, known.lost(23.9), known.lost(24.0), known.read_due_at())


def test_a_lease_that_has_moved_in_such_a_list_is_not_lost_though_its_line_is_still_to_come():
    known = beats(("a", "1", 0), ("b", "1", 1))
    for monotonic in (11.0, 22.0, 24.0):
        known.read([renewal("a", "2"), renewal("b")], monotonic, monotonic)
    assert (set(), {"b"}) == (known.lost(24.0), known.lost(25.0))


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        pytest.param("1", {"a"}, id="nothing had moved in a list since the last line, so no line was waiting"),
        pytest.param("2", set(), id="something had, so its line was waiting, and others may be"),
    ],
)
def test_after_a_long_time_without_a_line_a_list_beside_the_watch_tells_whether_all_may_return(listed, expected):
    known = beats(("a", "1", 0), ("b", "1", 0))
    known.read([renewal("a"), renewal("b", listed)], 11.0, 11.0)
    known.renewed(renewal("b", "2"), 20.0)
    known.read([renewal("a"), renewal("b", "2")], 23.0, 23.0)
    assert expected == known.lost(24.0)


def test_a_list_is_wanted_at_once_before_a_node_is_lost_by_old_knowledge():
    known = beats(("a", "1", 0), *b_goes_on(20))
    assert (set(), -math.inf) == (known.lost(24.0), known.read_due_at())
    known.read([renewal("a"), renewal("b", "at 20")], 24.0, 24.1)
    assert ({"a"}, 35.0) == (known.lost(24.1), known.read_due_at())


def test_an_api_server_that_did_not_answer_gives_all_time_to_return():
    known = beats(("a", "1", 0))
    known.failed()
    known.read([renewal("a")], 12.0, 12.0)
    known.read([renewal("a")], 23.0, 23.0)
    assert (set(), {"a"}) == (known.lost(24.0), known.lost(12.0 + RETURN_S))


def test_what_is_heard_of_pods_and_nodes_shows_that_the_api_server_is_there():
    known = beats(("a", "1", 0), ("b", "1", 0))
    known.answered(10)
    known.replace([renewal("a"), renewal("b", "2")], 20)
    assert set() == known.lost(23.9)
    known.renewed(renewal("b", "3"), 24)
    assert {"a"} == known.lost(24.0)


@pytest.mark.parametrize("nodes", [1, FRESH_LEASES_MAX, FRESH_LEASES_MAX + 1])
def test_a_list_is_wanted_before_we_are_blind_however_many_there_are(nodes):
    known = beats(*((f"n{i}", "1", 0) for i in range(nodes)))
    assert BLIND_LIMIT_S - READ_EARLY_S == known.read_due_at()


def test_who_is_lost_stays_so_until_its_lease_moves():
    known = beats(("a", "1", 0), ("c", "1", 0), *b_goes_on(20), ("b", "x", 24))
    assert {"a", "c"} == known.lost(24)
    known.replace([renewal("a"), renewal("b", "y"), renewal("c", "2")], 25)
    assert {"a"} == known.lost(25)
    assert {"a"} == known.lost(1000)
    known.forget("a")
    assert set() == known.lost(1000)


# Lists.


def test_a_list_gives_no_more_time_than_the_watch():
    known = beats(("a", "1", 0), ("b", "1", 1))
    for monotonic in (10, 20):
        known.replace([renewal("a"), renewal("b", f"at {monotonic}")], monotonic)
    known.renewed(renewal("b", "at 23"), 23)
    assert (set(), {"a"}) == (known.lost(23.9), known.lost(24.0))


BETWEEN = [
    pytest.param(at(0, 12), 12.0, id="12 s after the one before"),
    pytest.param(at(0, 9), 10.0, id="a little before the list in which it had not moved: then"),
    pytest.param(at(0, 5), 20.0, id="long before it: the clock was set, so when the list was asked for"),
    pytest.param(at(9, 0), 20.0, id="in the future: alike"),
    pytest.param("no time", 20.0, id="no time at all: alike"),
]


@pytest.mark.parametrize(("renew_time", "seen_at"), BETWEEN)
def test_what_moves_between_two_lists_has_moved_when_it_says(renew_time, seen_at):
    known = LeaseAges(24.0)
    for began, renewed in ((0.0, at(0, 0)), (10.0, at(0, 0)), (20.0, renew_time)):
        known.replace([renewal("a", renewed)], began)
    assert {"a": seen_at} == known.seen()


FIRST_LISTS = [
    ("ten minutes old", [renewal("a", "x", written=at(0, 0)), renewal("b", "y", written=at(10, 0))], {"a"}, {"a"}),
    ("24 s, rounded", [renewal("a", "x", written=at(0, 0)), renewal("b", "y", written=at(0, 24))], set(), {"a"}),
    ("ten minutes, by the kubelets' clocks only", [renewal("a", at(0, 0)), renewal("b", at(10, 0))], set(), {"a"}),
    (
        "a kubelet's clock is wrong",
        [renewal("a", at(0, 0), written=at(10, 0)), renewal("b", at(50, 0), written=at(10, 0))],
        set(),
        set(),
    ),
    ("no renewTime", [renewal("a", ""), renewal("b", at(10, 0))], set(), set()),
    ("no time", [renewal("a", "soon"), renewal("b", at(10, 0))], set(), set()),
    ("beyond all times", [renewal("a", "9999-12-31T23:59:60Z"), renewal("b", at(1, 0))], set(), set()),
    ("no written time", [renewal("a", written="soon"), renewal("b", written=at(10, 0))], set(), set()),
]


@cases("leases, at_once, soon", *FIRST_LISTS)
def test_the_first_list_tells_who_was_dead_before(leases, at_once, soon):
    known = LeaseAges(24.0)
    known.replace(leases, 100.0)
    assert at_once == known.lost(100.0)
    known.renewed(renewal("b", "moved"), 110.0)
    known.renewed(renewal("c", "moved"), 112.5)
    assert soon == known.lost(112.5)


@pytest.mark.parametrize(
    ("later_s", "expected"),
    [
        pytest.param(3.0, {"a"}, id="pods were listed for three seconds more"),
        pytest.param(BLIND_LIMIT_S, {"a"}, id="up to where we are blind"),
        pytest.param(BLIND_LIMIT_S + 0.1, set(), id="then nothing is known any more"),
    ],
)
def test_who_was_dead_by_the_first_list_is_lost_however_long_the_other_lists_take(later_s, expected):
    known = LeaseAges(24.0)
    known.replace([renewal("a", written=at(0, 0)), renewal("b", written=at(10, 0))], 100.0)
    assert expected == known.lost(100.0 + later_s)


def test_a_first_list_that_came_after_failures_gives_all_time_to_return():
    known = LeaseAges(24.0)
    leases = [renewal("a", written=at(0, 0)), renewal("b", written=at(10, 0))]
    known.replace(leases, 100.0, after_failures=True)
    known.renewed(renewal("b", "moved"), 111.0)
    assert (set(), {"a"}) == (known.lost(112.4), known.lost(112.5))


def test_what_has_moved_by_a_later_list_has_done_so_since_the_last_look_whatever_clocks_say():
    known = LeaseAges(24.0)
    known.replace([renewal("a", "1"), renewal("b", "1")], 10)
    known.replace([renewal("a", "2", written=at(0, 0)), renewal("b", "2", written=at(10, 0))], 12)
    assert {"a": 10.0, "b": 12.0} == known.seen()


def test_a_list_is_as_old_as_its_question():
    known = beats(("a", "1", 0), ("b", "1", 10))
    known.replace([renewal("a", "2"), renewal("b", "2")], 30, began=12)
    assert 12.0 == known.seen()["a"]


# Limits.


@pytest.mark.parametrize(
    ("limit_s", "duration_s", "expected"),
    [
        pytest.param(24.0, 40.0, 24.0, id="as it is by default"),
        pytest.param(24.0, 1.0, 24.0, id="a short lease"),
        pytest.param(24.0, 400.0, 150.0, id="a long lease"),
        pytest.param(24.0, 10**400, 150.0, id=f"no longer than one of {DURATION_MAX_S} s"),
        pytest.param(5.0, 40.0, 15.0, id="never below one and a half intervals"),
        pytest.param(24.0, 64.0, 1.1 * 16 + BLIND_LIMIT_S, id="room for a time of blindness"),
        pytest.param(24.0, -1, 24.0, id="no duration"),
    ],
)
def test_the_limit_of_a_lease(limit_s, duration_s, expected):
    known = LeaseAges(limit_s)
    known.renewed(renewal("a", "1", duration_s), 0)
    assert expected == known.due_at()


# Many at once.


def silent(count, *, of, lost_before=()):
    """A look at 24 s; `count` of so many nodes have not moved."""
    known = beats(*((f"n{i}", "1", 0) for i in range(of)))
    for second in (10, 20, 23):
        for i in range(count, of):
            known.renewed(renewal(f"n{i}", f"at {second}"), second)
        known.read([renewal(f"n{i}") for i in range(count)], second, second)
    return known.lost(24, lambda node: node not in lost_before)


@pytest.mark.parametrize(
    ("count", "of", "expected"),
    [
        (1, 1, 1),
        (1, 2, 1),
        (2, 2, 0),
        (2, 3, 2),
        (3, 3, 0),
        (3, 10, 0),
        (2, 10, 2),
        (3, 15, 3),
        (20, 100, 20),
        (21, 100, 0),
    ],
)
def test_many_are_three_and_more_than_a_fifth_or_all(count, of, expected):
    assert expected == len(silent(count, of=of))


def test_who_is_lost_by_another_signal_too_is_none_of_the_many():
    assert {"n0", "n1"} == silent(4, of=4, lost_before={"n0", "n1"})
    assert {"n0", "n1", "n2", "n3"} == silent(4, of=4, lost_before={"n0", "n1", "n2"})


class Walked(dict):
    """Counts who looks at all of it."""

    walks = 0

    def __iter__(self):
        self.walks += 1
        return super().__iter__()

    def items(self):
        self.walks += 1
        return super().items()

    def values(self):
        self.walks += 1
        return super().values()


def test_thousands_that_return_at_once_cost_no_walk_each():
    names = [f"n{i}" for i in range(5000)]
    known = beats(*((name, "1", 0) for name in names))
    known._beats = walked = Walked(known._beats)
    for i, name in enumerate(names):
        known.renewed(renewal(name, "2"), 600.0 + i / 1000)
        known.due_at()
        if i % 500 == 0:
            assert set() == known.lost(600.0 + i / 1000)
    for name in names:
        known.forget(name)
    assert 0 == walked.walks


# When to look again.


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param(beats(), math.inf, id="without a Lease never"),
        pytest.param(beats(("a", "1", 5), ("b", "1", 3)), 27.0, id="when the oldest beat reaches its limit"),
        pytest.param(beats(("a", "1", 0), *b_goes_on(20), ("b", "x", 24)), 44.0, id="not for a node that is lost"),
    ],
)
def test_when_to_look_again(known, expected):
    if expected == 44.0:
        known.lost(24)
    assert expected <= known.due_at() <= 48.0 or expected == known.due_at()


NODES = st.sampled_from(["a", "b", "c"])
RENEWALS = st.builds(renewal, NODES, st.sampled_from("12"), st.sampled_from([4.0, 40.0, 400.0]))
LISTS = st.lists(RENEWALS, unique_by=lambda one: one.node)
STEPS = st.lists(
    st.tuples(
        st.integers(0, 30),  # seconds passed
        st.one_of(
            st.tuples(st.just("renewed"), RENEWALS),
            st.tuples(st.just("replace"), LISTS),
            st.tuples(st.just("read"), LISTS),
            st.tuples(st.just("forget"), NODES),
            st.tuples(st.just("lost"), st.none()),
        ),
    ),
    min_size=5,
    max_size=40,
)


@settings(deadline=None)
@given(STEPS)
def test_until_it_is_time_to_look_again_nothing_differs_and_nobody_is_lost_early(steps):
    known, seen_at, monotonic = LeaseAges(24.0), dict[str, tuple[str, float]](), 0.0
    for passed_s, (do, what) in steps:
        monotonic += passed_s
        if do == "lost":
            lost = known.lost(monotonic)
            assert all(monotonic - seen_at[node][1] >= 24.0 for node in lost)
            if monotonic < (due_at := known.due_at()) < math.inf:
                assert lost == known.lost(math.nextafter(due_at, 0))
                monotonic = due_at
        elif do == "forget":
            known.forget(what)
            seen_at.pop(what, None)
        elif do == "read":
            known.read(what, monotonic, monotonic)
        else:
            leases = [what] if do == "renewed" else what
            if do == "renewed":
                known.renewed(what, monotonic)
            else:
                known.replace(what, monotonic)
                seen_at = {one.node: seen_at[one.node] for one in leases if one.node in seen_at}
            for one in leases:
                if seen_at.get(one.node, ("",))[0] != one.renew_time:
                    seen_at[one.node] = one.renew_time, monotonic
