"""The inbox of the sync loop."""

import threading

from agent.pods.inbox import Inbox


def test_each_uid_once_and_then_nothing() -> None:
    inbox = Inbox()
    for uid in ("a", "b", "a"):
        inbox.put(uid)
    assert [{"a", "b"}, set()] == [inbox.take(0.0), inbox.take(-1.0)]


def test_a_put_wakes_the_taker() -> None:
    inbox = Inbox()
    threading.Timer(0.01, inbox.put, ("a",)).start()
    assert inbox.take(30.0) == {"a"}
