"""What the node says of itself: the setters of pkg/kubelet/nodestatus/setters.go."""

import json
from dataclasses import replace

import pytest

from agent.node.facts import (
    NodeFacts,
    changed,
    missing_labels,
    node_object,
    node_status,
    ready_status,
)
from agent.node.machine import Machine, machine

NOW = 1_700_000_000.0
THEN = "2023-11-14T22:13:20Z"
LATER = "2023-11-14T22:13:30Z"
FACTS = NodeFacts(
    name="node-1",
    address="127.20.1.1",
    capacity={"cpu": "4", "memory": "8Gi", "pods": "110"},
    labels={"zone": "a"},
    machine=Machine("amd64", "6.1.0", "Debian", "machine", "boot"),
    kubelet_version="v1.36.3-readygate",
)


def conditions(status):
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in status["conditions"]}


def test_conditions_of_a_healthy_node():
    expected = {
        "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
    }
    assert expected == conditions(node_status(FACTS, {}, [], NOW))


def test_ready_comes_last():
    assert node_status(FACTS, {}, [], NOW)["conditions"][-1]["type"] == "Ready"


@pytest.mark.parametrize(
    ("errors", "capacity", "expected"),
    [
        pytest.param(["a"], FACTS.capacity, "a", id="one error is plain"),
        pytest.param(["a", "b"], FACTS.capacity, "[a, b]", id="two are listed"),
        pytest.param(["a", "b", "a"], FACTS.capacity, "[a, b]", id="equal texts once"),
        pytest.param([], {"cpu": "4"}, "missing node capacity for resources: memory, pods", id="capacity is missing"),
    ],
)
def test_why_a_node_is_not_ready(errors, capacity, expected):
    facts = replace(FACTS, capacity=capacity)
    made = conditions(node_status(facts, {}, errors, NOW))["Ready"]
    assert ("False", "KubeletNotReady", expected) == made


@pytest.mark.parametrize(
    ("errors", "expected"),
    [pytest.param([], THEN, id="kept while the status stays"), pytest.param(["x"], LATER, id="new when it changes")],
)
def test_transition_time_and_heartbeat(errors, expected):
    old = node_status(FACTS, {}, [], NOW)
    new = node_status(FACTS, old, errors, NOW + 10)["conditions"][-1]
    assert (expected, LATER) == (new["lastTransitionTime"], new["lastHeartbeatTime"])


def by_server(status):
    """What the API server makes of it: other order, fields of its own."""
    copy = json.loads(json.dumps(status))
    copy["conditions"].reverse()
    copy["conditions"].append({"type": "readygate.dev/NodeHealthy", "status": "False"})
    copy["nodeInfo"]["swap"] = {"capacity": 0}
    copy["daemonEndpoints"] = {"kubeletEndpoint": {"Port": 0}}
    return copy


def test_heartbeats_order_and_foreign_fields_are_no_change():
    old = by_server(node_status(FACTS, {}, [], NOW))
    assert not changed(old, node_status(FACTS, old, [], NOW + 10))


@pytest.mark.parametrize(
    ("key", "value"),
    [("addresses", []), ("capacity", {"cpu": "1"}), ("allocatable", {}), ("conditions", []), ("nodeInfo", {})],
)
def test_anything_else_is_a_change(key, value):
    old = by_server(node_status(FACTS, {}, [], NOW))
    assert changed({**old, key: value}, node_status(FACTS, old, [], NOW))


def test_a_readiness_that_somebody_else_wrote_is_a_change():
    """The node lifecycle controller sets Unknown when the node was silent."""
    old = node_status(FACTS, {}, [], NOW)
    old["conditions"][-1].update(status="Unknown", reason="NodeStatusUnknown")
    assert changed(old, node_status(FACTS, old, [], NOW))
    assert ready_status(old) == "Unknown"


def test_the_node_to_create():
    node = node_object(FACTS, [], NOW)
    assert {
        "zone": "a",
        "kubernetes.io/hostname": "node-1",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    } == node["metadata"]["labels"]
    assert ("node-1", "True") == (node["metadata"]["name"], ready_status(node["status"]))


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        pytest.param({"kubernetes.io/hostname": "node-1", "zone": "b"}, {"zone": "a"}, id="differs"),
        pytest.param({"kubernetes.io/hostname": "node-1", "zone": "a", "mine": "x"}, {}, id="foreign ones stay"),
    ],
)
def test_labels_of_a_node_that_exists(present, expected):
    node = {"metadata": {"labels": {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **present}}}
    assert expected == missing_labels(FACTS, node)


def test_a_machine_that_cannot_be_read_is_empty(tmp_path):
    made = machine(tmp_path)
    assert ("", "", "") == (made.os_image, made.machine_id, made.boot_id)


def test_the_name_of_the_system_is_read(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('ID=x\nPRETTY_NAME="Some Linux 1"\n')
    assert machine(tmp_path).os_image == "Some Linux 1"
