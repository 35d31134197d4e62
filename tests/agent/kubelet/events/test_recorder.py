"""The thread that writes Events, and an API server that says no, or nothing."""

import json
import logging
import threading
import time

import pytest

from agent.kubelet.events.event import WARNING, About, Event
from agent.kubelet.events.recorder import PAUSE_S, QUEUED_MAX, TRIES, Recorder
from kube.errors import AlreadyExists, DeadlineExceeded, Forbidden, Invalid, KubeError, NotFound
from tools.kit.waiting import wait_until

POD = About("Pod", "web-0", "shop", "u1", "spec.containers{c}")
NODE = About("Node", "node-1")
EVENTS = "/api/v1/namespaces/shop/events"


def unhealthy(text: str = "probe failed", about: About = POD) -> Event:
    return Event(about, WARNING, "Unhealthy", text)


class Api:
    """Answers with the next of `answers`, then well. `hang` is waited for first."""

    def __init__(self, *answers: type[KubeError]) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[str, str, dict[str, object]]] = []
        self.hang = threading.Event()
        self.hang.set()

    def _call(self, verb: str, path: str, body: bytes) -> bytes:
        self.hang.wait(20)
        self.calls.append((verb, path, json.loads(body)))
        if self.answers:
            raise self.answers.pop(0)(path=path)
        return b"{}"

    def create(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes:
        assert deadline_s
        return self._call("create", path, body)

    def patch(self, path: str, body: bytes, *, deadline_s: float | None = None) -> bytes:
        assert deadline_s
        return self._call("patch", path, body)

    def close(self) -> None:
        self.hang.set()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def turned(api: Api, *events: Event, turns: int = 50) -> tuple[Recorder, list[float]]:
    """A recorder that had so many turns, with what each waited for; its clock goes on by that."""
    clock = Clock()
    recorder = Recorder(api, "node-1", monotonic=clock, wall=lambda: 1_000.0 + clock.now, random=lambda: 0.5)
    for event in events:
        recorder.record(event)
    waits: list[float] = []
    for _ in range(turns):
        wait_s = recorder.turn()
        if wait_s == float("inf"):
            break
        clock.now += wait_s
        if wait_s:
            waits.append(wait_s)
    return recorder, waits


def test_an_event_as_the_api_server_gets_it() -> None:
    api = Api()
    turned(api, unhealthy("  said\nthis"))
    expected = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web-0.e8d4a51000", "namespace": "shop"},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "shop",
            "name": "web-0",
            "uid": "u1",
            "fieldPath": "spec.containers{c}",
        },
        "type": "Warning",
        "reason": "Unhealthy",
        "message": "said this",
        "source": {"component": "readygate-agent", "host": "node-1"},
        "reportingComponent": "readygate-agent",
        "reportingInstance": "node-1",
        "firstTimestamp": "1970-01-01T00:16:40Z",
        "lastTimestamp": "1970-01-01T00:16:40Z",
        "count": 1,
    }
    assert [("create", EVENTS, expected)] == api.calls


def test_what_is_told_of_the_node_is_kept_in_default() -> None:
    api = Api()
    turned(api, unhealthy(about=NODE))
    (_, path, body) = api.calls[0]
    assert ("/api/v1/namespaces/default/events", "default") == (path, body["metadata"]["namespace"])  # type: ignore[index]


@pytest.mark.parametrize(
    ("answers", "verbs", "dropped"),
    [
        pytest.param((), ["create", "patch"], 0, id="the second is counted"),
        pytest.param((AlreadyExists,), ["create", "patch"], 0, id="written by a try whose answer was lost"),
        pytest.param((DeadlineExceeded,), ["create", "create", "patch"], 0, id="no answer: again"),
        pytest.param((Forbidden,), ["create", "patch"], 1, id="refused: given up"),
        pytest.param((Invalid, NotFound), ["create", "patch", "create"], 1, id="counted, but never written: created"),
    ],
)
def test_two_of_one_kind(answers: tuple[type[KubeError], ...], verbs: list[str], dropped: int) -> None:
    api = Api(*answers)
    recorder, _ = turned(api, unhealthy(), unhealthy())
    assert (verbs, dropped) == ([verb for verb, _, _ in api.calls], recorder.dropped)
    assert {1, 2} == {body["count"] for _, _, body in api.calls}


def test_an_outage_costs_twelve_tries_and_one_line(caplog: pytest.LogCaptureFixture) -> None:
    api = Api(*[DeadlineExceeded] * (2 * TRIES))
    with caplog.at_level(logging.WARNING):
        recorder, waits = turned(api, unhealthy("a"), unhealthy("b"), unhealthy("c"))
    one = [PAUSE_S * 0.5, *[PAUSE_S] * (TRIES - 2)]
    assert (one * 2, 2, "create") == (waits, recorder.dropped, api.calls[-1][0])
    assert ["event not written"] == [record.message for record in caplog.records]


def test_a_flood_is_written_at_fifty_a_second_after_the_first_hundred() -> None:
    api = Api()
    _, waits = turned(api, *(unhealthy(about=About("Pod", f"p{i}", "shop", f"u{i}")) for i in range(300)), turns=2_000)
    assert (300, 4.0) == (len(api.calls), pytest.approx(sum(waits), abs=0.1))


def test_who_tells_never_waits_and_a_stop_neither() -> None:
    api = Api()
    api.hang.clear()
    recorder = Recorder(api, "node-1")
    recorder.start()
    recorder.record(unhealthy("first"))
    wait_until(lambda: recorder._inbox.empty(), timeout_s=20)
    begun = time.monotonic()
    for number in range(QUEUED_MAX + 50):
        recorder.record(unhealthy(f"text {number}"))
    assert (50, True) == (recorder.dropped, recorder.healthy(time.monotonic()))
    recorder.stop()
    assert time.monotonic() - begun < 10
    assert not recorder.healthy(time.monotonic())
