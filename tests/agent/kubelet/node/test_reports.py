"""Registration, node status and Lease against a fake API server, without threads: one step at a time."""

import copy
import json
import threading
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from agent.kubelet.events.event import NORMAL, About, Event
from agent.kubelet.node.facts import ATTACHES
from agent.kubelet.node.observed import Observed
from agent.kubelet.node.registration import REPORT_S, NodeReporter
from agent.wire.semantics import V1_16
from kube.client import Client
from kube.errors import DeadlineExceeded, Forbidden, KubeError, NotFound, Unreachable
from tests.agent.kubelet.node.test_facts import FACTS, NOW
from tools.fakes.api_patches import strategic_merge
from tools.fakes.api_server import FakeApiServer
from tools.kit.clock import Clock
from tools.kit.waiting import wait_until


@pytest.fixture
def monotonic() -> Clock:
    return Clock(100.0)


@pytest.fixture
def errors() -> list[str]:
    return []


@pytest.fixture
def reporter(client: Client, errors: list[str], monotonic: Clock) -> NodeReporter:
    return NodeReporter(
        client, FACTS, lambda: errors, update_s=10, wall=Clock(NOW), monotonic=monotonic, random=lambda: 0.5
    )


def test_n7_n8_a_node_that_turns_is_told_of_once_each_time(client: Client) -> None:
    told: list[Event] = []
    errors: list[str] = []
    reporter = NodeReporter(client, FACTS, lambda: errors, update_s=10, record=told.append, wall=Clock(NOW))
    reporter.register()
    for found in ([], [], ["no runtime"], ["no runtime"], []):
        errors[:] = found
        reporter.report()
    expected = ["NodeNotReady", "NodeReady"]
    texts = [f"Node node-1 status is now: {reason}" for reason in expected]
    assert [
        Event(About("Node", "node-1"), NORMAL, reason, text) for reason, text in zip(expected, texts, strict=True)
    ] == told


def verbs(api: FakeApiServer) -> list[str]:
    return [r.method for r in api.requests]


def test_n59_a_new_node_is_created(api: FakeApiServer, reporter: NodeReporter) -> None:
    reporter.register()
    assert reporter.registered
    assert api.get("Node", "node-1")["metadata"]["labels"]["kubernetes.io/hostname"] == "node-1"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, ["POST", "GET", "PATCH"], id="N60 labels are put right"),
        pytest.param(
            {
                "zone": "a",
                "kubernetes.io/hostname": "node-1",
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "beta.kubernetes.io/arch": "amd64",
            },
            ["POST", "GET"],
            id="N60 nothing to do",
        ),
    ],
)
def test_a_node_that_exists_is_taken_over(
    api: FakeApiServer, reporter: NodeReporter, labels: dict[str, str], expected: object
) -> None:
    meta = {"name": "node-1", "labels": {**labels, "mine": "x"}}
    resources = {"capacity": {"cpu": "1"}, "allocatable": {"cpu": "1"}}
    api.put({"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": resources})
    reporter.register()
    assert expected == verbs(api)
    assert {"mine": "x", "kubernetes.io/hostname": "node-1"}.items() <= api.get("Node", "node-1")["metadata"][
        "labels"
    ].items()


def test_a_node_without_resources_gets_them_when_it_is_taken_over_and_huge_pages_of_before_go(
    api: FakeApiServer, client: Client
) -> None:
    facts = replace(FACTS, capacity={**FACTS.capacity, "hugepages-2Mi": "2Mi"})
    capacity = {"hugepages-1Gi": "1Gi", "cpu": "1"}
    api.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}, "status": {"capacity": capacity}})
    NodeReporter(client, facts, list, update_s=10).register()
    status = api.get("Node", "node-1")["status"]
    assert {"cpu": "1", "hugepages-2Mi": "2Mi"} == status["capacity"]
    assert {**facts.capacity, "memory": "8587837440"} == status["allocatable"]


def test_n62_an_annotation_that_has_volumes_attached_goes(api: FakeApiServer, reporter: NodeReporter) -> None:
    annotations = {ATTACHES: "true", "theirs": "x"}
    api.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "annotations": annotations}})
    reporter.register()
    assert {"theirs": "x"} == api.get("Node", "node-1")["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        pytest.param(False, ["POST", "GET", "PATCH"], id="N61 one that may not be made may be there"),
        pytest.param(True, ["POST"], id="N66 with the gate it is not looked for"),
        pytest.param(V1_16.kubelet_registration_get_on_exists_only, ["POST"], id="CM45 nor by 1.16"),
    ],
)
def test_a_create_that_is_forbidden(api: FakeApiServer, client: Client, gate: bool, expected: list[str]) -> None:
    api.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}})
    api.answer_next(403, method="POST")
    reporter = NodeReporter(client, FACTS, list, update_s=10, get_on_exists_only=gate)
    with pytest.raises(Forbidden) if gate else nullcontext():
        reporter.register()
    assert (expected, not gate) == (verbs(api), reporter.registered)


def test_n92_that_somebody_cordons_the_node_is_told_of_once_each_time(api: FakeApiServer, client: Client) -> None:
    told: list[Event] = []
    reporter = NodeReporter(client, FACTS, list, update_s=10, record=told.append)
    reporter.register()
    reporter.report()
    told.clear()
    for unschedulable in (False, True, True, False):
        api.put({**api.get("Node", "node-1"), "spec": {"unschedulable": unschedulable}})
        reporter.report()
    assert ["NodeNotSchedulable", "NodeSchedulable"] == [event.reason for event in told]


def test_a_create_that_is_forbidden_says_so(api: FakeApiServer, reporter: NodeReporter) -> None:
    api.answer_next(403, method="POST")
    with pytest.raises(Forbidden):
        reporter.register()
    assert not reporter.registered


def test_n48_n50_the_first_report_is_written_and_then_only_changes(reporter: NodeReporter, errors: list[str]) -> None:
    reporter.register()
    made = [reporter.report(), reporter.report()]
    errors.append("container runtime is down")
    made += [reporter.report(), reporter.report()]
    assert [True, False, True, False] == made


def test_n23_n26_a_report_is_written_when_the_last_one_is_five_minutes_old(
    reporter: NodeReporter, monotonic: Clock
) -> None:
    reporter.register()
    reporter.report()
    monotonic.time += REPORT_S - 1
    assert reporter.report() is False
    monotonic.time += 1
    assert reporter.report() is True


def test_an_address_that_is_not_ours_goes_with_one_write(api: FakeApiServer, reporter: NodeReporter) -> None:
    addresses = [{"type": "ExternalIP", "address": "192.0.2.1"}]
    api.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}, "status": {"addresses": addresses}})
    reporter.register()
    assert [True, False] == [reporter.report(), reporter.report()], "else it is written every ten seconds"
    assert ["InternalIP", "Hostname"] == [a["type"] for a in api.get("Node", "node-1")["status"]["addresses"]]


def test_a_label_that_pods_are_placed_by_is_put_right(api: FakeApiServer, reporter: NodeReporter) -> None:
    reporter.register()
    reporter.report()
    node = copy.deepcopy(api.get("Node", "node-1"))
    node["metadata"]["labels"]["kubernetes.io/arch"] = "arm64"
    api.put(node)
    assert reporter.report() is True
    assert api.get("Node", "node-1")["metadata"]["labels"]["kubernetes.io/arch"] == "amd64"


def test_n56_a_node_that_becomes_ready_says_so_at_once_without_asking_before(
    api: FakeApiServer, reporter: NodeReporter, errors: list[str], monotonic: Clock
) -> None:
    errors.append("container runtime is down")
    assert reporter.turn() == 0.1
    asked = len(api.requests)
    for _ in range(5):
        monotonic.time += 0.1
        assert reporter.turn() == 0.1
    assert asked == len(api.requests)
    errors.clear()
    monotonic.time += 0.1
    assert reporter.turn() > 1.0, "and then waits for the regular report"
    assert ["PATCH"] == verbs(api)[asked:]


def test_n54_a_node_that_is_not_ready_in_two_minutes_is_looked_at_each_ten_seconds(
    reporter: NodeReporter, errors: list[str], monotonic: Clock
) -> None:
    errors.append("container runtime is down")
    reporter.turn()
    monotonic.time += 120
    assert reporter.turn() > 1.0


def test_what_the_control_plane_wrote_is_put_right(api: FakeApiServer, reporter: NodeReporter) -> None:
    reporter.register()
    reporter.report()
    node = copy.deepcopy(api.get("Node", "node-1"))
    next(c for c in node["status"]["conditions"] if c["type"] == "Ready")["status"] = "Unknown"
    api.put(node)
    assert reporter.report() is True
    ready = [c["status"] for c in api.get("Node", "node-1")["status"]["conditions"] if c["type"] == "Ready"]
    assert ready == ["True"]


def test_n46_a_failing_report_is_tried_five_times_without_a_pause(api: FakeApiServer, reporter: NodeReporter) -> None:
    reporter.register()
    api.answer_next(500, method="PATCH", times=4)
    assert reporter.report() is True
    api.answer_next(500, method="GET", times=9)
    with pytest.raises(KubeError):
        reporter.report()


def test_n47_a_slow_server_does_not_make_the_reporter_unhealthy(
    reporter: NodeReporter, monotonic: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, started = [], threading.Event()

    def slow(*_arguments: object, **_more: object) -> bytes:
        started.wait(5)
        monotonic.time += 50
        seen.append(reporter.healthy(monotonic()))
        raise DeadlineExceeded(path="/api/v1/nodes/node-1/status")

    monkeypatch.setattr(reporter._client, "patch", slow)
    reporter.start()
    started.set()
    wait_until(lambda: len(seen) >= 5, "five tries")
    reporter.stop()
    assert seen[:5] == [True] * 5, "its life does not depend on the API server"


def test_an_hour_without_a_server_is_logged_once(
    reporter: NodeReporter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answers = [Unreachable(path="/api/v1/nodes")] * 20

    def create(*_arguments: object, **_more: object) -> bytes:
        if answers:
            raise answers.pop()
        return b"{}"

    monkeypatch.setattr(reporter._client, "create", create)
    monkeypatch.setattr(reporter, "report", lambda: True)
    with caplog.at_level("INFO"):
        pauses = [reporter.turn() for _ in range(21)]
    told = [record.getMessage() for record in caplog.records if "status" in record.getMessage()]
    assert told == ["node status not written", "node status update succeeded again"]
    assert [0.2, 0.4, 0.8] == pauses[:3]
    assert (7.0, 10.2) == (max(pauses[:20]), pauses[20])


def test_a_report_that_fails_later_waits_for_the_next_regular_one(api: FakeApiServer, reporter: NodeReporter) -> None:
    reporter.turn()
    api.answer_next(500, method="GET", times=5)
    assert reporter.turn() == 10


def test_the_first_report_is_tried_again_soon(api: FakeApiServer, reporter: NodeReporter) -> None:
    reporter.register()
    api.answer_next(500, method="GET", times=5)
    assert reporter.turn() == 0.2


@pytest.mark.parametrize("answer", [b"[]", b"{", b'{"status": {"conditions": 1}}'])
def test_an_answer_that_makes_no_sense_is_a_failure_like_others(
    reporter: NodeReporter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, answer: bytes
) -> None:
    reporter.register()
    monkeypatch.setattr(reporter._client, "get", lambda *_arguments, **_more: answer)
    reporter.turn()
    reporter.turn()
    assert ["node status not written"] == [record.getMessage() for record in caplog.records]


def test_a_deleted_node_is_registered_again(api: FakeApiServer, reporter: NodeReporter) -> None:
    reporter.register()
    api.delete("Node", "node-1")
    with pytest.raises(NotFound):
        reporter.report()
    assert not reporter.registered


def test_n108_the_first_try_of_a_report_reads_the_cache_of_the_api_server_and_the_next_one_etcd(
    api: FakeApiServer, reporter: NodeReporter
) -> None:
    reporter.register()
    del api.requests[:]
    api.answer_next(404, method="GET")  # a new Node is not in the cache yet
    assert reporter.report()
    assert [("GET", {"resourceVersion": "0"}), ("GET", {}), ("PATCH", {})] == [
        (one.method, dict(one.query)) for one in api.requests
    ]


def test_the_body_of_a_report_is_json(api: FakeApiServer, reporter: NodeReporter) -> None:
    reporter.register()
    reporter.report()
    assert json.loads(api.requests[-1].body)["status"]["addresses"][0]["address"] == FACTS.address


class OldServer:
    """Knows nothing of features, until it is upgraded."""

    def __init__(self) -> None:
        self.node: Any = None
        self.upgraded = False

    def get(self, _path: str, *, query: object) -> bytes:  # noqa: ARG002 - NodeClient
        return json.dumps(self.node).encode()

    def create(self, _path: str, body: bytes) -> bytes:
        self.node = json.loads(body)
        return self._kept()

    def patch(self, _path: str, body: bytes, *, content_type: str) -> bytes:  # noqa: ARG002 - NodeClient
        self.node = strategic_merge(self.node, json.loads(body))
        return self._kept()

    def _kept(self) -> bytes:
        if not self.upgraded:
            for name in ("declaredFeatures", "features"):
                self.node["status"].pop(name, None)
        return json.dumps(self.node).encode()


def test_n93_what_an_api_server_of_old_drops_is_no_change_each_time(monotonic: Clock) -> None:
    server, facts = OldServer(), replace(FACTS, declared_features=("A",))
    found = Observed(supplemental_groups_policy=False)
    reporter = NodeReporter(
        server, facts, list, update_s=10, found=lambda: found, monotonic=monotonic, random=lambda: 0.5
    )
    reporter.register()
    written = [reporter.report() for _ in range(4)]
    server.upgraded = True
    monotonic.time += REPORT_S
    written += [reporter.report() for _ in range(3)]
    assert [True, False, False, False, True, False, False] == written
    assert ["A"] == server.node["status"]["declaredFeatures"]
