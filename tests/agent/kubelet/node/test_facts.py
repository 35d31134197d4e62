"""What the node says of itself: the setters of pkg/kubelet/nodestatus/setters.go."""

from dataclasses import replace

import pytest

from agent.kubelet.node.facts import (
    ATTACHES,
    NodeFacts,
    amount,
    annotation_changes,
    changed,
    in_order,
    label_changes,
    new_node,
    node_status,
    other_causes,
    pressure_changes,
    ready_status,
    required_labels,
    resource_changes,
)
from agent.kubelet.node.machine import Machine
from agent.kubelet.node.observed import Observed
from agent.wire.model import Node, NodeAddress, NodeCondition, NodeInfo, NodeStatus
from agent.wire.node import parse_node
from tools.kit.cases import cases

NOW = 1_700_000_000.0
FACTS = NodeFacts(
    name="node-1",
    address="127.20.1.1",
    capacity={"cpu": "4", "memory": "8Gi", "pods": "110", "ephemeral-storage": "10Gi"},
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


@cases(
    "errors, capacity, expected",
    ("one error is plain", ["a"], FACTS.capacity, "a"),
    ("two are listed", ["a", "b"], FACTS.capacity, "[a, b]"),
    ("equal texts once", ["a", "b", "a"], FACTS.capacity, "[a, b]"),
    ("N36 no capacity", [], {"cpu": "4"}, "missing node capacity for resources: memory, pods, ephemeral-storage"),
    ("capacity is last", ["a"], {}, "[a, missing node capacity for resources: cpu, memory, pods, ephemeral-storage]"),
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


SUFFICIENT = ("KubeletHasSufficientMemory", "kubelet has sufficient memory available")


@cases(
    "before, expected",
    ("kept while the status stays", ("False", "Theirs", "kept"), ("Theirs", "kept")),
    ("kept also where there are none", ("False", "", ""), ("", "")),
    ("ours when the status changes", ("True", "Theirs", "gone"), SUFFICIENT),
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
        ("k", "0"),
        (".", "0"),
        ("-Ki", "0"),
        ("e3", "0"),
        ("1e-20", "1n"),
        ("1e0002", "100"),
        ("9999Ei", "9223372036854775807"),
    ],
)
def test_n106_a_quantity_in_other_words_is_no_change(written: str, equal: str) -> None:
    facts = replace(FACTS, capacity={"memory": written, "cpu": "1", "pods": "1"})
    old = by_server(node_status(facts, NOTHING, [], NOW))
    old = replace(old, capacity={**old.capacity, "memory": equal}, allocatable={**old.allocatable, "memory": equal})
    assert not changed(old, node_status(facts, old, [], NOW))
    assert amount(written) == amount(equal) != amount("7")


@pytest.mark.parametrize("text", ["", " ", "1e", "1K", "1e1000", "1e-1000", "Ei", "-.Pi", "e-10", "--1", "\u0663"])
def test_n106_what_is_no_quantity_is_its_text(text: str) -> None:
    assert text == amount(text)


def test_a_quantity_of_five_thousand_figures_is_its_text() -> None:
    assert "9" * 5000 == amount("9" * 5000)


CALM = node_status(FACTS, NOTHING, [], NOW)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(NOTHING, NOTHING, False, id="N32 N34 nothing and nothing"),
        pytest.param(replace(CALM, conditions=()), CALM, True, id="N33 no conditions and some"),
        pytest.param(parse_node(b'{"status":{"phase":"Running"}}').status, NOTHING, False, id="N35 a phase"),
    ],
)
def test_what_is_a_change(old: NodeStatus, new: NodeStatus, expected: bool) -> None:
    assert expected == changed(old, new)


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
        pytest.param({}, {"attachable-x": "1"}, {"attachable-x": "1"}, id="one of Kubernetes' own stays"),
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


ZONE = "topology.kubernetes.io/zone"


@cases(
    "present, expected",
    ("an administrator's own", {"kubernetes.io/hostname": "node-1", "zone": "b"}, {}),
    ("a default one differs", {"kubernetes.io/hostname": "other"}, {"kubernetes.io/hostname": "node-1"}),
    ("foreign ones stay", {"kubernetes.io/hostname": "node-1", "zone": "a", "mine": "x"}, {}),
    ("an empty one goes", {"kubernetes.io/hostname": "node-1", ZONE: "b"}, {ZONE: None}),
)
def test_labels_of_a_node_that_exists(present: dict[str, str], expected: dict[str, str | None]) -> None:
    system = {f"{of}kubernetes.io/{what}": name for of in ("", "beta.") for what, name in SYSTEM.items()}
    facts = replace(FACTS, labels={"zone": "a", ZONE: ""})
    assert expected == label_changes(facts, Node("node-1", labels={**system, **present}))


@cases(
    "present, expected",
    ("there", {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}, {}),
    ("one is missing", {"kubernetes.io/os": "linux"}, {"kubernetes.io/arch": "amd64"}),
    ("other", {"kubernetes.io/os": "plan9", "kubernetes.io/arch": "amd64"}, {"kubernetes.io/os": "linux"}),
)
def test_labels_that_each_report_puts_right(present: dict[str, str], expected: dict[str, str]) -> None:  # CM56
    assert expected == required_labels(FACTS, Node("node-1", labels=present))


@cases(
    "events_unhealthy, pods_healthy, expected",
    ("nothing", "", True, []),
    ("PL47 no list", "pleg has yet to be successful", True, ["PLEG is not healthy: pleg has yet to be successful"]),
    ("the sync loop is stuck", "", False, ["the pod loop does not progress"]),
)
def test_pl47_what_a_kubelet_names_with_its_runtime(
    events_unhealthy: str, pods_healthy: bool, expected: list[str]
) -> None:
    assert expected == other_causes(events_unhealthy=events_unhealthy, pods_healthy=pods_healthy)


def test_pl54_a_full_channel_of_events_is_named_behind_the_lists() -> None:
    said = other_causes(events_unhealthy="a", events_full="b", pods_healthy=True)
    assert ["PLEG is not healthy: a", "EventedPLEG is not healthy: b"] == said


@cases(
    "errors, soft, expected",
    ("N2 a soft requirement", [], "foo", ("True", "kubelet is posting ready status. WARNING: foo")),
    ("one beside a fault", ["a"], "foo", ("False", "a. WARNING: foo")),
    ("N3-N4 an error of the network", in_order(network=["no network"]), "", ("False", "no network")),
    ("N5 causes have an order", in_order(network=["b"], runtime=["a"]), "", ("False", "[a, b]")),
)
def test_what_readiness_is_made_of(errors: list[str], soft: str, expected: tuple[str, str]) -> None:
    facts = replace(FACTS, machine=replace(FACTS.machine, soft_requirements=soft))
    status, _, message = conditions(node_status(facts, NOTHING, errors, NOW))["Ready"]
    assert expected == (status, message)


@pytest.mark.parametrize(
    ("attaches", "present", "expected"),
    [
        pytest.param(False, {ATTACHES: "true", "theirs": "x"}, {ATTACHES: None}, id="N62 N63 it goes"),
        pytest.param(True, {"theirs": "x"}, {ATTACHES: "true"}, id="N64 it comes"),
        pytest.param(True, {ATTACHES: "false"}, {ATTACHES: "true"}, id="N64 it is put right"),
        pytest.param(True, {ATTACHES: "true"}, {}, id="it is there"),
        pytest.param(False, {}, {}, id="it is not"),
    ],
)
def test_who_attaches_volumes(attaches: bool, present: dict[str, str], expected: dict[str, str | None]) -> None:
    facts = replace(FACTS, attaches=attaches)
    assert expected == annotation_changes(facts, Node("node-1", annotations=present))
    assert ({ATTACHES: "true"} if attaches else {}) == new_node(facts, [], NOW).annotations


@pytest.mark.parametrize(
    ("huge", "expected"),
    [
        pytest.param({"hugepages-2Mi": "1Gi", "hugepages-1Gi": "2Gi"}, "5368709120", id="N95 they are no memory"),
        pytest.param({"hugepages-2Mi": "0"}, "8Gi", id="none of them are set aside"),
        pytest.param({"hugepages-1Gi": "9Gi"}, "0", id="never less than nothing"),
    ],
)
def test_what_huge_pages_leave_of_memory(huge: dict[str, str], expected: str) -> None:
    made = node_status(replace(FACTS, capacity={**FACTS.capacity, **huge}), NOTHING, [], NOW)
    assert {**FACTS.capacity, **huge, "memory": expected} == made.allocatable


OURS = {"memory": "8Gi", "hugepages-2Mi": "4Mi"}
THEIRS = {"memory": "4Gi", "hugepages-2Mi": "4096Ki", "example.com/gpu": "1"}


GONE_AND_CHANGED = ({"hugepages-1Gi": None}, {"hugepages-1Gi": None, "hugepages-2Mi": "4Mi"})
TWO_SIZES, SMALLER = {**THEIRS, "hugepages-1Gi": "1Gi"}, {**THEIRS, "hugepages-2Mi": "1Mi"}


@cases(
    "capacity, allocatable, expected",
    ("as they should be", THEIRS, THEIRS, ({}, {})),
    ("none at all: all of them", {}, {}, (OURS, OURS)),
    ("N95 a new size", {"memory": "4Gi"}, {"memory": "4Gi"}, ({"hugepages-2Mi": "4Mi"}, {"hugepages-2Mi": "4Mi"})),
    ("a size is gone, another was changed", TWO_SIZES, SMALLER, GONE_AND_CHANGED),
)
def test_resources_of_a_node_that_exists(
    capacity: dict[str, str], allocatable: dict[str, str], expected: tuple[object, object]
) -> None:
    new, old = NodeStatus(capacity=OURS, allocatable=OURS), NodeStatus(capacity=capacity, allocatable=allocatable)
    assert expected == resource_changes(new, old)


def test_the_port_of_a_kubelet_that_was_here_before_goes() -> None:
    old = replace(node_status(FACTS, NOTHING, [], NOW), kubelet_port=10250)
    new = node_status(FACTS, old, [], NOW)
    assert (0, True) == (new.kubelet_port, changed(old, new))


def test_ep7_a_pressure_that_comes_or_goes_is_told() -> None:
    calm = node_status(FACTS, NodeStatus(), [], NOW)
    under = node_status(FACTS, calm, [], NOW, Observed(pressures=frozenset({"MemoryPressure"})))
    changes = [pressure_changes(calm, under), pressure_changes(under, under), pressure_changes(under, calm)]
    assert [["NodeHasInsufficientMemory"], [], ["NodeHasSufficientMemory"]] == changes
