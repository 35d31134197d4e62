"""The kick's thread with a client that answers as a test says, and turns of it with a clock of their own."""

import json
import threading
import time

import pytest

from extender.outlets.kick import Kicker, wall_clock
from kube.errors import Forbidden, NotFound, TooManyRequests, Unreachable
from tools.kit.clock import Clock
from tools.kit.waiting import wait_for


class FakeClient:
    """failures: what the first writes raise. sent: all of them, taken or not."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.sent = []
        self.got = []
        self.arrived = threading.Semaphore(0)
        self.closed = False

    def get(self, path, *, deadline_s, connect_s):
        assert (deadline_s >= 10, connect_s >= 30) == (True, True)
        self.got.append(path)

    def patch(self, path, body, *, content_type="application/merge-patch+json", deadline_s, connect_s):
        assert (deadline_s >= 10, connect_s >= 30) == (True, True)  # 5 s there and 5 s back; handshakes more often
        self.sent.append((path, json.loads(body), content_type))
        self.arrived.release()
        if self.failures:
            raise self.failures.pop(0)
        return b"{}"

    def close(self):
        self.closed = True

    def wait(self, count):
        for _ in range(count):
            assert self.arrived.acquire(timeout=30)

    @property
    def nodes(self):
        return [path.removeprefix("/api/v1/nodes/") for path, _, _ in self.sent]


class Diary:
    """The memory of refusals, which writes down what is said to it."""

    def __init__(self):
        self.said = []

    def before_kick(self):
        self.said.append("before")

    def after_kick(self):
        self.said.append("after")


@pytest.fixture
def kicker_of():
    """A kicker with its thread."""
    started = []

    def start(client, repeat_after_s=0.0):
        kicker = Kicker(client, Diary(), repeat_after_s=repeat_after_s)
        kicker.start()
        started.append(kicker)
        return kicker

    yield start
    for kicker in started:
        kicker.stop()
        kicker.stop()


class Played:
    """A kicker whose turns a test makes, with a clock that jumps to where the next one is due."""

    def __init__(self, client, *, repeat_after_s=2.0):
        self.clock = Clock(1000.0)
        self.client = client
        self.memory = Diary()
        values = (f"v{number}" for number in range(10_000))
        self.kicker = Kicker(
            client,
            self.memory,
            repeat_after_s=repeat_after_s,
            monotonic=self.clock,
            random=lambda: 0.0,
            new_value=lambda: next(values),
        )
        self.due_at = self.clock.time

    def release(self, *nodes):
        self.kicker.request(nodes)
        self.due_at = self.clock.time

    def pass_s(self, seconds):
        end = self.clock.time + seconds
        while self.due_at <= end:
            self.clock.time = max(self.clock.time, self.due_at)
            self.due_at = self.clock.time + max(0.0, self.kicker.turn())
        self.clock.time = end


def patch_of(node, value):
    return (
        f"/api/v1/nodes/{node}",
        {"metadata": {"annotations": {"readygate.dev/kick": value}}},
        "application/merge-patch+json",
    )


def test_each_patch_has_a_value_the_node_never_had():
    played = Played(FakeClient())
    played.release("n1")
    played.pass_s(10)
    assert [patch_of("n1", "v0"), patch_of("n1", "v1")] == played.client.sent
    assert wall_clock() != wall_clock()


def test_x55_a_thousand_nodes_that_are_released_are_one_node_patch_and_one_repeat():
    played = Played(FakeClient())
    played.release(*(f"n{number}" for number in range(1000)))
    played.pass_s(3600)
    assert ["n999", "n999"] == played.client.nodes


def test_three_hundred_nodes_that_heal_one_after_the_other_are_four_patches_at_most():
    played = Played(FakeClient())
    for number in range(300):
        played.release(f"n{number}")
        played.pass_s(1.5 / 300)
    played.pass_s(3600)
    assert 4 == len(played.client.sent)


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(Unreachable(path="/"), id="unreachable"),
        pytest.param(TooManyRequests(path="/", status=429, retry_after_s=0.01), id="too many requests"),
    ],
)
def test_a_failure_is_counted_and_repaired(failure):
    played = Played(FakeClient(failure), repeat_after_s=0.0)
    played.release("n1")
    played.pass_s(10)
    assert {"sent": 1, type(failure).__name__: 1} == played.kicker.counters


def test_a_bug_of_ours_is_repaired_too(kicker_of, caplog):
    client = FakeClient(RuntimeError("a fault of ours"))
    kicker = kicker_of(client)
    kicker.request(["n1"])
    client.wait(2)
    assert wait_for(lambda: kicker.counters == {"sent": 1, "RuntimeError": 1}, timeout_s=30)
    assert ["turn failed"] == [record.message for record in caplog.records]


def test_the_memory_is_told_before_each_write_and_after_one_that_was_taken():
    played = Played(FakeClient(Unreachable(path="/")), repeat_after_s=0.0)
    played.release("n1")
    played.pass_s(10)
    assert ["before", "before", "after"] == played.memory.said


def test_where_the_node_is_gone_another_of_the_batch_is_written_to():
    played = Played(FakeClient(NotFound(path="/", status=404)), repeat_after_s=0.0)
    played.release("n1", "n2")
    played.pass_s(10)
    assert (["n2", "n1"], {"sent": 1, "gone": 1}) == (played.client.nodes, played.kicker.counters)


def forbidden(count):
    return [Forbidden(path="/api/v1/nodes/n1", status=403, message="not allowed") for _ in range(count)]


def test_without_the_right_it_ends_at_once_and_the_log_names_the_remedy_once(caplog):
    played = Played(FakeClient(*forbidden(1000)))
    played.release("n1")
    played.pass_s(3600)
    assert (["n1"], {"sent": 0, "Forbidden": 1}) == (played.client.nodes, played.kicker.counters)
    (record,) = caplog.records
    assert (record.message, record.levelname, record.cause) == ("kick failed", "WARNING", "Forbidden")
    assert record.error.endswith(
        "allow the extender's user the verb patch on nodes, as the playbooks' ClusterRole does"
    )


def test_an_hour_without_the_right_is_a_patch_a_minute_whatever_is_released_and_a_line_in_ten_minutes(caplog):
    played = Played(FakeClient(*forbidden(1000)))
    for _ in range(3599):
        played.release(*(f"n{number}" for number in range(20)))
        played.pass_s(1)
    assert (60, 6) == (len(played.client.sent), len(caplog.records))


def test_a_failure_that_lasts_is_logged_again_after_ten_minutes_and_so_is_its_end(caplog):
    caplog.set_level("INFO")
    client = FakeClient(*(Unreachable(path="/") for _ in range(150)))
    played = Played(client)
    for _ in range(40):
        played.release("n1")
        played.pass_s(60)
    assert (len(client.failures), [record.message for record in caplog.records]) == (
        0,
        ["kick failed"] * 3 + ["kick succeeded again"],
    )


def test_after_five_minutes_it_is_given_up_and_the_log_says_so(caplog):
    played = Played(FakeClient(*(Unreachable(path="/") for _ in range(1000))))
    played.release("n1")
    played.pass_s(3600)
    assert (1, ["kick failed", "kick given up"]) == (
        played.kicker.counters["given_up"],
        [record.message for record in caplog.records],
    )
    assert len(played.client.sent) < 50


# The connection.


def test_a_connection_is_made_at_the_start_and_kept_open_while_nothing_happens():
    played = Played(FakeClient())
    played.pass_s(0)
    assert ["/version"] == played.client.got
    played.pass_s(300)
    assert ["/version"] * 11 == played.client.got


def test_a_kick_keeps_it_open_too_and_never_waits_for_that():
    played = Played(FakeClient())
    played.pass_s(29)
    played.release("n1")
    played.pass_s(10)
    assert (["/version"], 2) == (played.client.got, len(played.client.sent))


def test_a_connection_that_cannot_be_made_is_not_logged_here(caplog):
    class NoServer(FakeClient):
        def get(self, path, **options):
            super().get(path, **options)
            raise Unreachable(path=path)

    Played(NoServer()).pass_s(300)
    assert [] == caplog.records


class Hangs(FakeClient):
    """A server that answers when it is let."""

    def __init__(self):
        super().__init__()
        self.answer = threading.Event()

    def patch(self, path, body, **options):
        super().patch(path, body, **options)
        self.answer.wait(5)

    def close(self):
        super().close()
        self.answer.set()


def test_a_request_never_waits_for_a_write_that_hangs(kicker_of):
    client = Hangs()
    kicker = kicker_of(client)
    kicker.request(["n1"])
    client.wait(1)
    for _ in range(1000):
        kicker.request(["n2"])
    client.answer.set()
    client.wait(1)
    assert ["n1", "n2"] == client.nodes


def test_a_write_that_hangs_is_no_reason_for_a_restart():
    client = Hangs()
    kicker = Kicker(client, Diary(), repeat_after_s=2.0, monotonic=lambda: 100.0)
    assert not kicker.healthy(100.0)
    kicker.start()
    kicker.request(["n1"])
    client.wait(1)
    assert kicker.healthy(100_000.0)
    kicker.stop()
    assert not kicker.healthy(100.0)


def test_a_stop_ends_a_write_that_hangs_and_logs_nothing(kicker_of, caplog):
    class Cut(Hangs):
        def patch(self, path, body, **options):
            super().patch(path, body, **options)
            raise Unreachable(path=path, reason="Closed")

    client = Cut()
    kicker = kicker_of(client)
    kicker.request(["n1"])
    client.wait(1)
    began = time.monotonic()
    kicker.stop()
    assert (client.closed, time.monotonic() - began < 4, caplog.records) == (True, True, [])
