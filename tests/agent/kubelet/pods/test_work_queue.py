"""The inbox of the sync loop."""

import threading

from agent.kubelet.pleg.channel import CAPACITY
from agent.kubelet.pleg.events import EventType, PodEvent
from agent.kubelet.pods.work_queue import WorkQueue


def test_each_uid_once_and_then_nothing() -> None:
    inbox = WorkQueue()
    for uid in ("a", "b", "a"):
        inbox.put(uid)
    assert [{"a", "b"}, set()] == [inbox.take(0.0), inbox.take(-1.0)]


def test_a_put_wakes_the_taker() -> None:
    inbox = WorkQueue()
    threading.Timer(0.01, inbox.put, ("a",)).start()
    assert inbox.take(30.0) == {"a"}


def test_an_event_wakes_the_taker() -> None:
    inbox = WorkQueue()
    threading.Timer(0.01, inbox.deliver, (PodEvent("a", EventType.DIED, "c"),)).start()
    assert inbox.take(30.0) == {"a"}


def test_what_is_gone_from_the_runtime_makes_no_sync() -> None:
    """isSyncPodWorthy of pkg/kubelet/kubelet.go, v1.36.3."""
    inbox = WorkQueue()
    for type_ in EventType:
        assert inbox.deliver(PodEvent(type_, type_))
    assert set(EventType) - {EventType.REMOVED} == inbox.take(0.0)


def test_events_have_a_bound_and_pods_that_are_put_have_none() -> None:
    inbox = WorkQueue()
    fits = [inbox.deliver(PodEvent(f"e{number}", EventType.DIED)) for number in range(CAPACITY + 1)]
    inbox.put("a")
    full = inbox.events_full()
    taken = inbox.take(0.0)
    assert ([True] * CAPACITY + [False], True) == (fits, "capacity is full with 1000 events" in full)
    assert (CAPACITY + 1, True, "") == (len(taken), "a" in taken, inbox.events_full())
