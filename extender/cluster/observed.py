"""What the extender reads of a Pod, a Node and a Lease: JSON keys, and their translation into the words of
`policy.evidence` and `heartbeat`. Pure.

A field of the wrong type makes the reflector skip the object, never stop its stream.
"""

import math
from datetime import datetime

import msgspec

from component.text import one_line
from extender.cluster.heartbeat import Renewal
from extender.policy.evidence import HealthPod, ObservedNode
from kube import contract
from kube.objects import BareMeta, daemon_set_of
from kube.times import format_time, parse_time

FINISHED_PHASES = frozenset({"Succeeded", "Failed"})
DEFAULT_LEASE_DURATION_S = 40.0  # the kubelet's nodeLeaseDurationSeconds


class Condition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class _Status(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    phase: str = ""
    conditions: list[Condition] | None = None
    start_time: str | None = None


class _PodMeta(BareMeta, frozen=True, gc=False, rename="camel", omit_defaults=True):
    deletion_grace_period_seconds: int | None = None


class _PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""


class Pod(msgspec.Struct, frozen=True, gc=False):
    metadata: _PodMeta
    spec: _PodSpec = _PodSpec()
    status: _Status = _Status()


class Node(msgspec.Struct, frozen=True, gc=False):
    metadata: BareMeta
    status: _Status = _Status()


class _LeaseSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    renew_time: str | None = None
    lease_duration_seconds: int | None = None


class _ManagedFields(msgspec.Struct, frozen=True, gc=False):
    time: str | None = None


class _LeaseMeta(BareMeta, frozen=True, gc=False, rename="camel", omit_defaults=True):
    managed_fields: list[_ManagedFields] | None = None


class Lease(msgspec.Struct, frozen=True, gc=False):
    metadata: _LeaseMeta
    spec: _LeaseSpec = _LeaseSpec()


def health_pod(
    pod: Pod, daemon_set: str | None, node_uid: str, deleted_s: float | None = None, deleted_at: float = -math.inf
) -> HealthPod | None:
    """The health pod this is, or None if another DaemonSet owns it or it has no node yet.

    daemon_set: name of the gate's DaemonSet, None = whatever the label selector gave. node_uid: of the Node it is on
    as known now, or "". deleted_s, deleted_at: as deleted_s() gives it, and by the monotonic clock.
    """
    meta = pod.metadata
    if not pod.spec.node_name:
        return None
    if daemon_set is not None and daemon_set_of(meta.owner_references) != daemon_set:
        return None
    conditions = {condition.type: condition for condition in pod.status.conditions or ()}
    ready = conditions.get(contract.CONDITION_READY)
    containers_ready = conditions.get(contract.CONDITION_CONTAINERS_READY)
    node_healthy = conditions.get(contract.CONDITION_NODE_HEALTHY)
    return HealthPod(
        name=f"{meta.namespace}/{meta.name}",
        uid=meta.uid,
        node=pod.spec.node_name,
        created=meta.creation_timestamp or "",
        terminating=meta.deletion_timestamp is not None,
        finished=pod.status.phase in FINISHED_PHASES,
        ready="" if ready is None else ready.status,
        ready_since="" if ready is None else ready.last_transition_time or "",
        ready_reason="" if ready is None else ready.reason,
        containers_ready="" if containers_ready is None else containers_ready.status,
        node_healthy="" if node_healthy is None else node_healthy.status,
        message=_why(ready, node_healthy),
        node_uid=node_uid,
        started=pod.status.start_time or "",
        node_healthy_since="" if node_healthy is None else node_healthy.last_transition_time or "",
        deleted="" if deleted_s is None else format_time(deleted_s),
        deleted_at=deleted_at,
    )


def deleted_s(pod: Pod) -> float | None:
    """When the pod was told to end, seconds since the epoch; None if it was not, or that cannot be read.

    deletionTimestamp lies by the grace period after it, also when that was shortened since.
    """
    try:
        ends_s = parse_time(pod.metadata.deletion_timestamp)
    except (msgspec.ValidationError, OverflowError):
        return None
    return None if ends_s is None else ends_s - (pod.metadata.deletion_grace_period_seconds or 0)


def _why(ready: Condition | None, node_healthy: Condition | None) -> str:
    """The words of the condition that is not True, ours first: it knows the check, the kubelet only the container."""
    for condition in (node_healthy, ready):
        if condition is not None and condition.status != contract.STATUS_TRUE:
            return one_line(": ".join(part for part in (condition.reason, condition.message) if part))
    return ""


def age_s(node: Node, wall: float) -> float:
    """Seconds since the Node object was made, 0 if that is unknown. wall: seconds since the epoch."""
    try:
        made = datetime.fromisoformat(node.metadata.creation_timestamp or "")
    except ValueError:
        return 0.0
    return max(0.0, wall - made.timestamp()) if made.tzinfo is not None else 0.0


def observed_node(node: Node, born_at: float) -> ObservedNode:
    """born_at: monotonic seconds when the Node object was made."""
    ready = next((c.status for c in node.status.conditions or () if c.type == contract.CONDITION_READY), "")
    meta = node.metadata
    return ObservedNode(
        name=meta.name, uid=meta.uid, created=meta.creation_timestamp or "", born_at=born_at, ready=ready
    )


def renewal(lease: Lease) -> Renewal:
    """The Lease in kube-node-lease is named after its node."""
    duration_s = lease.spec.lease_duration_seconds
    return Renewal(
        lease.metadata.name,
        lease.spec.renew_time or "",
        DEFAULT_LEASE_DURATION_S if duration_s is None else duration_s,
    )


def listed_renewal(lease: Lease) -> Renewal:
    """The same with the API server's time, which says something beside that of others only."""
    written = max((fields.time or "" for fields in lease.metadata.managed_fields or ()), default="")
    return renewal(lease)._replace(written=written)
