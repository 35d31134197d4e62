"""What the node says of itself: the setters of pkg/kubelet/nodestatus/setters.go."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.model import Node, NodeAddress, NodeCondition, NodeInfo, NodeStatus
from agent.node.facts import (
    NodeFacts,
    amount,
    changed,
    label_changes,
    new_node,
    node_status,
    not_ready_causes,
    pressure_changes,
    ready_status,
    required_labels,
)
from agent.node.found import Found
from agent.node.machine import Machine, machine

NOW = 1_700_000_000.0
FACTS = NodeFacts(
    name="node-1",
    address="127.20.1.1",
    capacity={"cpu": "4", "memory": "8Gi", "pods": "110"},
    labels={"zone": "a"},
    machine=Machine("amd64", "6.1.0", "Debian", "machine", "boot"),
    kubelet_version="v1.36.3-readygate",
)
NOTHING = NodeStatus()
SYSTEM = {"os": "linux", "arch": "amd64"}


def conditions(status: NodeStatus) -> dict[str, tuple[str, str, str]]:
    return {c.type: (c.status, c.reason, c.message) for c in status.conditions}


def with_ready(of: NodeStatus, **changes: str) -> NodeStatus:
    return replace(of, conditions=(*of.conditions[:-1], replace(of.conditions[-1], **changes)))


def test_n1_conditions_of_a_healthy_node() -> None:
    expected = {
        "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
    }
    assert expected == conditions(node_status(FACTS, NOTHING, [], NOW))


def test_ready_comes_last() -> None:
    assert node_status(FACTS, NOTHING, [], NOW).conditions[-1].type == "Ready"


@pytest.mark.parametrize(
    ("errors", "capacity", "expected"),
    [
        pytest.param(["a"], FACTS.capacity, "a", id="one error is plain"),
        pytest.param(["a", "b"], FACTS.capacity, "[a, b]", id="two are listed"),
        pytest.param(["a", "b", "a"], FACTS.capacity, "[a, b]", id="equal texts once"),
        pytest.param([], {"cpu": "4"}, "missing node capacity for resources: memory, pods", id="capacity is missing"),
    ],
)
def test_n5_n6_why_a_node_is_not_ready(errors: list[str], capacity: dict[str, str], expected: str) -> None:
    made = conditions(node_status(replace(FACTS, capacity=capacity), NOTHING, errors, NOW))["Ready"]
    assert ("False", "KubeletNotReady", expected) == made


@pytest.mark.parametrize(
    ("errors", "expected"),
    [pytest.param([], NOW, id="kept while the status stays"), pytest.param(["x"], NOW + 10, id="new when it changes")],
)
def test_n7_n9_transition_time_and_heartbeat(errors: list[str], expected: float) -> None:
    old = node_status(FACTS, NOTHING, [], NOW)
    new = node_status(FACTS, old, errors, NOW + 10).conditions[-1]
    assert (expected, NOW + 10) == (new.last_transition_time, new.last_heartbeat_time)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        pytest.param(("False", "Theirs", "kept"), ("Theirs", "kept"), id="kept while the status stays"),
        pytest.param(
            ("False", "", ""),
            ("", ""),
            id="kept also where there are none",
        ),
        pytest.param(
            ("True", "Theirs", "gone"),
            ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            id="ours when the status changes",
        ),
    ],
)
def test_n12_reason_and_message_of_a_pressure(before: tuple[str, str, str], expected: tuple[str, str]) -> None:
    old = NodeStatus(conditions=(NodeCondition("MemoryPressure", *before, last_transition_time=NOW),))
    made = node_status(FACTS, old, [], NOW).conditions[0]
    assert expected == (made.reason, made.message)


def by_server(status: NodeStatus) -> NodeStatus:
    """What the API server makes of it: other order, a condition of somebody else."""
    foreign = NodeCondition("readygate.dev/NodeHealthy", "False")
    return replace(status, conditions=(*reversed(status.conditions), foreign))


def test_n14_n16_n17_heartbeats_order_and_foreign_conditions_are_no_change() -> None:
    old = by_server(node_status(FACTS, NOTHING, [], NOW))
    assert not changed(old, node_status(FACTS, old, [], NOW + 10))


@pytest.mark.parametrize(
    ("written", "equal"),
    [
        ("8192Mi", "8Gi"),
        ("8589934592", "8Gi"),
        ("4000m", "4"),
        ("0.5", "500m"),
        ("1e3", "1k"),
        ("1.5Ki", "1536"),
        ("100u", "0.1m"),
    ],
)
def test_a_quantity_in_other_words_is_no_change(written: str, equal: str) -> None:
    facts = replace(FACTS, capacity={"memory": written, "cpu": "1", "pods": "1"})
    old = by_server(node_status(facts, NOTHING, [], NOW))
    old = replace(old, capacity={**old.capacity, "memory": equal}, allocatable={**old.allocatable, "memory": equal})
    assert not changed(old, node_status(facts, old, [], NOW))
    assert amount(written) == amount(equal) != amount("7")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"addresses": (NodeAddress("Hostname", "other"),)}, id="addresses"),
        pytest.param({"capacity": {**FACTS.capacity, "cpu": "1"}}, id="capacity"),
        pytest.param({"allocatable": {}}, id="allocatable"),
        pytest.param({"conditions": ()}, id="conditions"),
        pytest.param({"info": NodeInfo()}, id="info"),
    ],
)
def test_n18_n20_anything_else_is_a_change(change: dict[str, object]) -> None:
    old = by_server(node_status(FACTS, NOTHING, [], NOW))
    assert changed(replace(old, **change), node_status(FACTS, old, [], NOW))


@pytest.mark.parametrize(
    ("capacity", "allocatable", "expected"),
    [
        pytest.param({}, {}, {}, id="nothing of others"),
        pytest.param({"example.com/gpu": "2"}, {}, {"example.com/gpu": "2"}, id="what others advertise is had"),
        pytest.param({}, {"example.com/gpu": "2"}, {}, id="and goes with its capacity"),
        pytest.param({}, {"ephemeral-storage": "1Gi"}, {"ephemeral-storage": "1Gi"}, id="one of Kubernetes' own stays"),
    ],
)
def test_resources_that_others_advertise_stay_and_are_no_change(
    capacity: dict[str, str], allocatable: dict[str, str], expected: dict[str, str]
) -> None:
    old = replace(NOTHING, capacity=capacity, allocatable=allocatable)
    first = node_status(FACTS, old, [], NOW)
    assert ({**FACTS.capacity, **capacity}, {**FACTS.capacity, **expected}) == (first.capacity, first.allocatable)
    assert not changed(first, node_status(FACTS, first, [], NOW + 10)), "else it is written every ten seconds"


def test_a_transition_time_that_is_not_there_is_not_made_up() -> None:
    old = NodeStatus(conditions=(NodeCondition("Ready", "True"),))
    assert node_status(FACTS, old, [], NOW).conditions[-1].last_transition_time is None


def test_n19_a_readiness_that_somebody_else_wrote_is_a_change() -> None:
    """The node lifecycle controller sets Unknown when the node was silent."""
    old = with_ready(node_status(FACTS, NOTHING, [], NOW), status="Unknown", reason="NodeStatusUnknown")
    assert changed(old, node_status(FACTS, old, [], NOW))
    assert ready_status(old) == "Unknown"


def test_the_node_to_create() -> None:
    node = new_node(FACTS, [], NOW)
    assert {
        "zone": "a",
        "kubernetes.io/hostname": "node-1",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
    } == node.labels
    assert ("node-1", "True") == (node.name, ready_status(node.status))


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        pytest.param({"kubernetes.io/hostname": "node-1", "zone": "b"}, {}, id="an administrator's own"),
        pytest.param(
            {"kubernetes.io/hostname": "other"}, {"kubernetes.io/hostname": "node-1"}, id="a default one differs"
        ),
        pytest.param({"kubernetes.io/hostname": "node-1", "zone": "a", "mine": "x"}, {}, id="foreign ones stay"),
        pytest.param(
            {"kubernetes.io/hostname": "node-1", "topology.kubernetes.io/zone": "b"},
            {"topology.kubernetes.io/zone": None},
            id="one that is configured to be empty goes",
        ),
    ],
)
def test_labels_of_a_node_that_exists(present: dict[str, str], expected: dict[str, str | None]) -> None:
    system = {f"{of}kubernetes.io/{what}": name for of in ("", "beta.") for what, name in SYSTEM.items()}
    facts = replace(FACTS, labels={"zone": "a", "topology.kubernetes.io/zone": ""})
    assert expected == label_changes(facts, Node("node-1", labels={**system, **present}))


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        pytest.param({"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}, {}, id="there"),
        pytest.param({"kubernetes.io/os": "linux"}, {"kubernetes.io/arch": "amd64"}, id="one is missing"),
        pytest.param(
            {"kubernetes.io/os": "plan9", "kubernetes.io/arch": "amd64"}, {"kubernetes.io/os": "linux"}, id="other"
        ),
    ],
)
def test_labels_that_each_report_puts_right(present: dict[str, str], expected: dict[str, str]) -> None:
    assert expected == required_labels(FACTS, Node("node-1", labels=present))


def test_a_machine_that_cannot_be_read_is_empty(tmp_path: Path) -> None:
    made = machine(tmp_path)
    assert ("", "", "") == (made.os_image, made.machine_id, made.boot_id)


def test_the_name_of_the_system_is_read(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('ID=x\nPRETTY_NAME="Some Linux 1"\n')
    assert machine(tmp_path).os_image == "Some Linux 1"


@pytest.mark.parametrize(
    ("runtime_healthy", "events_unhealthy", "pods_healthy", "expected"),
    [
        pytest.param(True, "", True, [], id="nothing"),
        pytest.param(
            False, "pleg has yet to be successful", True,
            ["container runtime is down", "PLEG is not healthy: pleg has yet to be successful"],
            id="PL47 before the first list, in the kubelet's order",
        ),
        pytest.param(True, "", False, ["the pod loop does not progress"], id="the sync loop is stuck"),
    ],
)  # fmt: skip
def test_pl47_why_a_node_is_not_ready(
    runtime_healthy: bool, events_unhealthy: str, pods_healthy: bool, expected: list[str]
) -> None:
    assert expected == not_ready_causes(
        runtime_healthy=runtime_healthy, events_unhealthy=events_unhealthy, pods_healthy=pods_healthy
    )


def test_ep7_a_pressure_that_comes_or_goes_is_told() -> None:
    calm = node_status(FACTS, NodeStatus(), [], NOW)
    under = node_status(FACTS, calm, [], NOW, Found(pressures=frozenset({"MemoryPressure"})))
    changes = [pressure_changes(calm, under), pressure_changes(under, under), pressure_changes(under, calm)]
    assert [["NodeHasInsufficientMemory"], [], ["NodeHasSufficientMemory"]] == changes
