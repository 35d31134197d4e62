"""Registration, node status and Lease against a fake API server, without threads: one step at a time."""

import copy
import json
import threading
from collections.abc import Iterator

import pytest

from agent.events.event import NORMAL, About, Event
from agent.node.lease import LeaseKeeper
from agent.node.registration import REPORT_S, NodeReporter
from kube.client import Client
from kube.errors import DeadlineExceeded, Forbidden, KubeError, NotFound, Unreachable
from tests.agent.node.test_facts import FACTS, NOW
from tests.fakes.api_server import FakeApiServer
from tests.kit.clock import Clock
from tests.kit.waiting import wait_until

NAMESPACE = "kube-node-lease"
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "uid": "node-uid"}}
META = {"name": "node-1", "namespace": NAMESPACE}


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer() as api:
        yield api


@pytest.fixture
def client(api: FakeApiServer) -> Iterator[Client]:
    client = Client(api.connection(), user_agent="test", attempts=1)
    yield client
    client.close()


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


def test_a_node_that_turns_is_told_of_once_each_time(client: Client) -> None:
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


def test_a_new_node_is_created(api: FakeApiServer, reporter: NodeReporter) -> None:
    reporter.register()
    assert reporter.registered
    assert api.get("Node", "node-1")["metadata"]["labels"]["kubernetes.io/hostname"] == "node-1"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, ["POST", "GET", "PATCH"], id="labels are put right"),
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
            id="nothing to do",
        ),
    ],
)
def test_a_node_that_exists_is_taken_over(
    api: FakeApiServer, reporter: NodeReporter, labels: dict[str, str], expected: object
) -> None:
    api.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "labels": {**labels, "mine": "x"}}})
    reporter.register()
    assert expected == verbs(api)
    assert {"mine": "x", "kubernetes.io/hostname": "node-1"}.items() <= api.get("Node", "node-1")["metadata"][
        "labels"
    ].items()


def test_a_create_that_is_forbidden_says_so(api: FakeApiServer, reporter: NodeReporter) -> None:
    api.answer_next(403, method="POST")
    with pytest.raises(Forbidden):
        reporter.register()
    assert not reporter.registered


def test_the_first_report_is_written_and_then_only_changes(reporter: NodeReporter, errors: list[str]) -> None:
    reporter.register()
    made = [reporter.report(), reporter.report()]
    errors.append("container runtime is down")
    made += [reporter.report(), reporter.report()]
    assert [True, False, True, False] == made


def test_a_report_is_written_when_the_last_one_is_five_minutes_old(reporter: NodeReporter, monotonic: Clock) -> None:
    reporter.register()
    reporter.report()
    monotonic.time += REPORT_S - 1
    assert reporter.report() is False
    monotonic.time += 1
    assert reporter.report() is True


def test_an_address_that_is_not_ours_goes_with_one_write(api: FakeApiServer, reporter: NodeReporter) -> None:
    addresses = [{"type": "ExternalIP", "address": "192.0.2.1"}]
    api.put(
        {"apiVersion": "v1", "kind": "Node", "metadata": META | {"namespace": ""}, "status": {"addresses": addresses}}
    )
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


def test_a_node_that_becomes_ready_says_so_at_once_without_asking_before(
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


def test_a_node_that_is_not_ready_in_two_minutes_is_looked_at_each_ten_seconds(
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


def test_a_failing_report_is_tried_five_times_without_a_pause(api: FakeApiServer, reporter: NodeReporter) -> None:
    reporter.register()
    api.answer_next(500, method="PATCH", times=4)
    assert reporter.report() is True
    api.answer_next(500, method="GET", times=9)
    with pytest.raises(KubeError):
        reporter.report()


def test_a_slow_server_does_not_make_the_reporter_unhealthy(
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


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
def lease(api: FakeApiServer, client: Client, clock: Clock) -> LeaseKeeper:
    """Of a node that is registered."""
    api.put(NODE)
    return LeaseKeeper(client, "node-1", duration_s=40, wall=clock)


def test_the_lease_is_made_with_its_node_as_owner(api: FakeApiServer, lease: LeaseKeeper) -> None:
    lease.renew()
    made = api.get("Lease", "node-1", NAMESPACE)
    assert {
        "holderIdentity": "node-1",
        "leaseDurationSeconds": 40,
        "renewTime": "2023-11-14T22:13:20.000000Z",
    } == made["spec"]
    assert ["node-uid"] == [owner["uid"] for owner in made["metadata"]["ownerReferences"]]


def test_no_lease_is_made_before_the_node_and_soon_after_it(api: FakeApiServer, client: Client, clock: Clock) -> None:
    lease = LeaseKeeper(client, "node-1", duration_s=40, wall=clock)
    assert lease.turn() <= 1.0
    assert "POST" not in verbs(api)
    api.put(NODE)
    lease.turn()
    assert ["node-uid"] == owners(api)


def test_a_lease_without_owner_gets_it_with_the_next_renewal(api: FakeApiServer, client: Client, clock: Clock) -> None:
    lease = LeaseKeeper(client, "node-1", duration_s=40, wall=clock)
    spec = {"holderIdentity": "somebody", "leaseDurationSeconds": 40}
    api.put({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": META, "spec": spec})
    assert lease.turn() <= 1.0
    assert "renewTime" not in api.get("Lease", "node-1", NAMESPACE)["spec"], "nor is it renewed without"
    api.put(NODE)
    lease.renew()
    assert (["node-uid"], "somebody") == (owners(api), api.get("Lease", "node-1", NAMESPACE)["spec"]["holderIdentity"])


def owners(api: FakeApiServer) -> list[str]:
    return [owner["uid"] for owner in api.get("Lease", "node-1", NAMESPACE)["metadata"]["ownerReferences"]]


def test_a_renewal_reads_nothing(api: FakeApiServer, lease: LeaseKeeper, clock: Clock) -> None:
    lease.renew()
    before = len(api.requests)
    clock.time += 10.25
    lease.renew()
    assert ["PUT"] == verbs(api)[before:]
    assert api.get("Lease", "node-1", NAMESPACE)["spec"]["renewTime"] == "2023-11-14T22:13:30.250000Z"


def test_a_lease_that_fails_is_logged_once_and_tried_with_growing_pauses(
    api: FakeApiServer,
    client: Client,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    api.put(NODE)
    lease = LeaseKeeper(client, "node-1", duration_s=40, wall=clock, random=lambda: 0.5)
    get = client.get
    monkeypatch.setattr(client, "get", lambda *_arguments, **_more: b"[]")
    with caplog.at_level("INFO"):
        pauses = [lease.turn() for _ in range(7)]
        monkeypatch.setattr(client, "get", get)
        pauses.append(lease.turn())
    assert [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 7.0, 10.2] == pauses
    told = [record.getMessage() for record in caplog.records]
    assert told == ["node lease not renewed", "node lease renewal succeeded again"]


def test_a_slow_server_does_not_make_the_lease_unhealthy(
    client: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monotonic, seen, started = Clock(100.0), [], threading.Event()
    lease = LeaseKeeper(client, "node-1", duration_s=40, wall=clock, monotonic=monotonic)

    def slow(*_arguments: object, **_more: object) -> bytes:
        started.wait(5)
        monotonic.time += 30
        seen.append(lease.healthy(monotonic()))
        raise DeadlineExceeded(path="/apis")

    monkeypatch.setattr(client, "get", slow)
    lease.start()
    started.set()
    wait_until(lambda: len(seen) >= 5, "five tries")
    lease.stop()
    assert seen[:5] == [True] * 5


def test_a_conflict_reads_the_lease_again_and_keeps_what_others_wrote(api: FakeApiServer, lease: LeaseKeeper) -> None:
    lease.renew()
    foreign = copy.deepcopy(api.get("Lease", "node-1", NAMESPACE))
    foreign["metadata"]["labels"] = {"mine": "x"}
    api.put(foreign)
    before = len(api.requests)
    lease.renew()
    assert ["PUT", "GET", "PUT"] == verbs(api)[before:]
    assert api.get("Lease", "node-1", NAMESPACE)["metadata"]["labels"] == {"mine": "x"}


def test_a_deleted_lease_is_made_again(api: FakeApiServer, lease: LeaseKeeper) -> None:
    lease.renew()
    api.delete("Lease", "node-1", NAMESPACE)
    lease.renew()
    assert api.get("Lease", "node-1", NAMESPACE) is not None


def test_five_tries_and_then_the_error(api: FakeApiServer, lease: LeaseKeeper) -> None:
    lease.renew()
    api.answer_next(500, method="PUT", times=4)
    lease.renew()
    api.answer_next(500, method="PUT", times=5)
    with pytest.raises(KubeError):
        lease.renew()


def test_the_period_is_a_quarter_of_the_duration(lease: LeaseKeeper) -> None:
    assert lease.period_s == 10


def test_the_body_of_a_report_is_json(api: FakeApiServer, reporter: NodeReporter) -> None:
    reporter.register()
    reporter.report()
    assert json.loads(api.requests[-1].body)["status"]["addresses"][0]["address"] == FACTS.address
