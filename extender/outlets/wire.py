"""Pure: JSON of the objects that outlets read and write: the leader's Lease, the condition of a Node, an Event."""

from typing import Any

import msgspec

from extender.outlets.election import NOBODY, Record
from extender.outlets.event_text import EventText
from extender.outlets.node_condition_text import Standing
from extender.outlets.observed_conditions import ObservedCondition, mark_of
from kube import contract
from kube.objects import BareMeta, Condition
from kube.times import format_time

NAME_LIMIT = 253  # characters of an object's name

LeaseObject = dict[str, Any]
"""A whole Lease as the API server sent it: what others wrote into it goes back as it came."""


class _LeaseSpec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None
    acquire_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct):
    spec: _LeaseSpec | None = None


class _NodeStatus(msgspec.Struct):
    conditions: list[Condition] | None = None


class _Node(msgspec.Struct):
    metadata: BareMeta
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


_node = msgspec.json.Decoder(_Node)
_lease = msgspec.json.Decoder(_Lease)
_object = msgspec.json.Decoder(LeaseObject)


def read_lease(raw: bytes) -> tuple[LeaseObject, Record]:
    """Raises msgspec.DecodeError if it is no Lease."""
    spec = _lease.decode(raw).spec or _LeaseSpec()
    record = Record(
        holder=spec.holder_identity or "",
        duration_s=spec.lease_duration_seconds or NOBODY.duration_s,
        renewed=spec.renew_time or "",
        acquired=spec.acquire_time or "",
        transitions=spec.lease_transitions or 0,
    )
    return _object.decode(raw), record


def write_lease(record: Record, latest: LeaseObject | None, namespace: str) -> bytes:
    """latest: the replaced Lease with its resourceVersion, so that the write fails if another replica wrote in the
    meantime; None for a new one."""
    base: LeaseObject = latest or {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": contract.NAME_EXTENDER,
            "namespace": namespace,
            "labels": {contract.LABEL_NAME: contract.NAME_EXTENDER, "app.kubernetes.io/part-of": "readygate"},
        },
    }
    spec = {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.duration_s,
        "renewTime": record.renewed,
        "acquireTime": record.acquired,
        "leaseTransitions": record.transitions,
    }
    return msgspec.json.encode({**base, "spec": {**(base.get("spec") or {}), **spec}})


def write_condition(uid: str, standing: Standing | None, *, changed: str, seen: str) -> bytes:
    """Returns the strategic merge patch of readygate's condition of the Node with this uid; None removes it."""
    condition: dict[str, str] = {"type": contract.CONDITION_NODE_HEALTHY}
    if standing is None:
        condition["$patch"] = "delete"
    else:
        condition |= {
            "status": standing.status,
            "reason": standing.reason,
            "message": standing.message,
            "lastTransitionTime": changed,
            "lastHeartbeatTime": seen,
        }
    return msgspec.json.encode({"metadata": {"uid": uid}, "status": {"conditions": [condition]}})


def read_mark(raw: bytes) -> ObservedCondition:
    """Reads readygate's condition from the Node in an answer. Raises msgspec.DecodeError if it is no Node."""
    return mark_of(_node.decode(raw))


def event_name(about: str, unique: str) -> str:
    """Returns a name for an Event on the object of that name; unique: letters and digits that no other Event has."""
    return f"{about[: NAME_LIMIT - 1 - len(unique)].rstrip('-.')}.{unique}"


def write_event(occasion: EventText, *, name: str, namespace: str, wall: float) -> bytes:
    """Returns a core/v1 Event, which kubectl describe shows by the object's uid. wall: when it happened."""
    about = occasion.about
    at = format_time(wall)
    involved = {"apiVersion": "v1", "kind": about.kind, "name": about.name, "uid": about.uid}
    if about.namespace:
        involved["namespace"] = about.namespace
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": involved,
            "type": "Warning" if occasion.warning else "Normal",
            "reason": occasion.reason,
            "message": occasion.message,
            "source": {"component": contract.NAME_EXTENDER},
            "reportingComponent": contract.NAME_EXTENDER,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
    )
