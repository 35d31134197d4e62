"""The work_queue of the sync loop."""

import threading

from agent.kubelet.pleg.channel import CAPACITY
from agent.kubelet.pleg.events import EventType, PodEvent
from agent.kubelet.pods.work_queue import WorkQueue


def test_each_uid_once_and_then_nothing() -> None:
    work_queue = WorkQueue()
    for uid in ("a", "b", "a"):
        work_queue.put(uid)
    assert [{"a", "b"}, set()] == [work_queue.take(0.0), work_queue.take(-1.0)]


def test_a_put_wakes_the_taker() -> None:
    work_queue = WorkQueue()
    threading.Timer(0.01, work_queue.put, ("a",)).start()
    assert work_queue.take(30.0) == {"a"}


def test_an_event_wakes_the_taker() -> None:
    work_queue = WorkQueue()
    threading.Timer(0.01, work_queue.deliver, (PodEvent("a", EventType.DIED, "c"),)).start()
    assert work_queue.take(30.0) == {"a"}


def test_what_is_gone_from_the_runtime_makes_no_sync() -> None:
    """isSyncPodWorthy of pkg/kubelet/kubelet.go, v1.36.3."""
    work_queue = WorkQueue()
    for type_ in EventType:
        assert work_queue.deliver(PodEvent(type_, type_))
    assert set(EventType) - {EventType.REMOVED} == work_queue.take(0.0)


def test_events_have_a_bound_and_pods_that_are_put_have_none() -> None:
    work_queue = WorkQueue()
    fits = [work_queue.deliver(PodEvent(f"e{number}", EventType.DIED)) for number in range(CAPACITY + 1)]
    work_queue.put("a")
    full = work_queue.events_full()
    taken = work_queue.take(0.0)
    assert ([True] * CAPACITY + [False], True) == (fits, "capacity is full with 1000 events" in full)
    assert (CAPACITY + 1, True, "") == (len(taken), "a" in taken, work_queue.events_full())
