"""Node: Kubernetes JSON <-> model. What is written are the labels, addresses and conditions that we own."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from agent.wire import model
from agent.wire.placement_model import Taint
from kube.contract import CONDITION_READY
from kube.objects import BareMeta, Condition
from kube.times import format_time, parse_time

Json = dict[str, Any]


class _Address(msgspec.Struct, rename="camel"):
    type: str = ""
    address: str = ""


class _Swap(msgspec.Struct):
    capacity: int | None = None


class _Image(msgspec.Struct, rename="camel"):
    names: list[str] | None = None
    size_bytes: int = 0


class _HandlerFeatures(msgspec.Struct, rename="camel"):
    recursive_read_only_mounts: bool | None = None
    user_namespaces: bool | None = None


class _Handler(msgspec.Struct, rename="camel"):
    name: str = ""
    features: _HandlerFeatures | None = None


class _Info(msgspec.Struct, rename="camel"):
    architecture: str = ""
    boot_id: str = msgspec.field(default="", name="bootID")
    container_runtime_version: str = ""
    kernel_version: str = ""
    kubelet_version: str = ""
    machine_id: str = msgspec.field(default="", name="machineID")
    operating_system: str = ""
    os_image: str = ""
    system_uuid: str = msgspec.field(default="", name="systemUUID")
    swap: _Swap | None = None


class _Endpoint(msgspec.Struct):
    Port: int = 0


class _Endpoints(msgspec.Struct, rename="camel"):
    kubelet_endpoint: _Endpoint | None = None


class _Features(msgspec.Struct, rename="camel"):
    supplemental_groups_policy: bool | None = None


class _Status(msgspec.Struct, rename="camel"):
    addresses: list[_Address] | None = None
    capacity: dict[str, str] | None = None
    allocatable: dict[str, str] | None = None
    node_info: _Info | None = None
    conditions: list[Condition] | None = None
    images: list[_Image] | None = None
    runtime_handlers: list[_Handler] | None = None
    volumes_in_use: list[str] | None = None
    features: _Features | None = None
    declared_features: list[str] | None = None
    daemon_endpoints: _Endpoints | None = None


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class _Taint(msgspec.Struct):
    key: str = ""
    value: str = ""
    effect: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    unschedulable: bool | None = None
    taints: list[_Taint] | None = None
    pod_cidrs: list[str] | None = msgspec.field(name="podCIDRs", default=None)


class _Node(msgspec.Struct, rename="camel"):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec | None = None
    status: _Status | None = None


_decoder = msgspec.json.Decoder(_Node)


def parse_node(raw: bytes) -> model.Node:
    """A Node from its JSON. Raises msgspec.DecodeError (or its ValidationError) if it is not one."""
    wire = _decoder.decode(raw)
    spec, status = wire.spec or _Spec(), wire.status or _Status()
    info = status.node_info or _Info()
    return model.Node(
        name=wire.metadata.name,
        uid=wire.metadata.uid,
        labels=wire.metadata.labels or {},
        annotations=wire.metadata.annotations or {},
        unschedulable=bool(spec.unschedulable),
        is_being_deleted=wire.metadata.deletion_timestamp is not None,
        taints=tuple(Taint(t.key, t.value, t.effect) for t in spec.taints or ()),
        pod_cidrs=tuple(spec.pod_cidrs or ()),
        status=model.NodeStatus(
            addresses=tuple(model.NodeAddress(a.type, a.address) for a in status.addresses or ()),
            capacity=status.capacity or {},
            allocatable=status.allocatable or {},
            info=_read_info(info),
            conditions=tuple(_condition(c) for c in status.conditions or ()),
            images=tuple(model.NodeImage(tuple(i.names or ()), i.size_bytes) for i in status.images or ()),
            runtime_handlers=tuple(_handler(h) for h in status.runtime_handlers or ()),
            volumes_in_use=tuple(status.volumes_in_use or ()),
            supplemental_groups_policy=status.features.supplemental_groups_policy if status.features else None,
            declared_features=tuple(status.declared_features or ()),
            kubelet_port=_port(status.daemon_endpoints),
        ),
    )


def write_node(node: model.Node) -> bytes:
    """The body that creates the Node."""
    taints = [{"key": t.key, "value": t.value, "effect": t.effect} for t in node.taints]
    cidrs = {"podCIDR": node.pod_cidrs[0], "podCIDRs": list(node.pod_cidrs)} if node.pod_cidrs else {}
    spec = {**({"taints": taints} if taints else {}), **cidrs}
    return _encode(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": node.name,
                "labels": dict(node.labels),
                **({"annotations": dict(node.annotations)} if node.annotations else {}),
            },
            **({"spec": spec} if spec else {}),
            "status": _write_status(node.status),
        }
    )


Changes = Mapping[str, str | None]
"""None takes one away."""


def registration_patch(labels: Changes, annotations: Changes, capacity: Changes, allocatable: Changes) -> bytes:
    """The strategic merge patch of the sub-resource `status` that takes a Node over; empty where it is as it should."""
    metadata = {"labels": dict(labels), "annotations": dict(annotations)}
    status = {"capacity": dict(capacity), "allocatable": dict(allocatable)}
    parts = {"metadata": metadata, "status": status}
    changes = {part: {k: v for k, v in of.items() if v} for part, of in parts.items()}
    return _encode({part: of for part, of in changes.items() if of}) if any(changes.values()) else b""


def status_patch(status: model.NodeStatus, old: model.NodeStatus, labels: Mapping[str, str]) -> bytes:
    """The strategic merge patch of the sub-resource `status`, which may put in labels too. Addresses are replaced as a
    whole: merged by type, one that is gone would stay."""
    written = _write_status(status)
    written["addresses"].append({"$patch": "replace"})
    written |= {name: None for name in _write_of_runtime(old) if name not in written}
    written["allocatable"] |= dict.fromkeys(old.allocatable.keys() - status.allocatable.keys())
    return _encode({**({"metadata": {"labels": dict(labels)}} if labels else {}), "status": written})


def _port(endpoints: _Endpoints | None) -> int:
    return endpoints.kubelet_endpoint.Port if endpoints and endpoints.kubelet_endpoint else 0


def _read_info(wire: _Info) -> model.NodeInfo:
    fields = msgspec.structs.asdict(wire)
    swap = fields.pop("swap")
    return model.NodeInfo(**fields, swap_bytes=(swap and swap.capacity) or 0)


def _handler(wire: _Handler) -> model.NodeRuntimeHandler:
    features = wire.features or _HandlerFeatures()
    return model.NodeRuntimeHandler(
        wire.name, bool(features.recursive_read_only_mounts), bool(features.user_namespaces)
    )


def _condition(wire: Condition) -> model.NodeCondition:
    return model.NodeCondition(
        type=wire.type,
        status=wire.status,
        reason=wire.reason,
        message=wire.message,
        last_heartbeat_time=parse_time(wire.last_heartbeat_time),
        last_transition_time=parse_time(wire.last_transition_time),
    )


def _write_status(status: model.NodeStatus) -> Json:
    return {
        "addresses": [{"type": a.type, "address": a.address} for a in status.addresses],
        "capacity": dict(status.capacity),
        "allocatable": dict(status.allocatable),
        "nodeInfo": _write_info(status.info),
        "conditions": [_write_condition(c) for c in status.conditions],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": status.kubelet_port}},
        **_write_of_runtime(status),
    }


def _write_of_runtime(status: model.NodeStatus) -> Json:
    """Without what there is nothing of."""
    handlers = [
        {
            "name": handler.name,
            "features": {
                "recursiveReadOnlyMounts": handler.recursive_read_only_mounts,
                "userNamespaces": handler.user_namespaces,
            },
        }
        for handler in status.runtime_handlers
    ]
    written = {
        "images": [{"names": list(image.names), "sizeBytes": image.size_bytes} for image in status.images],
        "runtimeHandlers": handlers,
        "volumesInUse": list(status.volumes_in_use),
        "declaredFeatures": list(status.declared_features),
    }
    if status.supplemental_groups_policy is not None:
        written["features"] = {"supplementalGroupsPolicy": status.supplemental_groups_policy}
    return {name: items for name, items in written.items() if items}


def _write_info(info: model.NodeInfo) -> Json:
    return {
        "architecture": info.architecture,
        "bootID": info.boot_id,
        "containerRuntimeVersion": info.container_runtime_version,
        "kernelVersion": info.kernel_version,
        "kubeProxyVersion": "",  # deprecated, but Go writes it
        "kubeletVersion": info.kubelet_version,
        "machineID": info.machine_id,
        "operatingSystem": info.operating_system,
        "osImage": info.os_image,
        "systemUUID": info.system_uuid,
        **({"swap": {"capacity": info.swap_bytes}} if info.swap_bytes else {}),
    }


def _write_condition(condition: model.NodeCondition) -> Json:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastHeartbeatTime": _time_or_null(condition.last_heartbeat_time),
        "lastTransitionTime": _time_or_null(condition.last_transition_time),
    }


def _time_or_null(time_s: float | None) -> str | None:
    return None if time_s is None else format_time(time_s)


def _encode(value: Json) -> bytes:
    return json.dumps(value).encode()


class _SaidStatus(msgspec.Struct, frozen=True):
    conditions: list[Condition] | None = None


class NodeSaid(msgspec.Struct, frozen=True):
    """A Node, as far as what its kubelet says of it goes."""

    metadata: BareMeta
    status: _SaidStatus = _SaidStatus()

    @property
    def ready(self) -> tuple[str, str]:
        """Status and message of its Ready; empty where it has none."""
        for condition in self.status.conditions or ():
            if condition.type == CONDITION_READY:
                return condition.status, condition.message
        return "", ""
