"""Pure: the pods in which a new image reads its new configuration before a roll-out, and the outcome of one.

They have no priority class, because the kubelet would evict pods of a full node for a critical one.
"""

import copy

from ansible.module_utils.readygate_objects.rollout import GRACE_S, pod_of, short

NAME = "readygate-trial"
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": "readygate"}
ARCH = "kubernetes.io/arch"


def trial_nodes(daemon_set: dict, nodes: list) -> dict:
    """One Ready node that the DaemonSet may run on for each processor architecture: architecture -> name."""
    spec, found = daemon_set["spec"]["template"]["spec"], {}
    for node in sorted(nodes, key=lambda each: (bool(each["spec"].get("unschedulable")), each["metadata"]["name"])):
        labels = node["metadata"].get("labels", {})
        if _ready(node) and _selected(spec, labels):
            found.setdefault(labels.get(ARCH, ""), node["metadata"]["name"])
    return found


def trial_pod(daemon_set: dict, node: str, arch: str, seconds: int) -> dict:
    """A pod like the agent's on that node, which ends when it has read its configuration. It needs no scheduler."""
    spec = copy.deepcopy(daemon_set["spec"]["template"]["spec"])
    for name in ("readinessGates", "affinity", "nodeSelector", "serviceAccountName", "priorityClassName"):
        spec.pop(name, None)
    for container in spec["containers"] + spec.get("initContainers", []):
        resources = container.get("resources", {})
        # Explicit, because missing requests default to the limits.
        resources["requests"] = {name: "0" for part in ("requests", "limits") for name in resources.get(part, {})}
        container["resources"] = resources
    for container in spec["containers"]:
        container["command"] = container["command"] + ["--check"]
        for probe in ("readinessProbe", "livenessProbe", "startupProbe"):
            container.pop(probe, None)
    spec.update(nodeName=node, restartPolicy="Never", automountServiceAccountToken=False, activeDeadlineSeconds=seconds)
    metadata = {
        "name": f"{NAME}-{arch}".rstrip("-"),
        "namespace": daemon_set["metadata"]["namespace"],
        "labels": LABELS,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def turned_away(pod: dict) -> str:
    """Why the kubelet has rejected the pod, if another node may have room; "" otherwise."""
    status = pod.get("status", {})
    reason = status.get("reason", "") if status.get("phase") == "Failed" else ""
    if not reason.startswith("OutOf") and (reason != "Evicted" or status.get("containerStatuses")):
        return ""
    return short("{}: {}".format(reason, status.get("message", "")))


def outcome(pod: dict, events: dict, memory: dict, monotonic: float, lines: int = 1) -> tuple:
    """(ended, why): False while the outcome is unknown; why is "" if the trial succeeded.

    events: as in pod_of. memory: state of this pod between two calls, {} at first. lines: how many of its last log
    lines are shown, the last one first.
    """
    status, seen = pod.get("status", {}), pod_of(pod, events)
    if status.get("phase") == "Succeeded":
        return True, ""
    if status.get("phase") == "Failed":
        ended = [each.get("state", {}).get("terminated", {}) for each in status.get("containerStatuses", ())]
        texts = [one.get("message", "").strip().splitlines()[-lines:] for one in ended]
        words = [text for text in texts if text] or [[status.get("message") or status.get("reason") or "it failed"]]
        last, before = short(words[0][-1]), " | ".join(reversed(words[0][:-1]))
        return True, f"{last} (before that: {short(before)})" if before else last
    if memory.get("kind") != seen.kind:
        memory.update(kind=seen.kind, since=monotonic)
    lasting = seen.kind in GRACE_S and monotonic - memory["since"] >= GRACE_S[seen.kind]
    return lasting, seen.cause


def _ready(node: dict) -> bool:
    conditions = {each["type"]: each["status"] for each in node.get("status", {}).get("conditions", ())}
    return conditions.get("Ready") == "True" and "deletionTimestamp" not in node["metadata"]


def _selected(spec: dict, labels: dict) -> bool:
    if any(labels.get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
        return False
    affinity = (
        spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    )
    terms = affinity.get("nodeSelectorTerms", [])
    return not terms or any(
        all(labels.get(each["key"]) in each["values"] for each in term.get("matchExpressions", ())) for term in terms
    )
