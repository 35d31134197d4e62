"""A worker a pod: none waits for another, none is worked on by two, and nothing that came meanwhile is lost."""

import random
import threading

import pytest

from agent.kubelet.pods.workers import Dues, Workers
from tools.kit.waiting import wait_until

PATIENT_S = 60.0


def test_pw1_no_pod_waits_for_another_one() -> None:
    hangs, done = threading.Event(), []

    def work(uid: str) -> None:
        if uid == "slow":
            hangs.wait(PATIENT_S)
        done.append(uid)

    workers = Workers(work)
    for uid in ("slow", "quick"):
        assert workers.give(uid)
    wait_until(lambda: done == ["quick"], timeout_s=PATIENT_S)
    hangs.set()
    wait_until(lambda: done == ["quick", "slow"], timeout_s=PATIENT_S)


def test_pw2_what_comes_while_it_is_busy_is_done_once_afterwards() -> None:
    begun, goes_on, times = threading.Event(), threading.Event(), []

    def work(uid: str) -> None:
        times.append(uid)
        begun.set()
        goes_on.wait(PATIENT_S)

    workers = Workers(work)
    workers.give("a")
    begun.wait(PATIENT_S)
    for _ in range(5):
        workers.give("a")
    goes_on.set()
    wait_until(lambda: times == ["a", "a"] and not workers._busy, timeout_s=PATIENT_S)


def test_pw3_no_pod_is_worked_on_by_two_and_nothing_is_lost() -> None:
    """A count that is wrong if two were at it at once; each pod sees the last that was given."""
    uids = [f"pod-{n}" for n in range(20)]
    given, seen, inside = dict.fromkeys(uids, 0), dict.fromkeys(uids, 0), dict.fromkeys(uids, 0)
    clashes: list[str] = []

    def work(uid: str) -> None:
        inside[uid] += 1
        if inside[uid] > 1:
            clashes.append(uid)
        seen[uid] = given[uid]
        inside[uid] -= 1

    workers = Workers(work)
    for _ in range(3000):
        uid = random.choice(uids)
        given[uid] += 1
        assert workers.give(uid)
    wait_until(lambda: seen == given, timeout_s=PATIENT_S)
    wait_until(lambda: not workers._busy, timeout_s=PATIENT_S)
    assert [] == clashes


def test_pw4_without_a_thread_for_it_it_is_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    workers = Workers(done.append)

    def none(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", none)
        assert not workers.give("a")
    assert workers.give("a")
    wait_until(lambda: done == ["a"], timeout_s=PATIENT_S)


def test_pw5_when_it_is_closed_nothing_more_is_done() -> None:
    done: list[str] = []
    workers = Workers(done.append)
    workers.close()
    assert workers.give("a")
    assert [] == done


def test_of_several_times_the_nearest_counts() -> None:
    dues = Dues()
    assert 9.0 == dues.first(9.0)
    for uid, at in (("a", 5.0), ("a", 3.0), ("a", 7.0), ("b", 4.0)):
        dues.put(uid, at)
    assert (3.0, set(), {"a"}) == (dues.first(9.0), dues.take(2.0), dues.take(3.0))
    assert (4.0, 1.0) == (dues.first(9.0), dues.first(1.0))
    dues.forget("a")
    dues.forget("b")
    assert (9.0, set()) == (dues.first(9.0), dues.take(9.0))


def test_pw19_an_attempt_that_is_over_replaces_the_time_that_was_set_before() -> None:
    dues = Dues()
    dues.put("a", 5.0)
    dues.begin("a")
    dues.put("a", 8.0)
    dues.put("a", 7.0)
    assert 5.0 == dues.first(9.0)
    dues.end("a")
    assert 7.0 == dues.first(9.0)
    dues.begin("a")
    dues.end("a")
    assert 9.0 == dues.first(9.0)
