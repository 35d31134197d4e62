"""Taints and pod CIDRs of a Node's spec; and the Event of a machine that was started again."""

from dataclasses import replace

import pytest

from agent.kubelet.events.event import WARNING, About, Event
from agent.kubelet.node.facts import reboot
from agent.kubelet.node.registration import NodeReporter
from agent.processes.command import RuntimeUnavailable
from agent.wire.placement_model import Taint
from kube.client import Client
from tests.agent.kubelet.node.test_facts import FACTS, NOTHING
from tools.fakes.api_server import FakeApiServer

GPU = Taint("gpu", "a100", "NoSchedule")
OUT = Taint("out-of-service", "", "NoExecute")


def test_n99_a_node_is_created_with_the_taints_and_the_addresses_of_pods_that_are_configured(
    api: FakeApiServer, client: Client
) -> None:
    facts = replace(FACTS, taints=(GPU, OUT), pod_cidr="127.20.1.0/24")
    NodeReporter(client, facts, list, update_s=10).register()
    assert api.get("Node", "node-1")["spec"] == {
        "taints": [
            {"key": "gpu", "value": "a100", "effect": "NoSchedule"},
            {"key": "out-of-service", "value": "", "effect": "NoExecute"},
        ],
        "podCIDR": "127.20.1.0/24",
        "podCIDRs": ["127.20.1.0/24"],
    }


def test_n99_a_node_that_exists_keeps_its_taints_and_addresses(api: FakeApiServer, client: Client) -> None:
    spec = {"taints": [{"key": "theirs", "effect": "NoExecute"}], "podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}
    api.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}, "spec": spec})
    reporter = NodeReporter(client, replace(FACTS, taints=(GPU,), pod_cidr="127.20.1.0/24"), list, update_s=10)
    reporter.register()
    reporter.report()
    assert spec == api.get("Node", "node-1")["spec"]


class Runtime:
    def __init__(self) -> None:
        self.given: list[str] = []
        self.away = False

    def __call__(self, cidr: str) -> None:
        self.given.append(cidr)
        if self.away:
            raise RuntimeUnavailable("away")


def put_cidrs(api: FakeApiServer, *cidrs: str) -> None:
    node = api.get("Node", "node-1")
    api.put({**node, "spec": {"podCIDR": cidrs[0], "podCIDRs": list(cidrs)}})


@pytest.fixture
def runtime() -> Runtime:
    return Runtime()


@pytest.fixture
def reporter(client: Client, runtime: Runtime) -> NodeReporter:
    return NodeReporter(client, FACTS, list, update_s=10, use_pod_cidr=runtime)


def test_n100_the_runtime_is_given_the_addresses_of_pods_once_and_a_change_is_written(
    api: FakeApiServer, reporter: NodeReporter, runtime: Runtime
) -> None:
    reporter.register()
    reporter.report()
    put_cidrs(api, "10.0.0.0/24")
    assert [True, False] == [reporter.report(), reporter.report()]
    put_cidrs(api, "10.0.0.0/24", "fd00::/64")
    assert [True, False] == [reporter.report(), reporter.report()]
    assert ["10.0.0.0/24", "10.0.0.0/24,fd00::/64"] == runtime.given


def test_n100_addresses_that_the_runtime_did_not_take_are_given_again(
    api: FakeApiServer, reporter: NodeReporter, runtime: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    reporter.register()
    put_cidrs(api, "10.0.0.0/24")
    runtime.away = True
    assert [True, True] == [reporter.report(), reporter.report()]
    assert ["away", "away"] == [record.error for record in caplog.records]
    runtime.away = False
    assert [True, False] == [reporter.report(), reporter.report()]
    assert ["10.0.0.0/24"] * 3 == runtime.given


def test_n100_addresses_of_pods_that_are_taken_away_are_no_change(
    api: FakeApiServer, reporter: NodeReporter, runtime: Runtime
) -> None:
    reporter.register()
    put_cidrs(api, "10.0.0.0/24")
    reporter.report()
    api.put({**api.get("Node", "node-1"), "spec": {}})
    assert (False, ["10.0.0.0/24"]) == (reporter.report(), runtime.given)


def test_n101_a_machine_that_was_started_again_is_told_of_once(api: FakeApiServer, client: Client) -> None:
    told: list[Event] = []
    info = {"bootID": "before", "machineID": "machine"}
    api.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}, "status": {"nodeInfo": info}})
    reporter = NodeReporter(client, FACTS, list, update_s=10, record=told.append)
    reporter.register()
    reporter.report()
    reporter.report()
    text = "Node node-1 has been rebooted, boot id: boot"
    assert Event(About("Node", "node-1"), WARNING, "NodeRebooted", text) == told[0]
    assert ["NodeRebooted"] == [event.reason for event in told if "Reboot" in event.reason]


@pytest.mark.parametrize("known", ["", "boot"])
def test_n101_a_node_that_is_new_or_was_seen_since_its_start_was_not_started_again(known: str) -> None:
    assert not reboot(FACTS, replace(NOTHING, info=replace(NOTHING.info, boot_id=known)))


def test_am7_the_node_that_pods_are_admitted_by(api: FakeApiServer, client: Client) -> None:
    reporter = NodeReporter(client, replace(FACTS, taints=(GPU,)), list, update_s=10)
    new = (reporter.known_node(), reporter.read_node())
    reporter.register()
    reporter.report()
    api.put({**api.get("Node", "node-1"), "spec": {"taints": [{"key": "new", "effect": "NoExecute"}]}})
    known, read = reporter.known_node(), reporter.read_node()
    api.answer_next(500, method="GET")
    assert [((GPU,), "4")] * 2 == [node and (node.taints, node.status.allocatable["cpu"]) for node in new]
    assert ((GPU,), (Taint("new", "", "NoExecute"),)) == (known.taints, read and read.taints)
    assert reporter.read_node() is None
