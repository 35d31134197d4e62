"""The facts that `doctor` examines. Pure.

None, or a text in a field `unread`, means that something could not be read. It does not mean that it is wrong.
"""

from dataclasses import dataclass, field

from extender.config.settings import Settings
from extender.web.schema import OrderTold


@dataclass(frozen=True)
class Extender:
    """One entry `extenders[]` of a kube-scheduler's configuration."""

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    timeout_s: float | None = None  # None: not set, so upstream's default of 5 s
    ignorable: bool = False
    node_cache_capable: bool = False
    managed_resources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Profile:
    scheduler_name: str
    percentage_of_nodes_to_score: int | None = None


@dataclass(frozen=True)
class Loaded:
    """The configuration that a kube-scheduler has loaded, from its /configz."""

    extenders: tuple[Extender, ...] = ()
    profiles: tuple[Profile, ...] = ()
    percentage_of_nodes_to_score: int | None = None
    profiling: bool | None = None
    contention_profiling: bool | None = None
    qps: float | None = None  # of requests to the API server
    burst: int | None = None
    content_type: str | None = None
    kubeconfig: str | None = None


@dataclass(frozen=True)
class Scheduler:
    """One kube-scheduler."""

    name: str
    node: str = ""
    version: str = ""  # of its image, "" if unknown
    flags: dict[str, str] = field(default_factory=dict)  # of its command line, by name
    loaded: Loaded | None = None  # None if it could not be read
    unread: str = ""  # why it could not be read


@dataclass(frozen=True)
class Replica:
    """One extender."""

    name: str
    node: str = ""
    owner: str = ""  # kind of its pod's controller, "Node" for a static pod
    ready: bool = True
    release: str = ""
    not_answering: str = ""  # why it gives kube-scheduler no verdicts, "" if it gives them
    problem: str = ""  # why it cannot be queried
    token_left_s: float | None = None  # until its token ends, unless renewed; None if not reported
    token_life_s: float | None = None  # from the issue of the token to its end; None if not reported


@dataclass(frozen=True)
class HealthSet:
    """The DaemonSet of a gate's health pods."""

    namespace: str
    name: str
    desired: int = 0  # pods
    probed: bool = True  # a container has a readiness probe
    gated: bool = False  # the pods have a readiness gate
    strategy: str = "RollingUpdate"
    max_unavailable: str = "1"  # a number or a percentage, as written
    min_ready_s: int = 0


@dataclass(frozen=True)
class GateFacts:
    """A gate as configured, with its DaemonSet and its state."""

    name: str
    named_set: str = ""  # NAMESPACE/NAME of the configured DaemonSet, "" without one
    health_set: HealthSet | None = None  # None if it does not exist, or none is configured
    asked: bool = True  # whether the DaemonSet could be read
    pods: int | None = None  # 0 if the selector matches no pod; None if unread
    armed: bool = True
    refuses: bool = True  # once it is armed: not with severity warn


@dataclass(frozen=True)
class Agents:
    """The agents' pods, as configured."""

    profile: str = ""  # their ready-made list of checks, "" without one
    service: bool = False  # an agent on each host speaks for them, and runs what a pod cannot
    beside: tuple[str, ...] = ()  # names of the checks of the privileged container in the pod (`agent.reader`)


@dataclass(frozen=True)
class Right:
    """Whether the extender's account may do this."""

    verb: str
    resource: str
    namespace: str
    allowed: bool


@dataclass(frozen=True)
class Facts:
    """All facts about one cluster."""

    cli_release: str
    api_version: str = ""  # of the API server, as "v1.36.3"
    nodes: int = 0
    control_plane: tuple[str, ...] = ()  # names of the nodes with this role
    schedulers: tuple[Scheduler, ...] = ()
    replicas: tuple[Replica, ...] = ()
    schedulers_asked: bool = True  # whether the pods of schedulers could be listed
    replicas_asked: bool = True  # whether the pods of extenders could be listed
    settings: Settings | None = None  # of the deployed extender; None if unread
    settings_unread: str = ""  # why the settings could not be read
    gates: tuple[GateFacts, ...] = ()
    agents: Agents | None = None  # None if there are none, or their configuration could not be read
    rights: tuple[Right, ...] = ()
    orders: tuple[OrderTold, ...] = ()  # in force, as the extenders report them
    faults: tuple[str, ...] = ()  # invalid orders, as the extenders report them
    unread: tuple[str, ...] = ()  # what could not be read, and why
