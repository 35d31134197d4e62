"""Reloads as a table: who lives and who has synced, second by second, and what the master does then."""

import pytest

from extender.process.generations import LEAVE_LIMIT_S, SYNC_LIMIT_S, Do, Generations, Step

OLD, NEW, THIRD = 11, 12, 13


def begun(*, synced=True):
    """One worker, and nothing to do."""
    one = Generations()
    assert [Do(Step.SPAWN)] == one.turn([], [], 0.0)
    one.spawned(OLD, 0.0)
    assert [] == one.turn([OLD], [OLD] if synced else [], 0.0)
    return one


def reloading(*, synced=True):
    one = begun(synced=synced)
    assert one.may_reload()
    one.spawned(NEW, 100.0)
    return one


def steps(one, alive, synced, monotonic):
    return [(do.step, do.pid) for do in one.turn(alive, synced, monotonic)]


def test_the_old_worker_retires_when_the_new_one_has_synced():
    one = reloading()
    assert [] == steps(one, [OLD, NEW], [OLD], 100.0)
    assert [] == steps(one, [OLD, NEW], [OLD], 100.0 + SYNC_LIMIT_S - 0.1)
    assert [(Step.ACCEPT, NEW), (Step.RETIRE, OLD)] == steps(one, [OLD, NEW], [OLD, NEW], 101.0)
    assert [] == steps(one, [OLD, NEW], [OLD, NEW], 102.0)
    assert [] == steps(one, [NEW], [NEW], 103.0)
    expected = Generations(current=NEW, _due=100.0 + SYNC_LIMIT_S, _gone_by=101.0 + LEAVE_LIMIT_S, _has_synced=True)
    assert expected == one


def test_a_new_worker_that_does_not_sync_ends_and_the_configuration_of_before_stays():
    one, late = reloading(), 100.0 + SYNC_LIMIT_S
    assert [(Step.END, NEW), (Step.KEEP, 0)] == steps(one, [OLD, NEW], [OLD], late)
    assert [] == steps(one, [OLD, NEW], [OLD], late + 1)
    assert [(Step.KILL, NEW)] == steps(one, [OLD, NEW], [OLD], late + LEAVE_LIMIT_S)
    assert [] == steps(one, [OLD], [OLD], late + LEAVE_LIMIT_S + 1)
    assert OLD == one.current


def test_a_worker_that_never_had_a_verdict_gives_way_to_one_that_has_none_either():
    """The file may be what mends it."""
    one = reloading(synced=False)
    assert [] == steps(one, [OLD, NEW], [], 101.0)
    assert [(Step.ACCEPT, NEW), (Step.RETIRE, OLD)] == steps(one, [OLD, NEW], [], 100.0 + SYNC_LIMIT_S)


def test_a_new_worker_that_dies_leaves_the_old_one():
    one = reloading()
    assert [(Step.KEEP, 0)] == steps(one, [OLD], [OLD], 101.0)
    assert (True, OLD) == (one.may_reload(), one.current)


def test_an_old_worker_that_dies_meanwhile_is_followed_at_once():
    one = reloading()
    assert [(Step.ACCEPT, NEW)] == steps(one, [NEW], [], 101.0)
    assert [] == steps(one, [NEW], [], 100.0 + SYNC_LIMIT_S)


def test_both_die_at_once():
    assert [(Step.KEEP, 0), (Step.SPAWN, 0)] == steps(reloading(), [], [], 101.0)


def test_a_worker_that_hangs_while_it_retires_is_killed():
    one = reloading()
    one.turn([OLD, NEW], [OLD, NEW], 101.0)
    assert [] == steps(one, [OLD, NEW], [OLD, NEW], 100.9 + LEAVE_LIMIT_S)
    assert [(Step.KILL, OLD)] == steps(one, [OLD, NEW], [OLD, NEW], 101.0 + LEAVE_LIMIT_S)


def test_a_worker_that_dies_while_another_retires_is_replaced():
    one = reloading()
    one.turn([OLD, NEW], [OLD, NEW], 101.0)
    assert [(Step.SPAWN, 0)] == steps(one, [OLD], [OLD], 102.0)
    one.spawned(THIRD, 102.0)
    assert (THIRD, 0) == (one.current, one.incoming)


def test_one_that_dies_again_and_again_before_it_has_synced_is_started_ever_more_seldom():
    one, at, began = begun(synced=False), 10.0, []
    for pid in range(20, 26):
        while not steps(one, [], [], at):
            at += 0.25
        began.append(at)
        one.spawned(pid, at)
    assert [10.0, 11.0, 13.0, 17.0, 22.0, 27.0] == began
    assert [] == steps(one, [25], [25], at)
    for pid in (26, 27):
        assert [(Step.SPAWN, 0)] == steps(one, [], [], at), "after one that had"
        one.spawned(pid, at)


def test_its_sync_and_its_death_may_be_heard_of_together():
    one = begun(synced=False)
    assert [(Step.SPAWN, 0)] == steps(one, [], [OLD], 10.0)
    one.spawned(NEW, 10.0)
    assert [(Step.SPAWN, 0)] == steps(one, [], [], 10.1)


@pytest.mark.parametrize("times", [1, 5])
def test_what_is_asked_for_during_a_reload_is_one_reload_after_it(times):
    one = reloading()
    assert [False] * times == [one.may_reload() for _ in range(times)]
    assert [] == steps(one, [OLD, NEW], [OLD], 100.0)
    assert [(Step.ACCEPT, NEW), (Step.RETIRE, OLD)] == steps(one, [OLD, NEW], [OLD, NEW], 101.0)
    assert [] == steps(one, [OLD, NEW], [OLD, NEW], 102.0)  # never three workers
    assert [(Step.RELOAD, 0)] == steps(one, [NEW], [NEW], 103.0)
    one.spawned(THIRD, 103.0)
    assert [] == steps(one, [NEW, THIRD], [NEW], 104.0)


def test_what_is_asked_for_while_no_worker_lives_waits_for_one():
    one = begun()
    assert [(Step.SPAWN, 0)] == steps(one, [], [], 1.0)
    assert not one.may_reload()
    one.spawned(NEW, 1.0)
    assert [(Step.RELOAD, 0)] == steps(one, [NEW], [], 1.1)
