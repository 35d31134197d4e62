"""The thread that writes Events, with a client that answers as a test says."""

import json
import threading
import time

import pytest

from extender.outlets.events import INBOX_NAMES_MAX, Events
from extender.outlets.node_condition_text import Standing
from extender.outlets.wire import event_name
from extender.policy.snapshot import Snapshot
from extender.why.attempts import Attempt
from kube.errors import AlreadyExists, Forbidden, NotFound, TooManyRequests, Unreachable
from tests.extender.outlets.gate_states import closed, gate, gates, opened
from tools.kit.clock import Clock
from tools.kit.waiting import wait_until

SHUT = Standing("False", "NoHealthPod", "closed: gate a: without a health pod")
WALL = 1795305600.0


class Server:
    """failures: what the next writes raise."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.sent = []
        self.closed = False

    def create(self, path, body, *, deadline_s):
        assert deadline_s <= 5
        self.sent.append((path, json.loads(body)))
        if self.failures:
            raise self.failures.pop(0)
        return body

    def close(self):
        self.closed = True


class Played:
    """Its turns, with a clock that jumps to where the next one is due."""

    def __init__(self, server, per_second=5.0):
        self.clock = Clock(1000.0)
        self.server = server
        self.leads = True
        self.events = Events(
            server,
            leads=lambda: self.leads,
            per_second=per_second,
            monotonic=self.clock,
            wall=lambda: WALL + self.clock.time - 1000.0,
            random=lambda: 0.0,
        )

    def pass_s(self, seconds):
        end, due_at = self.clock.time + seconds, self.clock.time
        while due_at <= end:
            self.clock.time = max(self.clock.time, due_at)
            due_at = self.clock.time + self.events.turn()
        self.clock.time = end


SNAPSHOT = Snapshot(gates(gate("a", n1=closed("missing"), n2=closed("missing"), n3=opened())), frozenset({"n1", "n2"}))


def attempt(uid="u1", name="web-1", namespace="shop", nodes=("n1", "n2"), snapshot=SNAPSHOT):
    refused = dict.fromkeys(nodes, "node(s) without a health pod")
    return Attempt(namespace, name, uid, 1000.0, asked=len(nodes), refused=refused, mask=-1, snapshot=snapshot)


def test_an_event_on_a_node_is_one_that_kubectl_describe_shows():
    played = Played(Server())
    played.events.node_changed("n1", "uid-n1", SHUT)
    played.pass_s(1)
    ((path, event),) = played.server.sent
    name = event["metadata"].pop("name")
    assert ("/api/v1/namespaces/default/events", "n1.", 35) == (path, name[:3], len(name))
    assert {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-n1"},
        "type": "Warning",
        "reason": "NodeClosed",
        "message": "closed: gate a: without a health pod",
        "source": {"component": "readygate-extender"},
        "reportingComponent": "readygate-extender",
        "firstTimestamp": "2026-11-22T00:00:00Z",
        "lastTimestamp": "2026-11-22T00:00:00Z",
        "count": 1,
    } == event


def test_an_event_on_a_pod_is_in_its_namespace():
    played = Played(Server())
    played.events.refused_everywhere(attempt())
    played.pass_s(1)
    ((path, event),) = played.server.sent
    assert "/api/v1/namespaces/shop/events" == path
    assert {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web-1", "uid": "u1"} == event[
        "involvedObject"
    ]
    assert (
        "readygate refused all 2 nodes that kube-scheduler asked about: gate a: n1, n2: without a health pod. "
        "See: readygate why pod shop/web-1"
    ) == event["message"]


def test_a_pod_that_is_refused_hundreds_of_times_a_second_is_told_once():
    played = Played(Server())
    for _ in range(1000):
        played.events.refused_everywhere(attempt())
        played.pass_s(0.1)
    assert 1 == len(played.server.sent)


def test_of_ten_thousand_pods_refused_at_once_few_are_looked_at_and_told_a_second():
    played = Played(Server())
    for number in range(10_000):
        played.events.refused_everywhere(attempt(uid=f"u{number}", name=f"p{number}"))
    played.pass_s(10)
    assert 5 * 10 <= len(played.server.sent) <= 5 * 10 + 10


def test_answers_that_are_not_looked_at_yet_are_bounded_by_their_names():
    played = Played(Server())
    names = [f"n{i}" for i in range(5000)]
    for number in range(1000):
        played.events.refused_everywhere(attempt(uid=f"u{number}", nodes=names))
    assert INBOX_NAMES_MAX >= played.events._names_put > INBOX_NAMES_MAX - 5000


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(attempt(uid=""), id="a pod without a uid: no event could be about it"),
        pytest.param(attempt(snapshot=None), id="an answer of no snapshot"),
    ],
)
def test_what_nothing_can_be_said_of_is_not_told(one):
    played = Played(Server())
    played.events.refused_everywhere(one)
    played.pass_s(1)
    assert [] == played.server.sent


def test_who_does_not_lead_tells_of_pods_only():
    played = Played(Server(*(Unreachable(path="/") for _ in range(3))))
    played.events.node_changed("n1", "uid-n1", SHUT)
    played.pass_s(1)
    played.leads = False
    played.events.refused_everywhere(attempt())
    tried = len(played.server.sent)
    played.pass_s(30)
    assert {"Pod"} == {event["involvedObject"]["kind"] for _, event in played.server.sent[tried:]}


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(Unreachable(path="/"), id="unreachable"),
        pytest.param(TooManyRequests(path="/", status=429, retry_after_s=1.0), id="too many requests"),
    ],
)
def test_a_failure_is_repaired_under_the_same_name(failure):
    played = Played(Server(failure))
    played.events.node_changed("n1", "uid-n1", SHUT)
    played.pass_s(10)
    names = [event["metadata"]["name"] for _, event in played.server.sent]
    assert (2, 1) == (len(names), len(set(names)))
    assert {"written": 1, "dropped": 0, type(failure).__name__: 1} == played.events.counters


def test_one_that_is_there_already_was_written_by_a_try_whose_answer_was_lost():
    played = Played(Server(Unreachable(path="/"), AlreadyExists(path="/", status=409)))
    played.events.node_changed("n1", "uid-n1", SHUT)
    played.pass_s(10)
    assert (1, 0) == (played.events.counters["written"], played.events.waiting)


def test_without_the_right_it_is_given_up_and_the_remedy_said_once_in_ten_minutes(caplog):
    played = Played(Server(*(Forbidden(path="/", status=403, message="no") for _ in range(1000))))
    for number in range(595):
        played.events.node_changed(f"n{number}", f"uid-{number}", SHUT)
        played.pass_s(1)
    (record,) = caplog.records
    assert (True, "WARNING", True) == (
        len(played.server.sent) <= 9,
        record.levelname,
        "verb create on events" in record.error,
    )


def test_the_event_of_a_namespace_that_is_gone_is_dropped():
    played = Played(Server(NotFound(path="/", status=404)))
    played.events.refused_everywhere(attempt())
    played.pass_s(60)
    assert (1, {"written": 0, "dropped": 1, "NotFound": 1}) == (len(played.server.sent), played.events.counters)


def test_the_server_away_for_minutes_costs_few_tries_and_bounded_memory():
    played = Played(Server(*(Unreachable(path="/") for _ in range(10_000))))
    for number in range(600):
        played.events.node_changed(f"n{number}", f"uid-{number}", SHUT)
        played.events.refused_everywhere(attempt(uid=f"u{number}"))
        played.pass_s(1)
    assert (True, True) == (len(played.server.sent) < 40, played.events.waiting <= 1000)


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        pytest.param("web-1", "web-1.0123", id="short"),
        pytest.param("a" * 253, "a" * 248 + ".0123", id="as long as a name may be"),
        pytest.param("a" * 247 + "--b", "a" * 247 + ".0123", id="cut where no name may end"),
    ],
)
def test_the_name_of_an_event_is_one_the_api_takes(about, expected):
    assert (expected, True) == (event_name(about, "0123"), len(event_name(about, "0123")) <= 253)


# As a thread.


def test_who_tells_never_waits_for_a_write_that_hangs_and_a_stop_ends_it(caplog):
    class Hangs(Server):
        def __init__(self):
            super().__init__()
            self.answer = threading.Event()

        def create(self, path, body, *, deadline_s):
            super().create(path, body, deadline_s=deadline_s)
            self.answer.wait(5)
            raise Unreachable(path=path, reason="Closed")

        def close(self):
            super().close()
            self.answer.set()

    server = Hangs()
    events = Events(server, leads=lambda: True, per_second=5.0)
    assert not events.healthy(0.0)
    events.start()
    events.node_changed("n1", "uid-n1", SHUT)
    wait_until(lambda: server.sent)
    began = time.monotonic()
    for number in range(5000):
        events.node_changed(f"n{number}", f"uid-{number}", SHUT)
    told_s = time.monotonic() - began
    assert events.healthy(100_000.0)
    events.stop()
    assert (True, True, True, []) == (told_s < 4, server.closed, events.counters["dropped"] >= 3900, caplog.records)
