"""The Node object and its status. Pure: what is known of the machine and the time are arguments.

Mirrors the setters of pkg/kubelet/nodestatus/setters.go, v1.36.3, that a node without devices needs.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from agent.kubelet.node.machine import Machine, quantity
from agent.kubelet.node.observed import NOTHING, Observed, reported_images
from agent.wire.model import Node, NodeAddress, NodeCondition, NodeInfo, NodeStatus
from agent.wire.placement_model import Taint
from kube.contract import CONDITION_READY, STATUS_FALSE, STATUS_TRUE

RUNTIME_VERSION = "readygate-process://1"

LABEL_HOSTNAME = "kubernetes.io/hostname"
LABEL_OS = "kubernetes.io/os"
LABEL_ARCH = "kubernetes.io/arch"
LINUX = "linux"
LABEL_BETA_OS = "beta.kubernetes.io/os"
LABEL_BETA_ARCH = "beta.kubernetes.io/arch"
# Kept true on a Node that exists (updateDefaultLabels of kubelet_node_status.go).
DEFAULT_LABELS = frozenset(
    {
        LABEL_HOSTNAME,
        LABEL_OS,
        LABEL_ARCH,
        LABEL_BETA_OS,
        LABEL_BETA_ARCH,
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/windows-build",
    }
)

CONDITION_MEMORY_PRESSURE = "MemoryPressure"
CONDITION_DISK_PRESSURE = "DiskPressure"
CONDITION_PID_PRESSURE = "PIDPressure"
# By type: reason and message, without pressure and with it.
PRESSURES = {
    CONDITION_MEMORY_PRESSURE: (
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    ),
    CONDITION_DISK_PRESSURE: (
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
    ),
    CONDITION_PID_PRESSURE: (
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
    ),
}
# By type: the events, without pressure and with it.
EVENTS = {
    CONDITION_MEMORY_PRESSURE: ("NodeHasSufficientMemory", "NodeHasInsufficientMemory"),
    CONDITION_DISK_PRESSURE: ("NodeHasNoDiskPressure", "NodeHasDiskPressure"),
    CONDITION_PID_PRESSURE: ("NodeHasSufficientPID", "NodeHasInsufficientPID"),
}
OURS = (CONDITION_MEMORY_PRESSURE, CONDITION_DISK_PRESSURE, CONDITION_PID_PRESSURE, CONDITION_READY)

_QUANTITY = re.compile(r"([+-]?)([0-9]*)\.?([0-9]*)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]+))?")
_SUFFIXES = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1)}
_SUFFIXES |= {letter: Fraction(1000 ** (power + 1)) for power, letter in enumerate("kMGTPE")}
_SUFFIXES |= {f"{letter}i": Fraction(1024 ** (power + 1)) for power, letter in enumerate("KMGTPE")}
YOUNG = ("runtime_handlers", "supplemental_groups_policy", "declared_features")
"""Of a Node's status, what API servers have only known since 1.30."""
ATTACHES = "volumes.kubernetes.io/controller-managed-attach-detach"
NEEDED_CAPACITY = ("cpu", "memory", "pods", "ephemeral-storage")
HUGE_PAGES = "hugepages-"
LONGEST_QUANTITY = 100  # the API server writes none of half of that
_LARGEST_EXPONENT = 999  # Go calculates for hours with larger ones
_NANO = 10**9
_NOT_ALONE, _NOT_BELOW = ("Pi", "Ei"), -9  # where Go calculates with big numbers, which have digits
_LARGEST = 2**63 - 1  # of those with a suffix of powers of two


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What does not change while the agent runs. `capacity`: resource name -> quantity. `declared_features`: of the
    kubelet, which pods may need to be scheduled to the node; None: what the Node says of them stays. `attaches`: does a
    controller attach the node's volumes? `kubelet_port`: of the API of a kubelet's own; 0: there is none.
    `reserved`: what pods may not have, by resource. `taints`, `pod_cidr`: of a Node that the agent creates."""

    name: str
    address: str
    capacity: Mapping[str, str]
    labels: Mapping[str, str]
    machine: Machine
    kubelet_version: str  # components compare it as a semantic version
    declared_features: tuple[str, ...] | None = None
    attaches: bool = False
    kubelet_port: int = 0
    reserved: Mapping[str, Fraction] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    pod_cidr: str = ""


def labels(facts: NodeFacts) -> dict[str, str]:
    """Those to register with: configured ones come before ours."""
    system = {LABEL_OS: LINUX, LABEL_BETA_OS: LINUX}
    processor = {LABEL_ARCH: facts.machine.architecture, LABEL_BETA_ARCH: facts.machine.architecture}
    return {LABEL_HOSTNAME: facts.name, **system, **processor, **facts.labels}


def new_node(facts: NodeFacts, errors: Sequence[str], wall: float, found: Observed = NOTHING) -> Node:
    """The Node to create."""
    status = node_status(facts, NodeStatus(), errors, wall, found)
    return Node(
        facts.name,
        labels=labels(facts),
        annotations=_annotations(facts),
        taints=facts.taints,
        pod_cidrs=(facts.pod_cidr,) if facts.pod_cidr else (),
        status=status,
    )


def label_changes(facts: NodeFacts, node: Node) -> dict[str, str | None]:
    """Of DEFAULT_LABELS those that an existing Node lacks or has otherwise; None: one that is configured to be empty
    goes. All others are the administrator's once the Node is there."""
    ours = {key: value for key, value in labels(facts).items() if key in DEFAULT_LABELS}
    if all(node.labels.get(key, "") == value for key, value in ours.items()):
        return {}
    return {key: value or None for key, value in ours.items() if node.labels.get(key) != (value or None)}


def _annotations(facts: NodeFacts) -> dict[str, str]:
    return {ATTACHES: "true"} if facts.attaches else {}


def annotation_changes(facts: NodeFacts, node: Node) -> dict[str, str | None]:
    """Who attaches the volumes of a Node that exists (reconcileCMADAnnotationWithExistingNode)."""
    ours = _annotations(facts)
    if node.annotations.get(ATTACHES, "") == ours.get(ATTACHES, ""):
        return {}
    return {ATTACHES: ours.get(ATTACHES)}


Amounts = dict[str, str | None]


def resource_changes(new: NodeStatus, old: NodeStatus) -> tuple[Amounts, Amounts]:
    """Of capacity and allocatable of a Node that exists: where it has none all of them, else huge pages, of which those
    go that the machine does not know (reconcileHugePageResource). `new`: as if it did not exist yet."""
    capacity: Amounts = {} if old.capacity else dict(new.capacity)
    allocatable: Amounts = {} if old.allocatable else dict(new.allocatable)
    had, left = old.capacity or new.capacity, old.allocatable or new.allocatable
    for name in (name for name in new.capacity if name.startswith(HUGE_PAGES)):
        if name not in had or amount(had[name]) != amount(new.capacity[name]):
            capacity[name] = new.capacity[name]
        if name not in had or amount(left.get(name, "0")) != amount(new.allocatable[name]):
            allocatable[name] = new.allocatable[name]
    gone = {name: None for name in had if name.startswith(HUGE_PAGES) and name not in new.capacity}
    return {**capacity, **gone}, {**allocatable, **gone}


def required_labels(facts: NodeFacts, node: Node) -> dict[str, str]:
    """What each report puts right: system and processor, which pods are placed by."""
    needed = {LABEL_OS: LINUX, LABEL_ARCH: facts.machine.architecture}
    return {key: value for key, value in needed.items() if node.labels.get(key) != value}


def node_status(
    facts: NodeFacts, old: NodeStatus, errors: Sequence[str], wall: float, found: Observed = NOTHING
) -> NodeStatus:
    """The status to report. `errors`: why the node is not ready, see `in_order`; none makes it Ready."""
    before = {condition.type: condition for condition in old.conditions}
    capacity = {**old.capacity, **facts.capacity}  # others may advertise resources of their own
    kept = {name: value for name, value in old.allocatable.items() if name in capacity or not _is_extended(name)}
    conditions = (
        *(_pressure(kind, kind in found.pressures) for kind in PRESSURES),
        _ready((*errors, *_missing_capacity(capacity)), facts.machine.soft_requirements),
    )
    return NodeStatus(
        addresses=(NodeAddress("InternalIP", facts.address), NodeAddress("Hostname", facts.name)),
        capacity=capacity,
        allocatable=_without_huge_pages({**kept, **_without(facts.reserved, capacity)}, capacity),
        info=NodeInfo(
            architecture=facts.machine.architecture,
            boot_id=facts.machine.boot_id,
            container_runtime_version=found.runtime_version or RUNTIME_VERSION,
            kernel_version=facts.machine.kernel,
            kubelet_version=facts.kubelet_version,
            machine_id=facts.machine.machine_id,
            operating_system=LINUX,
            os_image=facts.machine.os_image,
            system_uuid=facts.machine.system_uuid,
            swap_bytes=facts.machine.swap_bytes or old.info.swap_bytes,
        ),
        conditions=tuple(_timed(condition, before.get(condition.type), wall) for condition in conditions),
        images=reported_images(found.images),
        runtime_handlers=found.runtime_handlers,
        volumes_in_use=old.volumes_in_use if found.volumes_in_use is None else found.volumes_in_use,
        supplemental_groups_policy=(
            old.supplemental_groups_policy
            if found.supplemental_groups_policy is None
            else found.supplemental_groups_policy
        ),
        declared_features=old.declared_features if facts.declared_features is None else facts.declared_features,
        kubelet_port=facts.kubelet_port,
    )


def in_order(*, runtime: Sequence[str] = (), network: Sequence[str] = ()) -> list[str]:
    """Why the node is not ready, in the order of ReadyCondition. There are no errors of storage or of a shutdown."""
    return [*runtime, *network]


def other_causes(*, events_unhealthy: str, events_full: str = "", pods_healthy: bool) -> list[str]:
    """What pkg/kubelet/runtime.go names with the runtime, and a sync loop that is stuck, which is ours.
    `events_unhealthy`: what is wrong with the lists of pods, `events_full`: with the channel of events (gate
    EventedPLEG), "" for nothing."""
    return [
        *([f"PLEG is not healthy: {events_unhealthy}"] if events_unhealthy else []),
        *([f"EventedPLEG is not healthy: {events_full}"] if events_full else []),
        *([] if pods_healthy else ["the pod loop does not progress"]),
    ]


def changed(old: NodeStatus, new: NodeStatus) -> bool:
    """Do the statuses differ in what we report, heartbeat times and the order of conditions aside?"""
    if old.addresses != new.addresses or not _same_amounts(old.capacity, new.capacity):
        return True
    if not _same_amounts(old.allocatable, new.allocatable):
        return True
    if _of_runtime(old) != _of_runtime(new):
        return True
    declared = (old.declared_features, old.kubelet_port) != (new.declared_features, new.kubelet_port)
    return old.info != new.info or declared or _meanings(old) != _meanings(new)


def _of_runtime(status: NodeStatus) -> tuple[object, ...]:
    return status.images, status.runtime_handlers, status.volumes_in_use, status.supplemental_groups_policy


def dropped(written: NodeStatus, kept: NodeStatus) -> frozenset[str]:
    """What an API server of old has thrown away of it."""
    nothing = (None, ())
    missing = (name for name in YOUNG if getattr(kept, name) in nothing)
    return frozenset(name for name in missing if getattr(written, name) not in nothing)


def reboot(facts: NodeFacts, old: NodeStatus) -> str:
    """The message of the Event that reports a reboot since the last report; "" without one."""
    if old.info.boot_id in ("", facts.machine.boot_id):
        return ""
    return f"Node {facts.name} has been rebooted, boot id: {facts.machine.boot_id}"


def ready_status(status: NodeStatus) -> str:
    """The status of the Ready condition, "" if there is none."""
    return next((c.status for c in status.conditions if c.type == CONDITION_READY), "")


def pressure_changes(old: NodeStatus, new: NodeStatus) -> list[str]:
    """What is told of pressures that are, or are not, there any more."""
    before = {condition.type: condition.status for condition in old.conditions}
    return [
        EVENTS[c.type][c.status == STATUS_TRUE]
        for c in new.conditions
        if c.type in EVENTS and before.get(c.type) != c.status
    ]


def _same_amounts(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """By value: the API server writes 8192Mi as 8Gi."""
    return old.keys() == new.keys() and all(
        old[name] == new[name] or amount(old[name]) == amount(new[name]) for name in new
    )


def amount(quantity: str) -> Fraction | str:
    """The number that a quantity is; the text itself where it is none. As ParseQuantity of apimachinery: one without a
    digit is 0, any other a billionth at least."""
    match = _QUANTITY.fullmatch(quantity) if 0 < len(quantity) <= LONGEST_QUANTITY else None
    if match is None or abs(int(match[5] or 0)) > _LARGEST_EXPONENT:
        return quantity
    sign, whole, part, suffix, exponent = match.groups(default="")
    if not whole and not part and (suffix in _NOT_ALONE or int(exponent or 0) < _NOT_BELOW):
        return quantity
    unit = Fraction(10) ** int(exponent) if exponent else _SUFFIXES[suffix]
    number = Fraction(math.ceil(Fraction(int(f"{whole}{part}" or 0), 10 ** len(part)) * unit * _NANO), _NANO)
    if suffix.endswith("i"):
        number = min(number, Fraction(_LARGEST))
    return -number if sign == "-" else number


def _meanings(status: NodeStatus) -> list[tuple[str, str, str, str, int]]:
    """What counts of the conditions that are ours. Times are written in whole seconds."""
    return sorted(
        (c.type, c.status, c.reason, c.message, math.floor(c.last_transition_time or 0))
        for c in status.conditions
        if c.type in OURS
    )


def _pressure(kind: str, under: bool) -> NodeCondition:
    return NodeCondition(kind, STATUS_TRUE if under else STATUS_FALSE, *PRESSURES[kind][under])


def _ready(errors: Sequence[str], soft_requirements: str) -> NodeCondition:
    warning = f". WARNING: {soft_requirements}" if soft_requirements else ""
    if not errors:
        text = f"kubelet is posting ready status{warning}"
        return NodeCondition(CONDITION_READY, STATUS_TRUE, "KubeletReady", text)
    once = list(dict.fromkeys(errors))
    message = once[0] if len(once) == 1 else f"[{', '.join(once)}]"
    return NodeCondition(CONDITION_READY, STATUS_FALSE, "KubeletNotReady", message + warning)


def _timed(condition: NodeCondition, before: NodeCondition | None, wall: float) -> NodeCondition:
    """With its times: the transition time stays while the status does, and so do a pressure's reason and message."""
    if before is None or before.status != condition.status:
        return replace(condition, last_heartbeat_time=wall, last_transition_time=wall)
    if condition.type != CONDITION_READY:
        return replace(before, last_heartbeat_time=wall)
    return replace(condition, last_heartbeat_time=wall, last_transition_time=before.last_transition_time)


def _is_extended(resource: str) -> bool:
    """Is it somebody's own, and not one of Kubernetes? (IsExtendedResourceName)"""
    return "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")


def _without(reserved: Mapping[str, Fraction], capacity: Mapping[str, str]) -> dict[str, str]:
    """What is left for pods."""
    return {name: _less(value, reserved[name]) if name in reserved else value for name, value in capacity.items()}


def _without_huge_pages(allocatable: dict[str, str], capacity: Mapping[str, str]) -> dict[str, str]:
    """What is set aside for huge pages is no memory for anything else."""
    huge = [amount(value) for name, value in capacity.items() if name.startswith(HUGE_PAGES)]
    if not huge or (not any(huge) and "memory" in allocatable):
        return allocatable
    pages = sum((value for value in huge if not isinstance(value, str)), Fraction())
    return {**allocatable, "memory": _less(allocatable.get("memory", "0"), pages)}


def _less(value: str, taken: Fraction) -> str:
    """Never below 0."""
    number = amount(value)
    return value if isinstance(number, str) else quantity(max(Fraction(), number - taken))


def _missing_capacity(capacity: Mapping[str, str]) -> list[str]:
    missing = [name for name in NEEDED_CAPACITY if name not in capacity]
    return [f"missing node capacity for resources: {', '.join(missing)}"] if missing else []
