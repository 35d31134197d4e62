"""The bytes of Node and Lease: written as Go writes them, read with what is missing or foreign."""

import json
from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from agent.wire.lease import new_lease, parse_lease, renewed_lease
from agent.wire.model import LeaseSpec, Node, NodeAddress, NodeCondition, NodeInfo, NodeStatus
from agent.wire.node import parse_node, registration_patch, status_patch, write_node
from agent.wire.placement_model import Taint

NOW = 1_700_000_000.25
STATUS = NodeStatus(
    addresses=(NodeAddress("InternalIP", "127.20.1.1"), NodeAddress("Hostname", "node-1")),
    capacity={"cpu": "4"},
    allocatable={"cpu": "4"},
    info=NodeInfo(
        architecture="amd64",
        boot_id="boot",
        container_runtime_version="readygate-process://1",
        kernel_version="6.1.0",
        kubelet_version="v1.36.3-readygate",
        machine_id="machine",
        operating_system="linux",
        os_image="Debian",
        system_uuid="machine",
    ),
    conditions=(NodeCondition("Ready", "True", "KubeletReady", "it is", NOW, NOW - 60),),
    kubelet_port=10250,
)
OLD = replace(STATUS, allocatable={"cpu": "4", "gone": "1"})
STATUS_JSON = (
    '"status": {"addresses": [{"type": "InternalIP", "address": "127.20.1.1"}, {"type": "Hostname", "address":'
    ' "node-1"}], "capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}, "nodeInfo": {"architecture": "amd64",'
    ' "bootID": "boot", "containerRuntimeVersion": "readygate-process://1", "kernelVersion": "6.1.0",'
    ' "kubeProxyVersion": "", "kubeletVersion": "v1.36.3-readygate", "machineID": "machine", "operatingSystem":'
    ' "linux", "osImage": "Debian", "systemUUID": "machine"}, "conditions": [{"type": "Ready", "status": "True",'
    ' "reason": "KubeletReady", "message": "it is", "lastHeartbeatTime": "2023-11-14T22:13:20Z",'
    ' "lastTransitionTime": "2023-11-14T22:12:20Z"}], "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}'
)
PATCH_JSON = STATUS_JSON.replace('"node-1"}]', '"node-1"}, {"$patch": "replace"}]')
SPEC = LeaseSpec(holder_identity="node-1", duration_s=40, renew_time=NOW)
TIMES_JSON = '"leaseDurationSeconds": 40, "renewTime": "2023-11-14T22:13:20.250000Z"'
SPEC_JSON = f'"holderIdentity": "node-1", {TIMES_JSON}'
OWNER_JSON = ', "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "u"}]'


def lease_json(owner: str = "") -> str:
    return (
        '{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "node-1", "namespace":'
        f' "kube-node-lease"{owner}}}, "spec": {{{SPEC_JSON}}}}}'
    )


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(
            write_node(Node("node-1", labels={"zone": "a"}, status=STATUS)),
            '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "labels": {"zone": "a"}}, '
            f"{STATUS_JSON}}}",
            id="a new Node",
        ),
        pytest.param(status_patch(STATUS, STATUS, {}), f"{{{PATCH_JSON}}}", id="a patch of its status"),
        pytest.param(
            status_patch(STATUS, OLD, {"a": "b"}),
            f'{{"metadata": {{"labels": {{"a": "b"}}}}, {PATCH_JSON}}}'.replace(
                '"allocatable": {"cpu": "4"}', '"allocatable": {"cpu": "4", "gone": null}'
            ),
            id="a patch of its status with labels, where a resource has gone",
        ),
        pytest.param(
            registration_patch({"zone": "ä"}, {}, {}, {}),
            '{"metadata": {"labels": {"zone": "\\u00e4"}}}',
            id="a patch of its labels",
        ),
        pytest.param(
            registration_patch({}, {"a": None}, {"x": None}, {"y": "1"}),
            '{"metadata": {"annotations": {"a": null}}, '
            '"status": {"capacity": {"x": null}, "allocatable": {"y": "1"}}}',
            id="an annotation and a resource go",
        ),
        pytest.param(registration_patch({}, {}, {}, {}), "", id="nothing to put right"),
        pytest.param(new_lease(SPEC, Node("node-1", uid="u")), lease_json(OWNER_JSON), id="a Lease of its Node"),
        pytest.param(
            renewed_lease(
                parse_lease(b'{"metadata":{"labels":{"mine":"x"}},"spec":{"strategy":"Old"},"a":1}'), SPEC, None
            ),
            f'{{"metadata": {{"labels": {{"mine": "x"}}}}, "spec": {{"strategy": "Old", {TIMES_JSON}}}, "a": 1}}',
            id="a renewal keeps what others wrote",
        ),
        pytest.param(
            renewed_lease(parse_lease(b'{"spec":null}'), SPEC, None), f'{{"spec": {{{TIMES_JSON}}}}}', id="no holder"
        ),
        pytest.param(
            renewed_lease(parse_lease(lease_json().encode()), SPEC, Node("node-1", uid="u")),
            lease_json(OWNER_JSON),
            id="a renewal of a Lease without owner",
        ),
    ],
)
def test_bytes_on_the_wire(made: bytes, expected: str) -> None:
    assert expected == made.decode()


def test_what_was_written_reads_as_the_same() -> None:
    node = Node("node-1", labels={"zone": "a"}, status=STATUS)
    ready = replace(STATUS.conditions[0], last_heartbeat_time=NOW - 0.25, last_transition_time=NOW - 60.25)
    expected = replace(node, status=replace(STATUS, conditions=(ready,)))
    assert expected == parse_node(write_node(node)), "whole seconds"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param({}, Node(""), id="nothing"),
        pytest.param(
            {"metadata": {"name": "n", "uid": "u", "labels": None}, "status": None}, Node("n", "u"), id="null"
        ),
        pytest.param(
            {"spec": {"podCIDR": "x"}, "status": {"nodeInfo": {"swap": {"capacity": 0}}, "daemonEndpoints": {}}},
            Node(""),
            id="fields that we do not have",
        ),
        pytest.param(
            {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "lastTransitionTime": None}]}},
            Node("", status=NodeStatus(conditions=(NodeCondition("Ready", "Unknown"),))),
            id="a condition without times",
        ),
    ],
)
def test_reading_a_node(raw: object, expected: Node) -> None:
    assert expected == parse_node(json.dumps(raw).encode())


def test_a_lease_whose_spec_is_no_object_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        parse_lease(b'{"spec": []}')


@pytest.mark.parametrize("parse", [parse_node, parse_lease], ids=["Node", "Lease"])
@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"1", b"null"])
def test_what_is_no_object_is_refused(parse: Callable[[bytes], object], raw: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        parse(raw)


@pytest.mark.parametrize(
    ("supplemental_groups", "declared"),
    [
        pytest.param(None, (), id="nothing said of either"),
        pytest.param(False, (), id="no policy of supplemental groups"),
        pytest.param(True, ("A", "B"), id="both"),
    ],
)
def test_features_read_as_they_were_written(supplemental_groups: bool | None, declared: tuple[str, ...]) -> None:
    said = {"supplemental_groups_policy": supplemental_groups, "declared_features": declared}
    status = replace(STATUS, conditions=(), **said)
    assert status == parse_node(write_node(Node("n", status=status))).status
    gone = msgspec.json.decode(status_patch(STATUS, status, {}))["status"]
    assert [name for name in ("features", "declaredFeatures") if name in gone and gone[name] is None] == [
        *(["features"] if supplemental_groups is not None else []),
        *(["declaredFeatures"] if declared else []),
    ]


def test_that_it_is_cordoned_and_annotated_is_read() -> None:
    raw = b'{"metadata":{"annotations":{"a":"b"}},"spec":{"unschedulable":true}}'
    assert (True, {"a": "b"}) == (parse_node(raw).unschedulable, parse_node(raw).annotations)


def test_the_spec_of_a_node_is_written_and_read() -> None:
    node = Node("node-1", taints=(Taint("a", "b", "NoExecute"),), pod_cidrs=("10.0.0.0/24", "fd00::/64"), status=STATUS)
    assert (node.taints, node.pod_cidrs) == (
        parse_node(write_node(node)).taints,
        parse_node(write_node(node)).pod_cidrs,
    )
    assert json.loads(write_node(node))["spec"]["podCIDR"] == "10.0.0.0/24"
    assert "spec" not in json.loads(write_node(Node("node-1", status=STATUS)))
