"""Pure: what verdicts are made of. `cluster` fills these words, `verdict` reads them."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HealthPod:
    """What a verdict needs of one health pod. Conditions are "True", "False", "Unknown", or "" when absent.

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


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """What a verdict needs of one Node object. ready: status of its own Ready condition, "" when absent.

    created: as of pods. born_at: the same by the monotonic clock.
    """

    name: str
    uid: str
    created: str
    born_at: float
    ready: str = ""


@dataclass(frozen=True, slots=True)
class NodeEvidence:
    """All that is seen of one node at a moment. heartbeat_lost: its kubelet has stopped renewing its Lease."""

    node: ObservedNode
    pods: tuple[HealthPod, ...] = ()
    heartbeat_lost: bool = False
