"""Lease: a new one, and a renewal of one that was read. Fields that others wrote go back as they came."""

import json
from typing import Any

import msgspec

from agent.wire import model
from kube.contract import NAMESPACE_NODE_LEASE
from kube.times import format_micro_time

LeaseObject = dict[str, Any]
"""A whole Lease as the API server sent it. Nobody but this room looks into it."""


class _Shape(msgspec.Struct):
    metadata: dict[str, Any] | None = None
    spec: dict[str, Any] | None = None


_shape_decoder = msgspec.json.Decoder(_Shape)
_decoder = msgspec.json.Decoder(LeaseObject)


def parse_lease(raw: bytes) -> LeaseObject:
    """Raises msgspec.DecodeError if it is not an object, or its metadata or spec is none."""
    _shape_decoder.decode(raw)
    return _decoder.decode(raw)


def new_lease(spec: model.LeaseSpec, node: model.Node) -> bytes:
    """The Lease of the holder's name to create; it goes with `node`."""
    metadata: dict[str, Any] = {"name": spec.holder_identity, "namespace": NAMESPACE_NODE_LEASE}
    metadata["ownerReferences"] = _owners(node)
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": _write_spec(spec)}
    return json.dumps(lease).encode()


def has_owner(lease: LeaseObject) -> bool:
    return bool((lease.get("metadata") or {}).get("ownerReferences"))


def renewed_lease(latest: LeaseObject, spec: model.LeaseSpec, owner: model.Node | None) -> bytes:
    """`latest` with our fields, to replace it: its resourceVersion makes that fail if somebody else wrote meanwhile.

    Its holder stays as it is, also where it names none, as for the kubelet.
    """
    times = {key: value for key, value in _write_spec(spec).items() if key != "holderIdentity"}
    lease = {**latest, "spec": {**(latest.get("spec") or {}), **times}}
    if owner is not None:
        lease["metadata"] = {**(latest.get("metadata") or {}), "ownerReferences": _owners(owner)}
    return json.dumps(lease).encode()


def _owners(node: model.Node) -> list[dict[str, str]]:
    return [{"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}]


def _write_spec(spec: model.LeaseSpec) -> dict[str, Any]:
    return {
        "holderIdentity": spec.holder_identity,
        "leaseDurationSeconds": spec.duration_s,
        "renewTime": format_micro_time(spec.renew_time),
    }


def beat(node_name: str, *, duration_s: int, renew_time: float, owner_uid: str = "") -> bytes:
    """A merge patch of an agent's own Lease, named after its node. owner_uid: of that Node, to make it the owner."""
    patch: dict[str, Any] = {"spec": _write_spec(model.LeaseSpec(node_name, duration_s, renew_time))}
    if owner_uid:
        patch["metadata"] = {"ownerReferences": _owners(model.Node(node_name, owner_uid))}
    return json.dumps(patch).encode()


def new_beat(node_name: str, namespace: str, node_uid: str, *, duration_s: int, renew_time: float) -> bytes:
    """That Lease, to create; it goes with the Node, where its uid is known."""
    metadata: dict[str, Any] = {"name": node_name, "namespace": namespace}
    if node_uid:
        metadata["ownerReferences"] = _owners(model.Node(node_name, node_uid))
    spec = _write_spec(model.LeaseSpec(node_name, duration_s, renew_time))
    return json.dumps(
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
    ).encode()


class _Renewed(msgspec.Struct, rename="camel"):
    renew_time: str | None = None


class _Renewal(msgspec.Struct):
    spec: _Renewed | None = None


_renewal_decoder = msgspec.json.Decoder(_Renewal)


def renew_time_of(raw: bytes) -> str:
    """When the Lease was renewed last, as its holder wrote it; "" if it does not say. Raises msgspec.DecodeError."""
    spec = _renewal_decoder.decode(raw).spec
    return "" if spec is None else spec.renew_time or ""
