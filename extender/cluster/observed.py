"""JSON keys of a Pod, a Node and a Lease, and their translation into the values of `policy.evidence` and `lease_age`.
Pure.

A field of a wrong type makes the reflector skip the object and never stops its stream.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec
from msgspec.structs import replace

from component.text import one_line
from extender.cluster.lease_age import Renewal
from extender.policy.evidence import (
    TOLD_HEALTHY,
    TOLD_HELD_CLOSED,
    TOLD_NOT_YET_HEALTHY,
    HealthPod,
    ObservedCondition,
    ObservedNode,
)
from extender.policy.placement import ROLE, Taint
from kube import contract
from kube.objects import BareMeta, Condition, daemon_set_of
from kube.times import format_time, parse_time

KEEPS_PODS_OFF = frozenset({"NoSchedule", "NoExecute"})  # effects of taints
FINISHED_PHASES = frozenset({"Succeeded", "Failed"})
DEFAULT_LEASE_DURATION_S = 40.0  # the kubelet's nodeLeaseDurationSeconds
TEXTS_MAX = 65_536
YEAR_10000 = 253_402_300_800.0  # seconds since the epoch; RFC 3339 cannot write it
# Node conditions that are set while a node is drained or repaired: reserved names (enhancement 5683).
OUT_OF_SERVICE = frozenset({"DrainInProgress", "Drained", "MaintenancePlanned", "MaintenanceInProgress"})


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


class _NodeMeta(BareMeta, frozen=True, gc=False, rename="camel", omit_defaults=True):
    labels: dict[str, str] | None = None


class _Taint(msgspec.Struct, frozen=True, gc=False):
    key: str = ""
    value: str = ""
    effect: str = ""


class _NodeSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    unschedulable: bool | None = None
    taints: list[_Taint] | None = None


class Node(msgspec.Struct, frozen=True, gc=False):
    metadata: _NodeMeta
    spec: _NodeSpec = _NodeSpec()
    status: _Status = _Status()


class _LeaseSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    renew_time: str | None = None
    lease_duration_seconds: int | None = None
    holder_identity: str | None = None


class _ManagedFields(msgspec.Struct, frozen=True, gc=False):
    time: str | None = None


class _LeaseMeta(BareMeta, frozen=True, gc=False, rename="camel", omit_defaults=True):
    managed_fields: list[_ManagedFields] | None = None


class Lease(msgspec.Struct, frozen=True, gc=False):
    metadata: _LeaseMeta
    spec: _LeaseSpec = _LeaseSpec()


@dataclass(frozen=True, slots=True)
class Wanted:
    """The conditions that gates read besides those that every verdict needs. Changes of other conditions are ignored:
    kubelets repeat each condition of a node every five minutes, with another heartbeat and often another message.

    pod, node: types of conditions. aging: types of node conditions whose heartbeat is read, too.
    """

    pod: frozenset[str] = frozenset()
    node: frozenset[str] = frozenset()
    aging: frozenset[str] = frozenset()


NOTHING_MORE = Wanted()
NO_CONDITIONS: Mapping[str, str] = {}


class Texts:
    """One object for equal texts: thousands of nodes have the same. A unique text costs an entry, so the table is
    bounded."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def one(self, text: str) -> str:
        if len(self._texts) >= TEXTS_MAX:
            self._texts.clear()
        return self._texts.setdefault(text, text)

    def labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        if len(self._texts) + 2 * len(labels) > TEXTS_MAX:
            self._texts.clear()
        one = self._texts.setdefault  # inlined: a node has thirty of these, and at a start all nodes come at once
        return {one(key, key): one(value, value) for key, value in labels.items()}


def daemon_set(pod: Pod) -> str:
    """Returns the name of the DaemonSet that controls the pod, or ""."""
    return daemon_set_of(pod.metadata.owner_references)


def health_pod(
    pod: Pod,
    node_uid: str,
    deleted_s: float | None = None,
    deleted_at: float = -math.inf,
    wanted: Wanted = NOTHING_MORE,
    texts: Texts | None = None,
) -> HealthPod:
    """Translates a pod on a node.

    node_uid: of its Node as known now, or "". deleted_s, deleted_at: as deleted_s() returns it, and by the monotonic
    clock.
    """
    meta, one = pod.metadata, (texts or Texts()).one
    # The first of two conditions of one type counts, as in Kubernetes.
    conditions = {condition.type: condition for condition in reversed(pod.status.conditions or ())}
    ready = conditions.get(contract.CONDITION_READY)
    containers_ready = conditions.get(contract.CONDITION_CONTAINERS_READY)
    node_healthy = conditions.get(contract.CONDITION_NODE_HEALTHY)
    faulty = _faulty(node_healthy, ready)  # readygate's own first: it knows the check, the kubelet only the container
    return HealthPod(
        name=f"{meta.namespace}/{meta.name}",
        uid=meta.uid,
        node=one(pod.spec.node_name),
        created=meta.creation_timestamp or "",
        terminating=meta.deletion_timestamp is not None,
        finished=pod.status.phase in FINISHED_PHASES,
        ready="" if ready is None else one(ready.status),
        ready_since="" if ready is None else ready.last_transition_time or "",
        ready_reason="" if ready is None else one(ready.reason),
        containers_ready="" if containers_ready is None else one(containers_ready.status),
        node_healthy="" if node_healthy is None else one(node_healthy.status),
        message=one_line(_words(faulty) if faulty is not None else _beside(node_healthy)),
        cause="" if faulty is None else one(faulty.reason),
        node_uid=node_uid,
        started=pod.status.start_time or "",
        node_healthy_since="" if node_healthy is None else node_healthy.last_transition_time or "",
        deleted="" if deleted_s is None else format_time(deleted_s),
        deleted_at=deleted_at,
        conditions={kind: conditions[kind].status for kind in wanted.pod if kind in conditions}
        if wanted.pod
        else NO_CONDITIONS,
    )


def deleted_s(pod: Pod) -> float | None:
    """Returns when the deletion of the pod was requested, in seconds since the epoch; None if it was not, or is
    unreadable.

    deletionTimestamp is later by the grace period, also when that was shortened since. The API server accepts a grace
    of centuries, so the difference may be anything.
    """
    try:
        ends_s = parse_time(pod.metadata.deletion_timestamp)
        told_s = None if ends_s is None else ends_s - (pod.metadata.deletion_grace_period_seconds or 0)
    except (msgspec.ValidationError, OverflowError):
        return None
    return told_s if told_s is not None and 0.0 <= told_s < YEAR_10000 else None


def _faulty(*conditions: Condition | None) -> Condition | None:
    """Returns the first condition that is not True."""
    there = (condition for condition in conditions if condition is not None)
    return next((condition for condition in there if condition.status != contract.STATUS_TRUE), None)


def _words(condition: Condition) -> str:
    return ": ".join(part for part in (condition.reason, condition.message) if part)


def _beside(ours: Condition | None) -> str:
    """Returns the addition to "healthy" in the message of readygate's condition, "" for none."""
    said = "" if ours is None else ours.message
    return said.removeprefix(contract.HEALTHY_BUT) if said.startswith(contract.HEALTHY_BUT) else ""


def age_s(node: Node, wall: float) -> float:
    """Returns the age of the Node object in seconds, 0 if unknown. wall: seconds since the epoch."""
    try:
        made = datetime.fromisoformat(node.metadata.creation_timestamp or "")
    except ValueError:
        return 0.0
    return max(0.0, wall - made.timestamp()) if made.tzinfo is not None else 0.0


def observed_node(
    node: Node, born_at: float, wanted: Wanted = NOTHING_MORE, texts: Texts | None = None
) -> ObservedNode:
    """Translates a Node. born_at: monotonic time when the Node object was created."""
    texts = texts or Texts()
    meta, ready, kept = node.metadata, None, []
    away = told_good = False
    for one in node.status.conditions or ():  # one loop: at a start all nodes come together
        kind = one.type
        if kind == contract.CONDITION_NODE_HEALTHY:
            told_good = told_good or _tells_good(one)
            continue
        if kind == contract.CONDITION_READY:
            ready = ready or one
        elif kind in OUT_OF_SERVICE:
            away = away or one.status == contract.STATUS_TRUE
        if kind in wanted.node:
            kept.append(_observed_condition(one, wanted, texts))
    ready = ready or Condition()
    return ObservedNode(
        name=meta.name,
        uid=meta.uid,
        created=meta.creation_timestamp or "",
        born_at=born_at,
        ready=ready.status,
        ready_since=ready.last_transition_time or "",
        labels=texts.labels(meta.labels or {}),
        conditions=tuple(kept),
        in_service=not (node.spec.unschedulable or meta.deletion_timestamp is not None or away),
        roles=tuple(
            Taint(texts.one(taint.key), texts.one(taint.value), texts.one(taint.effect))
            for taint in node.spec.taints or ()
            if taint.key.startswith(ROLE) and taint.effect in KEEPS_PODS_OFF
        ),
        told_good=told_good,
    )


def _tells_good(ours: Condition) -> bool:
    """Returns whether readygate's condition on the Node shows that it was healthy once. A condition that a gate has
    closed it shows that, too, unless the reason is a missing first health pod, or an order."""
    if ours.status == contract.STATUS_TRUE:
        return ours.reason == TOLD_HEALTHY
    return ours.reason not in ("", TOLD_NOT_YET_HEALTHY, TOLD_HELD_CLOSED)


def _observed_condition(condition: Condition, wanted: Wanted, texts: Texts) -> ObservedCondition:
    return ObservedCondition(
        type=texts.one(condition.type),
        status=texts.one(condition.status),
        reason=texts.one(condition.reason),
        message=one_line(condition.message),
        changed=condition.last_transition_time or "",
        seen=condition.last_heartbeat_time or "" if condition.type in wanted.aging else "",
    )


def pod_written(pod: Pod) -> str | None:
    """Returns when the kubelet last changed a condition of the pod."""
    return max((one.last_transition_time or "" for one in pod.status.conditions or ()), default=None)


def node_written(node: Node) -> str | None:
    """Returns when the kubelet last wrote a condition of the Node: every five minutes at least."""
    conditions = node.status.conditions or ()
    return max((one.last_heartbeat_time or one.last_transition_time or "" for one in conditions), default=None)


def renewal(lease: Lease) -> Renewal:
    """Translates a Lease in kube-node-lease, whose name is its node's."""
    duration_s = lease.spec.lease_duration_seconds
    return Renewal(
        lease.metadata.name,
        lease.spec.renew_time or "",
        DEFAULT_LEASE_DURATION_S if duration_s is None else duration_s,
    )


def listed_renewal(lease: Lease) -> Renewal:
    """Translates a listed Lease, with the API server's time, which is useful only in comparison with other Leases."""
    written = max((fields.time or "" for fields in lease.metadata.managed_fields or ()), default="")
    return replace(renewal(lease), written=written)
