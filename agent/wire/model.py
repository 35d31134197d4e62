"""What the agent's rooms say to each other: pods, containers, probes, statuses. Frozen, standard library, no JSON.

Names are those of the Kubernetes API (core/v1) in snake case. Times are seconds since the epoch
(float, UTC); None = not set.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum

from agent.wire.placement_model import Placement, Taint


class Result(Enum):
    """Outcome of a probe, as pkg/kubelet/prober/results: the numbers are those kubelet exports to Prometheus."""

    UNKNOWN = -1
    SUCCESS = 0
    FAILURE = 1


class ProbeType(StrEnum):
    READINESS = "Readiness"
    LIVENESS = "Liveness"
    STARTUP = "Startup"


@dataclass(frozen=True, slots=True)
class ProbeUpdate:
    """A container's stable probe result is new or has changed."""

    container_id: str
    result: Result
    pod_uid: str


class RestartPolicy(StrEnum):
    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"


class PodPhase(StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class ExecAction:
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HttpGetAction:
    """`port` is a number or the name of a port of the same container; empty `host` means the pod's address."""

    port: int | str
    path: str = "/"
    host: str = ""
    scheme: str = "HTTP"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TcpSocketAction:
    port: int | str
    host: str = ""


@dataclass(frozen=True, slots=True)
class GrpcAction:
    """`service`: what grpc.health.v1.Health is asked for; empty: the server as a whole."""

    port: int
    service: str = ""


@dataclass(frozen=True, slots=True)
class SleepAction:
    seconds: int


@dataclass(frozen=True, slots=True)
class LifecycleHook:
    """postStart or preStop of a container. `action` None: no handler that we know."""

    action: ExecAction | HttpGetAction | SleepAction | None


ProbeAction = ExecAction | HttpGetAction | TcpSocketAction | GrpcAction


@dataclass(frozen=True, slots=True)
class Probe:
    """core/v1 Probe; the defaults are those of pkg/apis/core/v1/defaults.go. `action` None: no handler that we know."""

    action: ProbeAction | None
    initial_delay_s: int = 0
    timeout_s: int = 1
    period_s: int = 10
    success_threshold: int = 1
    failure_threshold: int = 3
    termination_grace_period_s: int | None = None  # None: the pod's


PROBE_DEFAULTS = Probe(action=None)


MOST_RESTARTS = 2**31 - 1
"""What the API takes. There a count stays; a kubelet's begins anew below 0, which is refused."""


@dataclass(frozen=True, slots=True)
class ContainerPort:
    container_port: int
    name: str = ""
    host_port: int = 0  # 0: none
    host_ip: str = ""
    protocol: str = ""


@dataclass(frozen=True, slots=True)
class RestartRule:
    """One restartPolicyRules entry. `operator` is In or NotIn, None when the rule has no exitCodes."""

    action: str
    operator: str | None = None
    exit_codes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class EnvVar:
    """A literal value, or the downward-API field path it is taken from (`field_path` wins where set).

    `unsupported` names a source that only a real kubelet can read, for example secretKeyRef. `absent`: an optional one
    of these, taken as not there: the container does not get it, and a probe's command sees it empty.
    """

    name: str
    value: str = ""
    field_path: str = ""
    unsupported: str = ""
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Container:
    name: str
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    working_dir: str = ""
    ports: tuple[ContainerPort, ...] = ()
    readiness_probe: Probe | None = None
    liveness_probe: Probe | None = None
    startup_probe: Probe | None = None
    post_start: LifecycleHook | None = None
    pre_stop: LifecycleHook | None = None
    restart_policy: RestartPolicy | None = None  # None: the pod's
    restart_rules: tuple[RestartRule, ...] = ()
    image_pull_policy: str = ""  # Always, IfNotPresent, Never
    resources: tuple[tuple[str, str, str], ...] = ()  # limits or requests, name, quantity
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    beyond: tuple[str, ...] = ()  # fields that ask for what is not modelled, and must not be passed over

    def probe(self, probe_type: ProbeType) -> Probe | None:
        """Raises ValueError for a type that there is not."""
        match probe_type:
            case ProbeType.READINESS:
                return self.readiness_probe
            case ProbeType.LIVENESS:
                return self.liveness_probe
            case ProbeType.STARTUP:
                return self.startup_probe
            case _:
                raise ValueError(f'unknown probe type: "{probe_type}"')


@dataclass(frozen=True, slots=True)
class ContainerWaiting:
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class ContainerRunning:
    started_at: float | None = None


@dataclass(frozen=True, slots=True)
class ContainerTerminated:
    exit_code: int
    reason: str = ""
    message: str = ""
    signal: int = 0
    started_at: float | None = None
    finished_at: float | None = None
    container_id: str = ""


ContainerState = ContainerWaiting | ContainerRunning | ContainerTerminated


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    """`container_id` has the form type://id, empty before the first start. `state` None is the API's empty state."""

    name: str
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    container_id: str = ""
    image: str = ""
    image_id: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    type: str
    status: str  # True, False, Unknown
    reason: str = ""
    message: str = ""
    last_transition_time: float | None = None
    last_probe_time: float | None = None
    observed_generation: int = 0


@dataclass(frozen=True, slots=True)
class PodStatus:
    """Statuses are None (not known at all) or a tuple (known, perhaps empty): kubelet tells the two apart."""

    phase: PodPhase | str = PodPhase.PENDING
    conditions: tuple[Condition, ...] = ()
    reason: str = ""
    message: str = ""
    host_ip: str = ""
    pod_ip: str = ""
    start_time: float | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    ephemeral_container_statuses: tuple[ContainerStatus, ...] | None = None
    qos_class: str = ""
    observed_generation: int = 0
    # Fields of the API object we do not model, kept so that a merge never loses them: JSON key -> raw JSON bytes.
    extra: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pod:
    uid: str
    name: str
    namespace: str
    node_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Container, ...] = ()
    restart_policy: RestartPolicy | str = RestartPolicy.ALWAYS
    readiness_gates: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    created_at: float | None = None
    deletion_timestamp: float | None = None
    deletion_grace_period_s: int | None = None
    termination_grace_period_s: int = 30
    active_deadline_s: int | None = None
    hostname: str = ""
    hostname_override: str | None = None  # beats it
    host_network: bool = False
    host_users: bool = True  # else it has a user namespace of its own
    service_account: str = ""
    generation: int = 0
    static: bool = False  # not from the API server
    mirror: bool = False  # stands there for a static pod
    placement: Placement = field(default_factory=Placement)
    beyond: tuple[str, ...] = ()  # as a container's
    status: PodStatus = field(default_factory=PodStatus)


@dataclass(frozen=True, slots=True)
class NodeAddress:
    type: str
    address: str


@dataclass(frozen=True, slots=True)
class NodeCondition:
    type: str
    status: str  # True, False, Unknown
    reason: str = ""
    message: str = ""
    last_heartbeat_time: float | None = None
    last_transition_time: float | None = None


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """core/v1 NodeSystemInfo, as far as we report it."""

    architecture: str = ""
    boot_id: str = ""
    container_runtime_version: str = ""
    kernel_version: str = ""
    kubelet_version: str = ""
    machine_id: str = ""
    operating_system: str = ""
    os_image: str = ""
    system_uuid: str = ""
    swap_bytes: int = 0


@dataclass(frozen=True, slots=True)
class NodeImage:
    names: tuple[str, ...]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Image:
    """As a runtime lists it."""

    id: str
    size_bytes: int
    digests: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeRuntimeHandler:
    name: str = ""  # empty: the default one
    recursive_read_only_mounts: bool = False
    user_namespaces: bool = False


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """`capacity`, `allocatable`: resource name -> quantity."""

    addresses: tuple[NodeAddress, ...] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)
    info: NodeInfo = NodeInfo()
    conditions: tuple[NodeCondition, ...] = ()
    images: tuple[NodeImage, ...] = ()
    runtime_handlers: tuple[NodeRuntimeHandler, ...] = ()
    volumes_in_use: tuple[str, ...] = ()
    supplemental_groups_policy: bool | None = None  # None: nobody has said
    declared_features: tuple[str, ...] = ()
    kubelet_port: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    unschedulable: bool = False
    is_being_deleted: bool = False
    taints: tuple[Taint, ...] = ()
    pod_cidrs: tuple[str, ...] = ()
    status: NodeStatus = field(default_factory=NodeStatus)


@dataclass(frozen=True, slots=True)
class LeaseSpec:
    """coordination/v1 LeaseSpec. `renew_time`: seconds since the epoch."""

    holder_identity: str
    duration_s: int
    renew_time: float
