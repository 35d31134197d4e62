"""Condition and Events over real sockets, with an API server that refuses, asks for patience, hangs or is away."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from extender.cluster import observed
from extender.config.outlets import Events, NodeCondition, Outlets
from extender.outlets.writers import Writers
from kube import contract, paths
from kube.client import Client
from kube.reflector import ListerWatcher, Reflector
from tests.extender.builders import node_json
from tests.extender.outlets.gate_states import closed, gate, gates, opened
from tools.fakes.api_server import FakeApiServer
from tools.kit.waiting import wait_until

NAMES = ["a", "b", "c"]
STATUS = "/status"
LEASES = "/leases"


class Replica:
    """An extender's writers, and its watch of the Nodes; `states` is its newest snapshot."""

    def __init__(self, api):
        self.states = gates(gate("health", **{name: opened() for name in NAMES}))
        client = Client(api.connection(), user_agent="t")
        fast = Outlets(NodeCondition(per_second=100), Events(per_second=100))
        self.writers = Writers(fast, client, gates=lambda: self.states)
        nodes = ListerWatcher(client, paths.nodes(), observed.Node)
        self._threads = [Reflector(nodes, self.writers.marks, name="nodes"), *self.writers.services]

    def show(self, **decisions):
        self.states = gates(gate("health", **({name: opened() for name in NAMES} | decisions)))

    def start(self):
        for thread in self._threads:
            thread.start()

    def stop(self):
        for thread in reversed(self._threads):
            thread.stop()

    def said(self, outlet):
        return self.writers.counts()[outlet][0]


@contextmanager
def running(api) -> Iterator[Replica]:
    replica = Replica(api)
    replica.start()
    try:
        yield replica
    finally:
        replica.stop()


@pytest.fixture
def api():
    with FakeApiServer() as server:
        for name in NAMES:
            server.put(node_json(name, Ready="True"))
        yield server


def statuses(api):
    found = {}
    for node in api.objects("Node"):
        conditions = {one["type"]: one["status"] for one in node["status"]["conditions"]}
        assert conditions["Ready"] == "True", "the kubelet's own is as it was"
        found[node["metadata"]["name"]] = conditions.get(contract.CONDITION_NODE_HEALTHY, "")
    return found


def wait_all(api, status, timeout_s=10.0):
    wait_until(lambda: set(statuses(api).values()) == {status}, lambda: statuses(api), timeout_s=timeout_s)


def patches(api):
    return [request for request in api.requests if request.method == "PATCH"]


def test_each_node_is_written_once_and_a_change_is_an_event(api):
    with running(api) as replica:
        wait_all(api, "True")
        assert (3, []) == (len(patches(api)), api.objects("Event"))
        replica.show(b=closed("missing"))
        wait_until(lambda: [event["reason"] for event in api.objects("Event")] == ["NodeClosed"], timeout_s=10)
        wait_until(lambda: {"a": "True", "b": "False", "c": "True"} == statuses(api), timeout_s=10)  # by another thread
        (event,) = api.objects("Event")
        assert ("default", "Node", "b", "uid-b") == (
            event["metadata"]["namespace"],
            *(event["involvedObject"][key] for key in ("kind", "name", "uid")),
        )


def test_of_two_replicas_one_writes_and_the_other_follows_at_its_end(api):
    with running(api) as first:
        wait_all(api, "True")
        with running(api) as second:
            time.sleep(0.5)
            assert (True, False, 0) == (
                first.writers.leads,
                second.writers.leads,
                second.said("nodeCondition")["written"],
            )
            first.stop()
            second.show(a=closed("missing"), b=closed("missing"), c=closed("missing"))
            wait_all(api, "False")
            wait_until(lambda: second.said("nodeCondition") == {"written": 3})


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        pytest.param({"status": 429, "retry_after": "1"}, "TooManyRequests", id="429 with Retry-After"),
        pytest.param({"status": 500, "reason": "InternalError"}, "ServerError", id="500"),
        pytest.param({"status": 503, "retry_after": "1"}, "ServerError", id="503 with Retry-After"),
    ],
)
def test_a_server_that_fails_is_asked_again_later(api, fault, cause):
    api.answer_next(method="PATCH", path=STATUS, times=2, **fault)
    with running(api) as replica:
        wait_all(api, "True", timeout_s=20)
        wait_until(
            lambda: replica.said("nodeCondition") == {"written": 3, cause: 2}, lambda: replica.said("nodeCondition")
        )


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"status": 409, "reason": "Conflict"}, id="409"),
        pytest.param({"status": 422, "reason": "Invalid"}, id="422"),
        pytest.param({"status": 403, "reason": "Forbidden"}, id="403 of a policy"),
    ],
)
def test_one_node_that_is_refused_keeps_no_other_waiting(api, fault):
    api.answer_next(method="PATCH", path="/nodes/b/status", times=1000, **fault)
    with running(api):
        wait_until(lambda: statuses(api) == {"a": "True", "b": "", "c": "True"}, lambda: statuses(api), timeout_s=10)
        time.sleep(1)
        assert 3 == len(patches(api))


def test_a_write_whose_answer_never_comes_is_given_up_and_made_again(api):
    api.stall_next(method="PATCH", path=STATUS)
    with running(api) as replica:
        wait_all(api, "True", timeout_s=20)
        wait_until(lambda: replica.said("nodeCondition") == {"written": 3, "DeadlineExceeded": 1})


def test_a_connection_that_is_reset_is_repaired(api):
    api.reset_next(method="PATCH", path=STATUS, times=2)
    with running(api):
        wait_all(api, "True", timeout_s=20)


def test_after_an_outage_the_newest_is_written_and_nothing_between(api):
    with running(api) as replica:
        wait_all(api, "True")
        api.refuse()
        before = len(patches(api))
        for word in ("missing", "unhealthy", "lost", "not ready"):
            replica.show(**dict.fromkeys(NAMES, closed(word)))
            time.sleep(1.2)
        api.listen()
        wait_all(api, "False", timeout_s=40)
        time.sleep(1)
        assert before + 3 == len(patches(api))


def test_without_the_right_to_the_lease_nobody_writes_and_a_stop_is_quick(api):
    api.answer_next(403, reason="Forbidden", path=LEASES, times=1000)
    with running(api) as replica:
        wait_until(lambda: replica.said("lease").get("Forbidden") == 1)
        time.sleep(1)
        assert (False, []) == (replica.writers.leads, patches(api))
        began = time.monotonic()
    assert time.monotonic() - began < 5


def test_a_replica_that_runs_on_after_the_removal_brings_nothing_back(api):
    """As uninstall.yml does it: the rights first, then what was written, the Lease last."""
    with running(api) as replica:
        wait_all(api, "True")
        wait_until(lambda: replica.writers.leads)
        api.answer_next(403, reason="Forbidden", path=LEASES, times=10_000)
        api.answer_next(403, reason="Forbidden", path=STATUS, times=10_000)
        for name in NAMES:
            api.put(node_json(name, Ready="True"))
        (lease,) = api.objects("Lease")
        api.delete("Lease", lease["metadata"]["name"], lease["metadata"]["namespace"])
        replica.show(a=closed("missing"))
        wait_until(lambda: not replica.writers.leads, "its end as the one that writes", timeout_s=40)
        before = len(patches(api))
        time.sleep(2)
        assert (before, [], {""}) == (len(patches(api)), api.objects("Lease"), set(statuses(api).values()))
