"""Pure: JSON of what the outlets read and write: the Lease of the leader."""

from typing import Any

import msgspec

from extender.outlets.election import NOBODY, Record
from kube import contract

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


def write_lease(record: Record, latest: LeaseObject | None) -> bytes:
    """latest: what it replaces, with its resourceVersion, so that it fails if somebody else wrote meanwhile; None for a
    new one."""
    base: LeaseObject = latest or {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": contract.NAME_EXTENDER,
            "namespace": contract.NAMESPACE,
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
