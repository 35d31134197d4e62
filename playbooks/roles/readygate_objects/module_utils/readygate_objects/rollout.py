"""Pure: the verdict on the roll-out of a DaemonSet, from its observed state. Time is an argument.

A node that was not Ready before, or is dead, is not waited for and does not count in the batch. A node that fails with
the new version counts, so a broken version stops at one batch.
"""

import math
from typing import NamedTuple

# Reasons of the kubelet why a container does not run, and how long each may last before it counts as a failure.
GRACE_S = {
    "ErrImagePull": 20,
    "ImagePullBackOff": 10,
    "ErrImageNeverPull": 10,
    "InvalidImageName": 0,
    "CreateContainerConfigError": 20,
    "CreateContainerError": 20,
    "RunContainerError": 20,
    "CrashLoopBackOff": 0,
    "FailedMount": 30,
    "Closed": 60,  # the new agent reports that its node is not healthy
}
REFUSED_S = 15  # the API server refuses to create pods
SETTLED_S = 30  # beyond minReadySeconds: no progress, and enough nodes are Ready
STALLED_S = 300  # no progress, and not enough nodes are Ready
WAVE_S = 60  # time of a batch in addition to minReadySeconds: pull, start, first checks
LONGEST_TEXT = 300
NODE_HEALTHY = "readygate.dev/NodeHealthy"


class Pod(NamedTuple):
    """One pod. revision: hash of its ControllerRevision. kind, cause: why it is not Ready; "" if it is, or unknown."""

    node: str
    revision: str
    ready: bool = False
    ending: bool = False
    kind: str = ""
    cause: str = ""


class Look(NamedTuple):
    """The state of a DaemonSet at one moment.

    revision: the newest one; "" before the controller has observed it. dead: nodes that are not Ready themselves.
    refused: why no pod may be created, in the API server's words. first: there was no version before, so no batch
    follows that minReadySeconds would hold back.
    """

    revision: str
    desired: int
    available: int
    pods: list
    dead: frozenset = frozenset()
    refused: str = ""
    batch: object = 1
    min_ready_s: int = 0
    first: bool = False


class Verdict(NamedTuple):
    """The verdict. state: waits, done or failed. max_unavailable: a new value for the DaemonSet; None: no change."""

    state: str
    text: str
    max_unavailable: object = None


def judge(seen: Look, memory: dict, percent: int, limit_s: float, monotonic: float) -> Verdict:
    """The verdict on the roll-out.

    memory: JSON; {"already": nodes that were not Ready before it}, and the state of this function between two calls.
    percent: share of the nodes that must be Ready in the end.
    """
    memory.setdefault("started", monotonic)
    new = {pod.node: pod for pod in seen.pods if pod.revision == seen.revision and not pod.ending}
    nodes = {pod.node for pod in seen.pods}
    excused = nodes & (seen.dead | set(memory.get("already", ())))
    behind = sorted(nodes - new.keys() - excused)
    waiting = sorted(node for node in new.keys() - excused if not new[node].ready)
    missing = max(0, seen.desired - len(nodes))
    failing = _failing([new[node] for node in waiting], memory, monotonic)
    alive = seen.desired - len(excused)
    well = sum(1 for node in new.keys() - excused if new[node].ready)
    enough = well * 100 >= alive * percent
    batch = nodes_of(seen.batch, seen.desired)
    still_s = _still_s(memory, [seen.revision, len(new), well, missing, min(seen.available, well)], monotonic)
    causes = [_cause_of(pod) for pod in failing] or [_cause_of(new[node]) for node in waiting if new[node].cause]
    causes += [f"{missing} pods cannot be created: {seen.refused}"] if missing and seen.refused else []
    counted = f"{len(new)} of {seen.desired} nodes have the new version, {well} of them Ready"
    why = "; ".join(causes[:3]) + (f"; and {len(causes) - 3} more" if len(causes) > 3 else "")
    left_out = _left_out(excused, seen.dead, new)

    if not seen.revision:
        if still_s > STALLED_S:
            return Verdict("failed", "the DaemonSet controller has not observed it: does kube-controller-manager work?")
        return Verdict("waits", "the DaemonSet controller has not observed it yet")
    if seen.desired == 0 and still_s > SETTLED_S:
        return Verdict("failed", "it may run on no node: check its node selector and the image's architectures")
    if missing and seen.refused and _lasts("refused", memory, monotonic) >= REFUSED_S:
        return Verdict("failed", _join(counted, why))
    if (behind and len(failing) >= batch) or len(failing) > alive - math.ceil(alive * percent / 100.0):
        return Verdict("failed", _join(counted, why))
    all_there = seen.desired > 0 and not behind and not missing
    if all_there and not waiting and (seen.first or seen.available >= well):
        return Verdict("done", _join(counted, left_out))
    late = monotonic - memory["started"] > limit_s
    if all_there and enough and (late or still_s >= seen.min_ready_s + SETTLED_S):
        return Verdict("done", _join(counted, why, left_out))
    if late or still_s > STALLED_S + seen.min_ready_s:
        after = f"it took longer than {limit_s:.0f} s" if late else f"there was no progress for {still_s:.0f} s"
        return Verdict("failed", _join(after, counted, why or _unexplained(behind, missing), left_out))
    unwell = [node for node in excused if not (node in new and new[node].ready)]
    return Verdict("waits", _join(counted, why, left_out), len(unwell) + batch if behind else None)


def limit_s(seconds: int, nodes: int, batch: object, min_ready_s: int) -> float:
    """How long a roll-out may take: `seconds`, or by its batches and the controller's rate of new pods if that is 0."""
    waves = math.ceil(nodes / float(nodes_of(batch, nodes)))
    return float(seconds) or STALLED_S + waves * (min_ready_s + WAVE_S) + nodes / 2.0


def nodes_of(batch: object, desired: int) -> int:
    """maxUnavailable in nodes, as the DaemonSet controller rounds it."""
    text = str(batch)
    return max(1, math.ceil(desired * int(text[:-1]) / 100.0) if text.endswith("%") else int(text))


def pod_of(pod: dict, events: dict) -> Pod:
    """The pod's state. events: name of a pod -> (reason, message) of its last warning."""
    meta, spec, status = pod["metadata"], pod.get("spec", {}), pod.get("status", {})
    conditions = {each["type"]: each for each in status.get("conditions", ())}
    ready = conditions.get("Ready", {}).get("status") == "True"
    kind, cause = ("", "") if ready else _cause(status, conditions, events.get(meta["name"], ("", "")))
    return Pod(
        spec.get("nodeName") or _pinned(spec) or meta["name"],
        meta.get("labels", {}).get("controller-revision-hash", ""),
        ready,
        "deletionTimestamp" in meta,
        kind,
        short(cause),
    )


def previous(revisions: list, pods: list) -> dict:
    """The ControllerRevision to go back to: the older one with the most Ready pods, or the newest older one; or {}."""
    older = sorted(revisions, key=lambda each: each["revision"])[:-1]
    ready = [pod.revision for pod in pods if pod.ready and not pod.ending]
    return max(older, key=lambda each: (ready.count(hash_of(each)), each["revision"])) if older else {}


def restored(daemon_set: dict, revision: dict) -> dict:
    """The DaemonSet with the pod template of the revision, ready to apply."""
    template = {key: value for key, value in revision["data"]["spec"]["template"].items() if key != "$patch"}
    meta = {
        key: daemon_set["metadata"][key] for key in ("name", "namespace", "labels") if key in daemon_set["metadata"]
    }
    spec = dict(daemon_set["spec"], template=template)
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta, "spec": spec}


def _failing(pods: list, memory: dict, monotonic: float) -> list:
    """The pods that have had the same cause for longer than its grace."""
    before, memory["since"] = memory.get("since", {}), {}
    for pod in pods:
        if pod.kind in GRACE_S:
            key = pod.node + " " + pod.kind.replace("ImagePullBackOff", "ErrImagePull")
            memory["since"][key] = before.get(key, monotonic)
    lasts = {key: monotonic - since for key, since in memory["since"].items()}
    key_of = {pod: pod.node + " " + pod.kind.replace("ImagePullBackOff", "ErrImagePull") for pod in pods}
    return [pod for pod in pods if pod.kind in GRACE_S and lasts[key_of[pod]] >= GRACE_S[pod.kind]]


def _lasts(name: str, memory: dict, monotonic: float) -> float:
    return monotonic - memory.setdefault(name, monotonic)


def _still_s(memory: dict, mark: list, monotonic: float) -> float:
    if memory.get("mark") != mark:
        memory.update(mark=mark, moved=monotonic)
    return monotonic - memory["moved"]


def _cause(status: dict, conditions: dict, event: tuple) -> tuple:
    for each in status.get("initContainerStatuses", []) + status.get("containerStatuses", []):
        waiting, ended = each.get("state", {}).get("waiting", {}), each.get("lastState", {}).get("terminated", {})
        if waiting.get("reason") in GRACE_S or each.get("restartCount", 0) > 1:
            kind = waiting.get("reason") if waiting.get("reason") in GRACE_S else "CrashLoopBackOff"
            if kind == "CrashLoopBackOff":
                lines = (ended.get("message") or ended.get("reason") or "").strip().splitlines()
                return kind, "it ends with code {}: {}".format(ended.get("exitCode", "?"), lines[-1] if lines else "")
            return kind, "{}: {}".format(kind, waiting.get("message", ""))
    healthy = conditions.get(NODE_HEALTHY, {})
    if healthy.get("status") == "False" and healthy.get("reason") != "Starting":
        return "Closed", "closed: {}".format(healthy.get("message") or healthy.get("reason", ""))
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return "Unscheduled", "not placed: {}".format(scheduled.get("message", ""))
    # An Event outlives its cause, so it counts only for a pod whose container has never run.
    if event[0] and not any(each.get("state", {}).get("running") for each in status.get("containerStatuses", ())):
        final = event[0] == "FailedMount" and "hostPath type check failed" in event[1]
        return "FailedMount" if final else "Event", "{}: {}".format(*event)
    return "", ""


def _pinned(spec: dict) -> str:
    """The node for which the DaemonSet controller has made a pod that is not bound yet."""
    affinity = (
        spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    )
    fields = [field for term in affinity.get("nodeSelectorTerms", ()) for field in term.get("matchFields", ())]
    return fields[0]["values"][0] if fields else ""


def hash_of(revision: dict) -> str:
    return revision["metadata"].get("labels", {}).get("controller-revision-hash", "")


def _left_out(excused: set, dead: frozenset, new: dict) -> str:
    unwell = sorted(node for node in excused if not (node in new and new[node].ready))
    texts = ["{} ({})".format(node, "dead" if node in dead else "not Ready before") for node in unwell]
    more = f", and {len(texts) - 5} more" if len(texts) > 5 else ""
    return "not waited for: " + ", ".join(texts[:5]) + more if texts else ""


def _unexplained(behind: list, missing: int) -> str:
    of_old = "{} still have the old version ({})".format(len(behind), ", ".join(behind[:3])) if behind else ""
    return _join(of_old, f"{missing} have none" if missing else "")


def _cause_of(pod: Pod) -> str:
    return f"{pod.node}: {pod.cause}"


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_TEXT else line[: LONGEST_TEXT - 4] + " ..."
