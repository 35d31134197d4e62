"""Pure: what becomes of the roll-out of a DaemonSet, by what is seen of it. Time is an argument.

A node that was not well before, or is dead, is not waited for and takes nothing of the batch. One that fails with the
new version counts, so a broken version stops at one batch.
"""

import math
from typing import NamedTuple

# What keeps a container from running, in the kubelet's words, and how long it may last before we believe it.
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
    "Closed": 60,  # the new agent says that its node is not fit
}
REFUSED_S = 15  # pods that may not even be created
SETTLED_S = 30  # beyond minReadySeconds: nothing moves, and enough is well
STALLED_S = 300  # nothing moves, and not enough is well
WAVE_S = 60  # what a wave of a roll-out takes beside minReadySeconds: pull, start, first checks
LONGEST_TEXT = 300
NODE_HEALTHY = "readygate.dev/NodeHealthy"


class Pod(NamedTuple):
    """revision: hash of its ControllerRevision. kind, cause: why it is not Ready; "" if it is, or nothing is known."""

    node: str
    revision: str
    ready: bool = False
    ending: bool = False
    kind: str = ""
    cause: str = ""


class Look(NamedTuple):
    """What is seen at a moment. revision: of the newest; "" before the controller has seen it. dead: nodes that are not
    Ready themselves. refused: why no pod may be created, in the API server's words. first: there was no version before,
    so that no batch follows that minReadySeconds would hold back."""

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
    """state: waits, done or failed. max_unavailable: what the DaemonSet should have now; None: as it is."""

    state: str
    text: str
    max_unavailable: object = None


def judge(seen: Look, memory: dict, percent: int, limit_s: float, monotonic: float) -> Verdict:
    """What becomes of the roll-out. memory: {"already": nodes that were not well before it}, and whatever this function
    keeps there from one look to the next; JSON. percent: share of the nodes that must be well in the end."""
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
    causes = [_told(pod) for pod in failing] or [_told(new[node]) for node in waiting if new[node].cause]
    causes += [f"{missing} pods may not be created: {seen.refused}"] if missing and seen.refused else []
    counted = f"{len(new)} of {seen.desired} nodes have the new version, {well} of them Ready"
    why = "; ".join(causes[:3]) + (f"; and {len(causes) - 3} more" if len(causes) > 3 else "")
    left_out = _left_out(excused, seen.dead, new)

    if not seen.revision:
        if still_s > STALLED_S:
            return Verdict("failed", "the DaemonSet controller has not looked at it: is kube-controller-manager well?")
        return Verdict("waits", "the DaemonSet controller has not looked at it yet")
    if seen.desired == 0 and still_s > SETTLED_S:
        return Verdict(
            "failed", "no node is one that it may run on: see its node selector and the image's architectures"
        )
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
        after = f"it took longer than {limit_s:.0f} s" if late else f"nothing has moved for {still_s:.0f} s"
        return Verdict("failed", _join(after, counted, why or _nameless(behind, missing), left_out))
    unwell = [node for node in excused if not (node in new and new[node].ready)]
    return Verdict("waits", _join(counted, why, left_out), len(unwell) + batch if behind else None)


def limit_s(seconds: int, nodes: int, batch: object, min_ready_s: int) -> float:
    """How long a roll-out may take: as said, or by its waves; the controller also makes only so many pods a second."""
    waves = math.ceil(nodes / float(nodes_of(batch, nodes)))
    return float(seconds) or STALLED_S + waves * (min_ready_s + WAVE_S) + nodes / 2.0


def nodes_of(batch: object, desired: int) -> int:
    """maxUnavailable in nodes, as the DaemonSet controller rounds it."""
    text = str(batch)
    return max(1, math.ceil(desired * int(text[:-1]) / 100.0) if text.endswith("%") else int(text))


def pod_of(pod: dict, events: dict) -> Pod:
    """events: name of a pod -> (reason, message) of its last warning."""
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
    """The ControllerRevision to go back to: of the older ones that of the most Ready pods, or the newest; or {}."""
    older = sorted(revisions, key=lambda each: each["revision"])[:-1]
    ready = [pod.revision for pod in pods if pod.ready and not pod.ending]
    return max(older, key=lambda each: (ready.count(hash_of(each)), each["revision"])) if older else {}


def restored(daemon_set: dict, revision: dict) -> dict:
    """The DaemonSet with the pod template of the revision, to be applied."""
    template = {key: value for key, value in revision["data"]["spec"]["template"].items() if key != "$patch"}
    meta = {
        key: daemon_set["metadata"][key] for key in ("name", "namespace", "labels") if key in daemon_set["metadata"]
    }
    spec = dict(daemon_set["spec"], template=template)
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta, "spec": spec}


def _failing(pods: list, memory: dict, monotonic: float) -> list:
    """Those that have had the same cause for so long that it will not go by itself."""
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
                said = (ended.get("message") or ended.get("reason") or "").strip().splitlines()
                return kind, "it ends with code {}: {}".format(ended.get("exitCode", "?"), said[-1] if said else "")
            return kind, "{}: {}".format(kind, waiting.get("message", ""))
    healthy = conditions.get(NODE_HEALTHY, {})
    if healthy.get("status") == "False" and healthy.get("reason") != "Starting":
        return "Closed", "closed: {}".format(healthy.get("message") or healthy.get("reason", ""))
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return "Unscheduled", "not placed: {}".format(scheduled.get("message", ""))
    # An event stays after its cause has gone: it speaks for a pod whose container has never run.
    if event[0] and not any(each.get("state", {}).get("running") for each in status.get("containerStatuses", ())):
        final = event[0] == "FailedMount" and "hostPath type check failed" in event[1]
        return "FailedMount" if final else "Event", "{}: {}".format(*event)
    return "", ""


def _pinned(spec: dict) -> str:
    """The node that a pod of a DaemonSet is for before it is bound."""
    affinity = (
        spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    )
    fields = [field for term in affinity.get("nodeSelectorTerms", ()) for field in term.get("matchFields", ())]
    return fields[0]["values"][0] if fields else ""


def hash_of(revision: dict) -> str:
    return revision["metadata"].get("labels", {}).get("controller-revision-hash", "")


def _left_out(excused: set, dead: frozenset, new: dict) -> str:
    unwell = sorted(node for node in excused if not (node in new and new[node].ready))
    told = ["{} ({})".format(node, "dead" if node in dead else "not well before") for node in unwell]
    more = f", and {len(told) - 5} more" if len(told) > 5 else ""
    return "not waited for: " + ", ".join(told[:5]) + more if told else ""


def _nameless(behind: list, missing: int) -> str:
    of_old = "{} still have the old version ({})".format(len(behind), ", ".join(behind[:3])) if behind else ""
    return _join(of_old, f"{missing} have none" if missing else "")


def _told(pod: Pod) -> str:
    return f"{pod.node}: {pod.cause}"


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_TEXT else line[: LONGEST_TEXT - 4] + " ..."
