"""Pure: the values that verdicts are made of. `cluster` fills them, `verdict` reads them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from extender.policy.orders import Orders
from extender.policy.placement import Placement, Taint

# Reasons of readygate's own condition of a Node. `cluster` reads them back, so that a new process knows the last state.
TOLD_HEALTHY = "Healthy"
TOLD_NOT_YET_HEALTHY = "NotYetHealthy"
TOLD_HELD_CLOSED = "HeldClosed"


@dataclass(frozen=True, slots=True)
class HealthPod:
    """One health pod. Conditions are "True", "False", "Unknown", or "" if absent.

    message: why it is not good; for a good pod, what its agent says besides. created, started, ready_since,
    node_healthy_since, deleted: RFC 3339 text in UTC with whole seconds, as metav1.Time; compared as text. deleted:
    when its deletion was requested, "" if it was not; deleted_at: the same by the monotonic clock. node_uid: of the
    Node object on which this pod was first seen, "" if unknown.
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
    """A condition of a Node that another program writes. changed, seen: its last transition and its last heartbeat; RFC
    3339."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    changed: str = ""
    seen: str = ""


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """One Node object. ready: status of its Ready condition, "" if absent.

    created: as of pods. born_at: the same by the monotonic clock. ready_since: when Ready became this, RFC 3339.
    conditions: all but Ready and readygate's own. in_service: False while it is cordoned, deleted, drained or
    maintained. roles: its taints of a role, NoSchedule or NoExecute; other taints are not kept. told_good: whether
    readygate's condition says that it was healthy once.
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
    """Everything observed of one node at a moment.

    pods: the health pods on it, by gate. heartbeat_lost: its kubelet no longer renews its Lease. agent_silent: the
    agent on it no longer sends heartbeats. swallows: the evidence that pods fail to start there that start elsewhere.
    """

    node: ObservedNode
    pods: Mapping[str, tuple[HealthPod, ...]] = field(default_factory=dict)
    heartbeat_lost: bool = False
    agent_silent: bool = False
    swallows: str = ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Input of decisions that is not of a node. placements: by gate, where its DaemonSet can run; None = unknown."""

    placements: Mapping[str, Placement | None] = field(default_factory=dict)
    orders: Orders = field(default_factory=Orders)
