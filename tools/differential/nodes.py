"""Nodes as somebody else may have written them, and what a kubelet finds and is configured with: drawn by chance."""

from random import Random
from typing import Any

from agent.kubelet.node.facts import ATTACHES
from kube.times import format_time
from tools.differential.worlds import maybe

NAME = "n"
LABELS = {
    "kubernetes.io/hostname": (NAME, "other"),
    "kubernetes.io/os": ("linux", "plan9"),
    "kubernetes.io/arch": ("amd64", "arm64"),
    "beta.kubernetes.io/os": ("linux", "plan9"),
    "topology.kubernetes.io/zone": ("a", "b", ""),
    "pool": ("x", "y"),
}
CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "FrequentReboots")
ADDRESSES = (
    ("InternalIP", "192.0.2.1"),
    ("InternalIP", "192.0.2.9"),
    ("Hostname", NAME),
    ("ExternalIP", "198.51.100.1"),
)
# Amounts that somebody else has written, each as the API server keeps it.
CAPACITY = {
    "cpu": ("4", "2"),
    "memory": ("8Gi", "4Gi"),
    "pods": ("110", "30"),
    "ephemeral-storage": ("10Gi",),
    "hugepages-2Mi": ("0", "4Mi", "8Gi"),
    "hugepages-1Gi": ("0", "1Gi"),
    "example.com/gpu": ("2",),
    "kubernetes.io/odd": ("1",),
}
RESERVED = {"cpu": ("100m", "0.25", "2"), "memory": ("512Mi", "1G"), "ephemeral-storage": ("1Gi", "100M")}
TOO_MUCH = {"cpu": "7", "memory": "20Gi", "ephemeral-storage": "11Gi"}
HARD = {
    "memory.available": ("100Mi", "10%", "33.3%"),
    "nodefs.available": ("1Gi", "12.5%"),
    "nodefs.inodesFree": ("5%",),
    "imagefs.available": ("15%",),
}


def drawn_reserved(random: Random) -> Any:
    """For the system and the kubelet, and hard thresholds; now and then more than there is."""
    found = {
        key: {name: random.choice(of) for name, of in RESERVED.items() if maybe(random, 0.2)}
        for key in ("system", "kube")
    }
    if maybe(random, 0.02):
        name = random.choice(tuple(TOO_MUCH))
        found["system"][name] = TOO_MUCH[name]
    return {**found, "hard": {name: random.choice(of) for name, of in HARD.items() if maybe(random, 0.2)}}


def drawn_found(random: Random) -> Any:
    """What a runtime and the volume and eviction managers know; volumes None: they do not yet."""
    handlers = ({"name": "", "mounts": True, "users": True}, {"name": "runsc", "mounts": False, "users": True})
    return {
        "images": [_image(random, n) for n in range(random.choice((0, 1, 3, 3, 60)))],
        "handlers": [handler for handler in handlers if maybe(random, 0.5)],
        "volumes": random.choice((None, [], ["kubernetes.io/csi/a"], ["kubernetes.io/csi/a", "kubernetes.io/nfs/b"])),
        "groups": random.choice((None, None, True, False)),
        "pressures": [kind for kind in CONDITIONS[1:4] if maybe(random, 0.3)],
    }


def _image(random: Random, number: int) -> Any:
    return {
        "id": f"sha256:{random.choice('abc')}{number}",
        "size": random.choice((0, 7, 7, 1000, random.randint(1, 10**9))),
        "digests": [f"r/i{number}@sha256:{n}" for n in range(random.choice((0, 1, 4)))],
        "tags": [f"r/i{number}:{n}" for n in range(random.choice((0, 1, 4)))],
    }


def drawn_node(random: Random, wall: float) -> Any:
    """One that somebody else has written."""
    labels = {k: random.choice(of) for k, of in LABELS.items() if maybe(random, 0.6)}
    capacity = {k: random.choice(of) for k, of in CAPACITY.items() if maybe(random, 0.5)}
    allocatable = {k: random.choice(of) for k, of in CAPACITY.items() if maybe(random, 0.5)}
    annotations = {ATTACHES: random.choice(("true", "true", ""))} if maybe(random, 0.3) else {}
    resources = {"capacity": {"pods": "110", **capacity}, "allocatable": {"pods": "110", **allocatable}}
    return {
        "metadata": {"name": NAME, "uid": "uid", "labels": labels, "annotations": {"theirs": "x", **annotations}},
        "status": {
            "addresses": [{"type": t, "address": a} for t, a in ADDRESSES if maybe(random, 0.5)],
            **{kind: amounts for kind, amounts in resources.items() if maybe(random, 0.9)},
            "conditions": [_condition(random, kind, wall) for kind in CONDITIONS if maybe(random, 0.7)],
            "nodeInfo": {"machineID": "machine", "kernelVersion": random.choice(("6.1", "6.0"))},
            **_of_runtime(random),
        },
    }


def _of_runtime(random: Random) -> Any:
    """What an earlier kubelet has left."""
    left = {
        "images": [{"names": ["old"], "sizeBytes": 5}],
        "runtimeHandlers": [{"name": "old", "features": {"userNamespaces": True}}],
        "volumesInUse": ["kubernetes.io/csi/old"],
        "features": {"supplementalGroupsPolicy": random.choice((True, False))},
        "declaredFeatures": ["Old"],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
    }
    return {key: value for key, value in left.items() if maybe(random, 0.3)}


def _condition(random: Random, kind: str, wall: float) -> Any:
    at = format_time(wall - random.choice((0, 1, 400)))
    reasons = ("KubeletReady", "KubeletNotReady", "NodeStatusUnknown", "")
    condition = {"type": kind, "status": random.choice(("True", "False", "Unknown")), "reason": random.choice(reasons)}
    if condition["reason"]:
        condition["message"] = random.choice(("kubelet is posting ready status", "said so"))
    return {**condition, "lastHeartbeatTime": at, "lastTransitionTime": at if maybe(random, 0.9) else None}
