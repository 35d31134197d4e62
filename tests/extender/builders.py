"""Nodes, health pods and Leases with only the fields a test cares about: as JSON, and as the extender reads them."""

import json

import msgspec

from extender.cluster import observed
from extender.policy.evidence import HealthPod, ObservedNode

CREATED = "2026-01-01T00:00:00Z"
LATER = "2026-01-01T00:10:00Z"
AGENT_LABELS = {"app.kubernetes.io/name": "readygate-agent"}


def owner(name="readygate-agent", **changes):
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": "ds", "controller": True} | changes


def conditions(**statuses):
    """Ready="True", NodeHealthy="False": status by type, ours by its short name."""
    names = {"NodeHealthy": "readygate.dev/NodeHealthy"}
    return [
        {"type": names.get(kind, kind), "status": status, "lastTransitionTime": CREATED, "reason": "R", "message": "m"}
        for kind, status in statuses.items()
    ]


def node_json(name, *, uid=None, created=CREATED, **statuses):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": uid or f"uid-{name}", "creationTimestamp": created},
        "status": {"conditions": conditions(**statuses)},
    }


def pod_json(node, *, name=None, uid=None, created=CREATED, namespace="readygate-system", owners=None, **statuses):
    """A health pod on `node`; Ready="True" unless statuses say otherwise."""
    name = name or f"agent-{node}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"uid-{name}",
            "creationTimestamp": created,
            "labels": AGENT_LABELS,
            "ownerReferences": [owner()] if owners is None else owners,
        },
        "spec": {"nodeName": node},
        "status": {"phase": "Running", "conditions": conditions(**(statuses or {"Ready": "True"}))},
    }


def lease_json(node, renew_time, duration_s=40, written=None):
    """written: when, by the API server's clock."""
    fields = [] if written is None else [{"manager": "kubelet", "operation": "Update", "time": written}]
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": node, "namespace": "kube-node-lease", "uid": f"lease-{node}", "managedFields": fields},
        "spec": {"renewTime": renew_time, "leaseDurationSeconds": duration_s},
    }


def seen(kind, value):
    """The object as the extender decodes it off the wire."""
    return msgspec.json.decode(json.dumps(value).encode(), type=kind)


def node(name, **fields):
    return seen(observed.Node, node_json(name, **fields))


def pod(on, **fields):
    return seen(observed.Pod, pod_json(on, **fields))


def lease(on, renew_time, **fields):
    return seen(observed.Lease, lease_json(on, renew_time, **fields))


def observed_node(name="n1", *, uid="uid-n1", created=CREATED, born_at=100.0, ready="True"):
    return ObservedNode(name=name, uid=uid, created=created, born_at=born_at, ready=ready)


def health_pod(name="readygate-system/agent", *, node="n1", created=CREATED, ready="True", **fields):
    return HealthPod(name=name, uid=fields.pop("uid", name), node=node, created=created, ready=ready, **fields)
