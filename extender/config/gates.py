"""Sections of the configuration file on gates, and on the limits of closing: cap, storm, damping. Pure.

`off` is what YAML reads as false. A key whose value is off or a mapping accepts no other boolean.
"""

from typing import Annotated, Literal

from msgspec import Meta, field

from component.settings import Section
from component.text import one_line
from kube import contract
from kube.selector import SelectorError
from kube.selector import parse as parse_selector

LABEL_POOL = "readygate.dev/pool"
LABEL_ZONE = "topology.kubernetes.io/zone"
_QUALIFIED = r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z"

LabelKey = Annotated[str, Meta(pattern=_QUALIFIED, description="the key of a label")]
ResourceName = Annotated[str, Meta(pattern=_QUALIFIED, description="the name of a resource, as nvidia.com/gpu")]
ConditionType = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_./]{0,314}[A-Za-z0-9])?\Z", description="the type of a condition")
]
DriverName = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9.]{0,61}[A-Za-z0-9])?\Z", description="the name of a CSI driver")
]
# Types of keys that other sections have, too.
DnsLabel = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z", description="a DNS label")]
DnsName = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z", description="a DNS name")]
Seconds = Annotated[float, Meta(ge=0, le=86400, description="seconds, 0 to 86400")]
Text = Annotated[str, Meta(min_length=1, description="text that is not empty")]
Namespaces = Annotated[tuple[DnsLabel, ...], Meta(min_length=1, description="a list of at least one DNS label")]
Resources = Annotated[tuple[ResourceName, ...], Meta(min_length=1, description="a list of at least one resource")]
Drivers = Annotated[tuple[DriverName, ...], Meta(min_length=1, description="a list of at least one CSI driver")]
ClassName = Annotated[
    str, Meta(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z", description="the name of a DeviceClass")
]
DeviceClasses = Annotated[tuple[ClassName, ...], Meta(min_length=1, description="a list of at least one DeviceClass")]
Schedulers = Annotated[tuple[Text, ...], Meta(min_length=1, description="a list of at least one scheduler's name")]
Priority = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1, description="a whole number of 32 bits")]
Percent = Annotated[int, Meta(ge=1, le=100, description="1 to 100")]
_LIMIT = '"1%" to "100%", or a number of nodes, 1 to 15000'
Share = Annotated[str, Meta(pattern=r"^([1-9][0-9]?|100)%\Z", description=_LIMIT)]
Nodes = Annotated[int, Meta(ge=1, le=15000, description=_LIMIT)]
Limit = Annotated[Share | Nodes | None, Meta(description=f"{_LIMIT}, or null for none")]
Off = Annotated[bool, Meta(description="off without quotes")]
_OWN_LIMIT = f"{_LIMIT}, off without quotes, or null for that of cap.gate"
OwnLimit = Annotated[Share | Nodes | bool | None, Meta(description=_OWN_LIMIT)]
Severity = Literal["gate", "preferNot", "warn"]
OpenOrClosed = Literal["open", "closed"]
StatusWanted = Annotated[Literal["True", "False"], Meta(description='"True" or "False", in quotes')]


def _only_off(key: str, value: object, allowed: str) -> None:
    if value is True:
        raise ValueError(f"{key}: is true, allowed: {allowed}")


def _keys(section: type[Section]) -> str:
    return f"a mapping with the keys {', '.join(section.__struct_encode_fields__)}"


def _check_selector(key: str, text: str | None) -> None:
    try:
        parse_selector(text or "")
    except SelectorError as e:
        allowed = "a label selector, as `a=b,c in (d,e),!f`"
        raise ValueError(f'{key}: is the text "{one_line(text, 64)}" ({e}), allowed: {allowed}') from e


class HealthPods(Section, frozen=True):
    """The health pods of a gate. daemon_set: null = any owner, the label selector alone decides.

    It must be given completely: a default selector would select the pods of another gate.
    """

    namespace: DnsLabel
    label_selector: str
    daemon_set: DnsName | None = None

    def __post_init__(self) -> None:
        _check_selector("labelSelector", self.label_selector)
        if self.daemon_set is None and not self.label_selector.strip():
            raise ValueError("labelSelector: is empty, allowed: a label selector, or none with a daemonSet")


OUR_HEALTH_PODS = HealthPods(contract.NAMESPACE, f"{contract.LABEL_NAME}={contract.NAME_AGENT}", contract.NAME_AGENT)


class PriorityRange(Section, frozen=True):
    """Both ends are included; null = no end."""

    from_: Priority | None = field(default=None, name="from")
    to: Priority | None = None

    def __post_init__(self) -> None:
        if self.from_ is None and self.to is None:
            raise ValueError("from: missing, allowed: from, to, or both")
        if self.from_ is not None and self.to is not None and self.from_ > self.to:
            raise ValueError(f"from: is {self.from_}, allowed: not more than to, {self.to}")


class For(Section, frozen=True):
    """The pods to which the gate applies: every given key must match; without any key it is every pod.

    If both resources and classes of devices are given, one match of either is enough.
    """

    pod_selector: str | None = None
    namespaces: Namespaces | None = None
    resources: Resources | None = None
    device_classes: DeviceClasses | None = None
    csi_drivers: Drivers | None = None
    priority: PriorityRange | None = None
    scheduler_names: Schedulers | None = None

    def __post_init__(self) -> None:
        _check_selector("podSelector", self.pod_selector)
        if self.pod_selector is not None and not self.pod_selector.strip():
            raise ValueError("podSelector: is empty, allowed: a label selector, or null for every pod")

    @property
    def by_device(self) -> bool:
        """Whether claims of devices are read: a device is given by its class or its extended resource."""
        return self.device_classes is not None or any("/" in name for name in self.resources or ())


class Condition(Section, frozen=True):
    """A condition of the health pod or of the Node, and its good status. missing, unknown (neither True nor False),
    stale (last written more than stale_after_seconds ago): what such a condition counts as."""

    of: Literal["pod", "node"]
    type: ConditionType
    status: StatusWanted = "True"
    missing: OpenOrClosed = "closed"
    unknown: OpenOrClosed = "closed"
    stale_after_seconds: Annotated[float, Meta(ge=1, le=86400, description="seconds, 1 to 86400")] | None = None
    stale: OpenOrClosed = "closed"

    def __post_init__(self) -> None:
        if self.of == "pod" and self.stale_after_seconds is not None:
            allowed = "null for a condition of a pod: it has no heartbeat time"
            raise ValueError(f"staleAfterSeconds: is {self.stale_after_seconds:g}, allowed: {allowed}")
        if self.of == "node" and self.type == contract.CONDITION_NODE_HEALTHY:
            allowed = "any other: readygate itself writes that one"
            raise ValueError(f'type: is the text "{self.type}" of the node, allowed: {allowed}')


class Conditions(Section, frozen=True):
    """The node is open if all of all_of and, if there are any, one of any_of are good."""

    all_of: tuple[Condition, ...] = ()
    any_of: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        if not (self.all_of or self.any_of):
            raise ValueError("allOf: is empty, allowed: entries here or in anyOf")

    @property
    def of_pods(self) -> bool:
        return any(one.of == "pod" for one in (*self.all_of, *self.any_of))


class Damping(Section, frozen=True):
    """How long a node must be healthy before it opens again; doubled at each closure within the window."""

    min_healthy_seconds: Seconds = 10
    ceiling_seconds: Seconds = 300
    window_seconds: Seconds = 3600

    def __post_init__(self) -> None:
        if self.min_healthy_seconds > self.ceiling_seconds:
            allowed = f"not more than ceilingSeconds, {self.ceiling_seconds:g}"
            raise ValueError(f"minHealthySeconds: is {self.min_healthy_seconds:g}, allowed: {allowed}")


class PodStarts(Section, frozen=True):
    """Closes nodes on which pods of so many namespaces fail to start that start elsewhere. within_seconds: how long a
    failure, and a start elsewhere, count. stuck_seconds: how long a pod may be bound without a sandbox."""

    namespaces: Annotated[int, Meta(ge=2, le=100, description="a number of namespaces, 2 to 100")] = 3
    within_seconds: Annotated[float, Meta(ge=60, le=3600, description="seconds, 60 to 3600")] = 300
    stuck_seconds: Annotated[float, Meta(ge=10, le=600, description="seconds, 10 to 600")] = 30


class Gate(Section, frozen=True):
    """name: the name of the gate in reports and metrics. nodes: a label selector of the nodes to which it applies, null
    = all.

    severity: null = preferNot with pod_starts, else gate. pod_starts: starts of pods decide, and nothing else.

    health_pods: null if all conditions are of nodes. missing_grace_seconds: how long a node keeps its last verdict when
    its health pod is gone; replace_grace_seconds: when it is being replaced. cap: null = that of `cap.gate`.
    """

    name: DnsLabel = "health"
    enforcement: Literal["shadow", "armed"] = "armed"
    severity: Severity | None = None
    health_pods: HealthPods | None = OUR_HEALTH_PODS
    pods_for: For = field(default=For(), name="for")
    nodes: str | None = None
    conditions: Conditions | None = None
    pod_starts: PodStarts | None = None
    missing_grace_seconds: Seconds = 30
    replace_grace_seconds: Seconds = 60
    damping: Damping | Off = Damping()
    cap: OwnLimit = None

    def __post_init__(self) -> None:
        _check_selector("nodes", self.nodes)
        _only_off("damping", self.damping, f"off or {_keys(Damping)}")
        _only_off("cap", self.cap, _OWN_LIMIT)
        if self.pod_starts is not None:
            if self.conditions is not None:
                raise ValueError("podStarts: is given with conditions, allowed: one of the two")
            return
        if self.health_pods is None and (self.conditions is None or self.conditions.of_pods):
            raise ValueError("healthPods: is empty, allowed: that only where all conditions are of the node")

    @property
    def severity_in_force(self) -> Severity:
        return self.severity or ("gate" if self.pod_starts is None else "preferNot")


class Caps(Section, frozen=True):
    """How many nodes may be closed: by all armed gates in the cluster, a zone, a pool; by each gate.

    leave_in_pool: nodes of each pool that stay open. new_node_seconds: a younger node that was never good is not in use
    yet, and counts on neither side.
    """

    cluster: Limit = "30%"
    gate: Limit = "30%"
    zone: Limit = None
    pool: Limit = None
    leave_in_pool: Annotated[int, Meta(ge=0, le=15000, description="a number of nodes, 0 to 15000")] = 1
    pool_label: LabelKey = LABEL_POOL
    zone_label: LabelKey = LABEL_ZONE
    new_node_seconds: Seconds = 600


class Storm(Section, frozen=True):
    """When so many nodes of a gate close at once for one cause, they are held open: the checks themselves may be
    broken."""

    percent: Percent = 20
    at_least: Annotated[int, Meta(ge=2, le=15000, description="a number of nodes, 2 to 15000")] = 3
    within_seconds: Annotated[float, Meta(ge=1, le=3600, description="seconds, 1 to 3600")] = 60
    calm_seconds: Annotated[float, Meta(ge=1, le=3600, description="seconds, 1 to 3600")] = 60


class Orders(Section, frozen=True):
    """config_map: name of the ConfigMap in readygate's namespace with the orders of operators; null = none is read."""

    config_map: DnsName | None = "readygate-orders"

    def __post_init__(self) -> None:
        # An admission policy reserves ConfigMaps of such names for deployers: operators could not give orders.
        for name in (contract.NAME_AGENT, contract.NAME_EXTENDER):
            if self.config_map is not None and self.config_map.startswith(name):
                allowed = f"a name that does not begin with {name}, as configurations do"
                raise ValueError(f'configMap: is the text "{self.config_map}", allowed: {allowed}')


def check_off(cap: Caps | bool, storm: Storm | bool) -> None:
    """Raises ValueError if one of them is true."""
    _only_off("cap", cap, f"off or {_keys(Caps)}")
    _only_off("storm", storm, f"off or {_keys(Storm)}")
