"""What `doctor` has read, as far as it could. Pure.

None, or a text in `unread`, says that something could not be read, and why: that is no fault of what was to be read.
"""

from dataclasses import dataclass, field

from extender.config.settings import Settings
from extender.web.schema import OrderTold


@dataclass(frozen=True)
class Extender:
    """One entry `extenders[]` of a kube-scheduler. timeout_s: None where none is set, which means 5 s upstream."""

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    timeout_s: float | None = None
    ignorable: bool = False
    node_cache_capable: bool = False
    managed_resources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Profile:
    scheduler_name: str
    percentage_of_nodes_to_score: int | None = None


@dataclass(frozen=True)
class Loaded:
    """What a kube-scheduler runs with, as its /configz tells. qps, burst: towards the API server."""

    extenders: tuple[Extender, ...] = ()
    profiles: tuple[Profile, ...] = ()
    percentage_of_nodes_to_score: int | None = None
    profiling: bool | None = None
    contention_profiling: bool | None = None
    qps: float | None = None
    burst: int | None = None
    content_type: str | None = None
    kubeconfig: str | None = None


@dataclass(frozen=True)
class Scheduler:
    """One kube-scheduler. flags: of its command line, name -> value. version: of its image, "" if it tells none."""

    name: str
    node: str = ""
    version: str = ""
    flags: dict[str, str] = field(default_factory=dict)
    loaded: Loaded | None = None
    unread: str = ""


@dataclass(frozen=True)
class Replica:
    """One extender. owner: kind of what made its pod, "Node" for a static one. problem: why it cannot be asked.
    token_left_s: until its token ends unless it is renewed; token_life_s: from the token's issue to its end. None if it
    reports none.
    """

    name: str
    node: str = ""
    owner: str = ""
    ready: bool = True
    release: str = ""
    not_answering: str = ""
    problem: str = ""
    token_left_s: float | None = None
    token_life_s: float | None = None


@dataclass(frozen=True)
class HealthSet:
    """The DaemonSet of a gate. max_unavailable: as written, a number or a percentage. probed: it has a container with
    a readiness probe; gated: it has a readiness gate.
    """

    namespace: str
    name: str
    desired: int = 0
    probed: bool = True
    gated: bool = False
    strategy: str = "RollingUpdate"
    max_unavailable: str = "1"
    min_ready_s: int = 0


@dataclass(frozen=True)
class GateFacts:
    """A gate as configured, and what its DaemonSet and its decisions show. health_set: None = there is none of that
    name, or none is named. asked: whether its DaemonSet could be looked for. pods: health pods found, None = unread.
    """

    name: str
    named_set: str = ""
    health_set: HealthSet | None = None
    asked: bool = True
    pods: int | None = None
    armed: bool = True


@dataclass(frozen=True)
class Right:
    """Whether the extender's account may do this."""

    verb: str
    resource: str
    namespace: str
    allowed: bool


@dataclass(frozen=True)
class Facts:
    """settings: of the deployed extender; None with settings_unread. api_version: of the API server, "v1.36.3".

    control_plane: nodes that carry the role. schedulers_asked, replicas_asked: whether their pods could be looked for.
    orders: those in force, and faults: broken entries, as the extenders say.
    """

    cli_release: str
    api_version: str = ""
    nodes: int = 0
    control_plane: tuple[str, ...] = ()
    schedulers: tuple[Scheduler, ...] = ()
    replicas: tuple[Replica, ...] = ()
    schedulers_asked: bool = True
    replicas_asked: bool = True
    settings: Settings | None = None
    settings_unread: str = ""
    gates: tuple[GateFacts, ...] = ()
    rights: tuple[Right, ...] = ()
    orders: tuple[OrderTold, ...] = ()
    faults: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
