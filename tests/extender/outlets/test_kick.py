"""The kick's schedule with a clock of its own, and the thread with a client that fails on demand."""

import json
import threading
import time

import pytest

from extender.outlets.kick import Kicker, Schedule, wall_clock
from kube.errors import Forbidden, NotFound, TooManyRequests, Unreachable


def schedule(repeat_after_s=2.0):
    return Schedule(repeat_after_s=repeat_after_s, random=lambda: 0.0)


def test_at_once_and_once_more_after_the_repeat():
    kicks = schedule()
    kicks.request("n1", 10.0)
    assert (kicks.due(10.0), kicks.next_at()) == (["n1"], 10.0)
    kicks.done("n1", 10.1)
    assert (kicks.due(12.0), kicks.due(12.1)) == ([], ["n1"])
    kicks.done("n1", 12.2)
    assert (len(kicks), kicks.next_at()) == (0, None)


def test_without_a_repeat():
    kicks = schedule(repeat_after_s=0.0)
    kicks.request("n1", 10.0)
    kicks.done("n1", 10.1)
    assert len(kicks) == 0


def test_a_request_before_the_repeat_kicks_at_once_and_repeats_once():
    kicks = schedule()
    kicks.request("n1", 10.0)
    kicks.done("n1", 10.0)
    kicks.request("n1", 11.0)
    assert kicks.due(11.0) == ["n1"]
    kicks.done("n1", 11.0)
    assert (kicks.due(12.5), kicks.due(13.0), len(kicks)) == ([], ["n1"], 1)


@pytest.mark.parametrize(
    ("retry_after_s", "expected"),
    [
        pytest.param(None, [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0], id="doubling up to a limit"),
        pytest.param(5.0, [5.0, 5.0, 5.0, 5.0, 5.0, 6.4, 10.0, 10.0], id="not before the server wants it"),
    ],
)
def test_a_failed_kick_is_tried_again(retry_after_s, expected):
    kicks = schedule()
    kicks.request("n1", 0.0)
    pauses = []
    for _ in expected:
        now = kicks.next_at()
        kicks.failed("n1", now, retry_after_s)
        pauses.append(round(kicks.next_at() - now, 6))
    assert expected == pauses


def test_a_failed_repeat_stays_a_repeat():
    kicks = schedule()
    kicks.request("n1", 0.0)
    kicks.done("n1", 0.0)
    kicks.failed("n1", 2.0, None)
    kicks.done("n1", 2.2)
    assert len(kicks) == 0


class FakeClient:
    def __init__(self, *failures):
        self.failures = list(failures)
        self.sent = []
        self.arrived = threading.Semaphore(0)

    def patch(self, path, body, *, content_type, deadline_s):
        assert deadline_s <= 10
        self.sent.append((path, json.loads(body), content_type))
        self.arrived.release()
        if self.failures:
            raise self.failures.pop(0)
        return b"{}"

    def wait(self, count):
        for _ in range(count):
            assert self.arrived.acquire(timeout=5)


@pytest.fixture
def kicker_of():
    started = []

    def start(client, repeat_after_s=0.05):
        values = iter(f"v{i}" for i in range(100))
        kicker = Kicker(client, repeat_after_s=repeat_after_s, new_value=lambda: next(values))
        kicker.start()
        started.append(kicker)
        return kicker

    yield start
    for kicker in started:
        kicker.stop()
        kicker.stop()


def patch_of(node, value):
    return (
        f"/api/v1/nodes/{node}",
        {"metadata": {"annotations": {"readygate.dev/kick": value}}},
        "application/merge-patch+json",
    )


def test_each_patch_has_a_value_the_node_never_had(kicker_of):
    client = FakeClient()
    kicker = kicker_of(client)
    kicker.request("n1")
    client.wait(2)
    assert client.sent == [patch_of("n1", "v0"), patch_of("n1", "v1")]
    assert wall_clock() != wall_clock()


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(Unreachable(path="/"), id="unreachable"),
        pytest.param(Forbidden(path="/", status=403), id="forbidden"),
        pytest.param(TooManyRequests(path="/", status=429, retry_after_s=0.01), id="too many requests"),
        pytest.param(RuntimeError("a fault of ours"), id="anything else"),
    ],
)
def test_a_failure_is_counted_and_repaired(kicker_of, failure):
    client = FakeClient(failure)
    kicker = kicker_of(client, repeat_after_s=0)
    kicker.request("n1")
    client.wait(2)
    kicker.stop()
    assert kicker.counters == {"sent": 1, type(failure).__name__: 1}


def test_a_node_that_is_gone_is_dropped(kicker_of):
    client = FakeClient(NotFound(path="/", status=404))
    kicker = kicker_of(client)
    kicker.request("n1")
    client.wait(1)
    kicker.request("n2")
    client.wait(1)
    kicker.stop()
    assert [path for path, _, _ in client.sent] == ["/api/v1/nodes/n1", "/api/v1/nodes/n2"]
    assert kicker.counters["gone"] == 1


class Hangs(FakeClient):
    """A server that answers when it is let."""

    def __init__(self):
        super().__init__()
        self.answer = threading.Event()

    def patch(self, path, body, *, content_type, deadline_s):
        super().patch(path, body, content_type=content_type, deadline_s=deadline_s)
        self.answer.wait(5)


def test_a_request_never_waits_for_a_write_that_hangs(kicker_of):
    client = Hangs()
    kicker = kicker_of(client)
    kicker.request("n1")
    client.wait(1)
    for _ in range(1000):
        kicker.request("n2")
    assert kicker.healthy(time.monotonic())
    client.answer.set()
    client.wait(1)
    assert client.sent[1][0] == "/api/v1/nodes/n2"


def test_health_is_the_thread_and_its_progress():
    client = Hangs()
    kicker = Kicker(client, repeat_after_s=2.0, monotonic=lambda: 100.0)
    assert not kicker.healthy(100.0)
    kicker.start()
    assert kicker.healthy(3600.0)  # it has nothing to do
    kicker.request("n1")
    client.wait(1)
    assert (kicker.healthy(130.0), kicker.healthy(200.0)) == (True, False)
    client.answer.set()
    kicker.stop()
    assert not kicker.healthy(100.0)
