"""Pure: what verdicts are made of. `cluster` fills these words, `verdict` reads them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from extender.policy.orders import Orders
from extender.policy.placement import Placement, Taint

# Reasons of our condition of a Node that `cluster` reads again, so that one who starts knows what the last one saw.
TOLD_HEALTHY = "Healthy"
TOLD_NOT_YET_HEALTHY = "NotYetHealthy"
TOLD_HELD_CLOSED = "HeldClosed"


@dataclass(frozen=True, slots=True)
class HealthPod:
    """What a verdict needs of one health pod. Conditions are "True", "False", "Unknown", or "" when absent.

    message: why it is not good; of a good one, what its agent says beside that.
    created, started, ready_since, node_healthy_since, deleted: RFC 3339 text in UTC with whole seconds, as metav1.Time
    is written; compared as text. deleted: when it was told to end, "" if it was not; deleted_at: the same by the
    monotonic clock. node_uid: of the Node object this pod was first seen on, "" if none was known then.
    """

    name: str
    uid: str
    node: str
    created: str
    terminating: bool = False
    finished: bool = False
    ready: str = ""
    ready_since: str = ""
    ready_reason: str = ""
    containers_ready: str = ""
    node_healthy: str = ""
    message: str = ""
    node_uid: str = ""
    started: str = ""
    node_healthy_since: str = ""
    deleted: str = ""
    deleted_at: float = -math.inf
    cause: str = ""
    conditions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObservedCondition:
    """A condition of a Node, others' words. changed, seen: when it became this, and was last said; RFC 3339."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    changed: str = ""
    seen: str = ""


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """What a verdict needs of one Node object. ready: status of its own Ready condition, "" when absent.

    created: as of pods. born_at: the same by the monotonic clock. ready_since: when Ready became this, RFC 3339.
    conditions: all but Ready and our own. in_service: False while it is cordoned, being deleted, drained or maintained.
    roles: its taints of that kind, NoSchedule or NoExecute; of others nothing is kept. told_good: whether our condition
    of it says that it was healthy once.
    """

    name: str
    uid: str
    created: str
    born_at: float
    ready: str = ""
    ready_since: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    conditions: tuple[ObservedCondition, ...] = ()
    in_service: bool = True
    roles: tuple[Taint, ...] = ()
    told_good: bool = False


@dataclass(frozen=True, slots=True)
class NodeEvidence:
    """All that is seen of one node at a moment.

    pods: the health pods on it, by gate. heartbeat_lost: its kubelet has stopped renewing its Lease.
    agent_silent: the agent on it has. swallows: what is to be seen where pods fail to start that start elsewhere.
    """

    node: ObservedNode
    pods: Mapping[str, tuple[HealthPod, ...]] = field(default_factory=dict)
    heartbeat_lost: bool = False
    agent_silent: bool = False
    swallows: str = ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is decided with beside nodes. placements: by gate, where its DaemonSet can run; None = not known."""

    placements: Mapping[str, Placement | None] = field(default_factory=dict)
    orders: Orders = field(default_factory=Orders)
