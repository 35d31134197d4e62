"""The Node object and its status. Pure: what is known of the machine and the time are arguments.

Mirrors the setters of pkg/kubelet/nodestatus/setters.go, v1.36.3, that a node without volumes and devices needs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.node.machine import Machine
from kube import contract
from kube.times import format_time, parse_time

Json = dict[str, Any]

RUNTIME_VERSION = "readygate-process://1"

LABEL_HOSTNAME = "kubernetes.io/hostname"
LABEL_OS = "kubernetes.io/os"
LABEL_ARCH = "kubernetes.io/arch"

NEEDED_CAPACITY = ("cpu", "memory", "pods")


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What does not change while the agent runs. `capacity`: resource name -> quantity."""

    name: str
    address: str
    capacity: Mapping[str, str]
    labels: Mapping[str, str]
    machine: Machine
    kubelet_version: str  # components compare it as a semantic version


def labels(facts: NodeFacts) -> dict[str, str]:
    return {
        **facts.labels,
        LABEL_HOSTNAME: facts.name,
        LABEL_OS: "linux",
        LABEL_ARCH: facts.machine.architecture,
    }


def node_object(facts: NodeFacts, errors: Sequence[str], wall: float) -> Json:
    """The Node to create."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": facts.name, "labels": labels(facts)},
        "status": node_status(facts, {}, errors, wall),
    }


def missing_labels(facts: NodeFacts, node: Json) -> dict[str, str]:
    """Labels that an existing Node lacks or has otherwise; empty values are never written."""
    present = node.get("metadata", {}).get("labels") or {}
    return {key: value for key, value in labels(facts).items() if value and present.get(key) != value}


def node_status(facts: NodeFacts, old: Json, errors: Sequence[str], wall: float) -> Json:
    """The status to report. `errors`: why the node is not ready, in kubelet's order; none makes it Ready."""
    before = {condition["type"]: condition for condition in old.get("conditions") or []}
    return {
        "addresses": [
            {"type": "InternalIP", "address": facts.address},
            {"type": "Hostname", "address": facts.name},
        ],
        "capacity": dict(facts.capacity),
        "allocatable": dict(facts.capacity),
        "nodeInfo": {
            "architecture": facts.machine.architecture,
            "bootID": facts.machine.boot_id,
            "containerRuntimeVersion": RUNTIME_VERSION,
            "kernelVersion": facts.machine.kernel,
            "kubeProxyVersion": "",
            "kubeletVersion": facts.kubelet_version,
            "machineID": facts.machine.machine_id,
            "operatingSystem": "linux",
            "osImage": facts.machine.os_image,
            "systemUUID": facts.machine.machine_id,
        },
        "conditions": [
            _pressure(before, "MemoryPressure", "HasSufficientMemory", "has sufficient memory available", wall),
            _pressure(before, "DiskPressure", "HasNoDiskPressure", "has no disk pressure", wall),
            _pressure(before, "PIDPressure", "HasSufficientPID", "has sufficient PID available", wall),
            _ready(before, (*errors, *_missing_capacity(facts)), wall),
        ],
    }


def changed(old: Json, new: Json) -> bool:
    """Do the statuses differ in what we report, heartbeat times and the order of conditions aside?"""
    return any(_comparable(key, old.get(key)) != _comparable(key, value) for key, value in new.items())


def ready_status(status: Json) -> str:
    """The status of the Ready condition, "" if there is none."""
    found = [c.get("status", "") for c in status.get("conditions") or [] if c.get("type") == contract.CONDITION_READY]
    return found[0] if found else ""


def _comparable(key: str, value: object) -> object:
    if key != "conditions" or not isinstance(value, list):
        # The server fills nodeInfo with fields of its own (swap); ours are what counts.
        return _info(value) if key == "nodeInfo" else value
    ours = ("MemoryPressure", "DiskPressure", "PIDPressure", contract.CONDITION_READY)
    words = ("type", "status", "reason", "message", "lastTransitionTime")
    return sorted([condition.get(word, "") for word in words] for condition in value if condition.get("type") in ours)


def _info(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {key: text for key, text in value.items() if text and key not in ("swap", "kubeProxyVersion")}


def _pressure(before: Mapping[str, Json], kind: str, reason: str, message: str, wall: float) -> Json:
    """A False pressure condition: this runtime limits nothing and measures nothing, so it never reports pressure."""
    return _condition(before.get(kind), kind, contract.STATUS_FALSE, f"Kubelet{reason}", f"kubelet {message}", wall)


def _ready(before: Mapping[str, Json], errors: Sequence[str], wall: float) -> Json:
    if not errors:
        return _condition(
            before.get(contract.CONDITION_READY),
            contract.CONDITION_READY,
            contract.STATUS_TRUE,
            "KubeletReady",
            "kubelet is posting ready status",
            wall,
        )
    once = list(dict.fromkeys(errors))
    message = once[0] if len(once) == 1 else f"[{', '.join(once)}]"
    return _condition(
        before.get(contract.CONDITION_READY),
        contract.CONDITION_READY,
        contract.STATUS_FALSE,
        "KubeletNotReady",
        message,
        wall,
    )


def _condition(before: Json | None, kind: str, status: str, reason: str, message: str, wall: float) -> Json:
    same = before is not None and before.get("status") == status
    since = parse_time(before.get("lastTransitionTime")) if same and before is not None else None
    if same and before is not None and kind != contract.CONDITION_READY:
        # Pressure setters write reason and message on a change of status only.
        reason, message = before.get("reason", reason), before.get("message", message)
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": format_time(wall),
        "lastTransitionTime": format_time(wall if since is None else since),
    }


def _missing_capacity(facts: NodeFacts) -> list[str]:
    missing = [name for name in NEEDED_CAPACITY if name not in facts.capacity]
    return [f"missing node capacity for resources: {', '.join(missing)}"] if missing else []
