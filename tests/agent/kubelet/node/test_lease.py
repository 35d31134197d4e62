"""The Node's Lease against a fake API server, without threads: one step at a time."""

import copy
import threading

import pytest

from agent.kubelet.node.lease import LeaseKeeper
from kube.client import Client
from kube.errors import DeadlineExceeded
from tests.agent.kubelet.node.test_facts import NOW
from tests.agent.kubelet.node.test_reports import verbs
from tools.fakes.api_server import FakeApiServer
from tools.kit.clock import Clock
from tools.kit.waiting import wait_until

NAMESPACE = "kube-node-lease"
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "uid": "node-uid"}}
META = {"name": "node-1", "namespace": NAMESPACE}


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
def lease(api: FakeApiServer, client: Client, clock: Clock) -> LeaseKeeper:
    """Of a node that is registered."""
    api.put(NODE)
    return LeaseKeeper(client, "node-1", duration_s=40, wall=clock)


def test_the_lease_is_made_with_its_node_as_owner(api: FakeApiServer, lease: LeaseKeeper) -> None:
    lease.turn()
    made = api.get("Lease", "node-1", NAMESPACE)
    assert {
        "holderIdentity": "node-1",
        "leaseDurationSeconds": 40,
        "renewTime": "2023-11-14T22:13:20.000000Z",
    } == made["spec"]
    assert ["node-uid"] == [owner["uid"] for owner in made["metadata"]["ownerReferences"]]


def test_n91_no_lease_is_made_before_the_node_and_soon_after_it(
    api: FakeApiServer, client: Client, clock: Clock
) -> None:
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
    lease.turn()
    assert (["node-uid"], "somebody") == (owners(api), api.get("Lease", "node-1", NAMESPACE)["spec"]["holderIdentity"])


def owners(api: FakeApiServer) -> list[str]:
    return [owner["uid"] for owner in api.get("Lease", "node-1", NAMESPACE)["metadata"]["ownerReferences"]]


def test_a_renewal_reads_nothing(api: FakeApiServer, lease: LeaseKeeper, clock: Clock) -> None:
    lease.turn()
    before = len(api.requests)
    clock.time += 10.25
    lease.turn()
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
    wait_until(lambda: len(seen) >= 3, "three tries")
    lease.stop()
    assert seen[:3] == [True] * 3


def test_a_conflict_reads_the_lease_again_and_keeps_what_others_wrote(api: FakeApiServer, lease: LeaseKeeper) -> None:
    lease.turn()
    foreign = copy.deepcopy(api.get("Lease", "node-1", NAMESPACE))
    foreign["metadata"]["labels"] = {"mine": "x"}
    api.put(foreign)
    before = len(api.requests)
    lease.turn()
    assert ["PUT", "GET", "PUT"] == verbs(api)[before:]
    assert api.get("Lease", "node-1", NAMESPACE)["metadata"]["labels"] == {"mine": "x"}


def test_a_deleted_lease_is_made_again(api: FakeApiServer, lease: LeaseKeeper) -> None:
    lease.turn()
    api.delete("Lease", "node-1", NAMESPACE)
    lease.turn()
    assert api.get("Lease", "node-1", NAMESPACE) is not None


def test_n105_five_tries_then_it_is_read_then_five_more(api: FakeApiServer, lease: LeaseKeeper) -> None:
    lease.turn()
    api.answer_next(500, method="PUT", times=4)
    lease.turn()
    before = len(api.requests)
    api.answer_next(500, method="PUT", times=10)
    assert lease.turn() >= lease.period_s
    assert ["PUT"] * 5 + ["GET"] + ["PUT"] * 5 == verbs(api)[before:]


@pytest.mark.parametrize("duration_s", [1, 4, 40])
def test_n105_a_short_duration_makes_no_more_requests_of_an_outage(
    api: FakeApiServer, client: Client, clock: Clock, duration_s: int
) -> None:
    api.put(NODE)
    lease = LeaseKeeper(client, "node-1", duration_s=duration_s, wall=clock)
    api.answer_next(500, method="GET", times=4)
    assert [0.2, 0.4, 0.8, 1.6] == [lease.turn() for _ in range(4)]
    assert ["GET"] * 4 == verbs(api)


def test_the_period_is_a_quarter_of_the_duration(lease: LeaseKeeper) -> None:
    assert lease.period_s == 10
