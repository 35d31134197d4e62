"""Builds recordings: nodes, health pods, and Leases that are always renewed."""

import msgspec

from cli.replay import recording
from cli.replay.recording import Head, Line

AT = 1_790_000_000.0
PODS = recording.of_pods("readygate-system", "app.kubernetes.io/name=readygate-agent")
MADE = "2026-09-01T00:00:00Z"
OWNER = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "readygate-agent", "controller": True}


def node(name):
    ready = {"type": "Ready", "status": "True"}
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "creationTimestamp": MADE},
        "status": {"conditions": [ready]},
    }


def pod(name, ready, *, message=""):
    status = "True" if ready else "False"
    condition = {"type": "Ready", "status": status, "reason": "ContainersNotReady", "message": message}
    return {
        "metadata": {
            "name": f"health-{name}",
            "namespace": "readygate-system",
            "uid": f"pod-{name}",
            "creationTimestamp": MADE,
            "ownerReferences": [OWNER],
        },
        "spec": {"nodeName": name},
        "status": {"phase": "Running", "startTime": MADE, "conditions": [condition]},
    }


def line(after_s, do, of, *objects):
    return Line(AT + after_s, do, of, [msgspec.Raw(msgspec.json.encode(one)) for one in objects])


def names(number):
    return [f"n-{i:02d}" for i in range(number)]


def start(number):
    """So many nodes, all healthy."""
    every = names(number)
    return [
        line(0, "replace", recording.NODES, *map(node, every)),
        line(0, "replace", PODS, *(pod(name, ready=True) for name in every)),
    ]


def turns(after_s, name, ready):
    return line(after_s, "upsert", PODS, pod(name, ready))


def end(after_s):
    return Line(AT + after_s, "end")


def head(configuration=""):
    return Head(recording.FORMAT, "0.1.0", AT, configuration)


def file_of(path, lines, configuration=""):
    path.write_bytes(b"".join(map(recording.written, [head(configuration), *lines])))
    return path
