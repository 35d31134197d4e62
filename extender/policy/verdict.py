"""Pure: is one node open for new pods, and if not, why. Knows no API object, no clock and no lock.

The table, first match wins:

    heartbeat too old                                   closed, node lost
    a good health pod, node reports itself not Ready    closed, unhealthy
    a good health pod, node's Ready is Unknown          closed, node lost
    a good health pod                                   open (in a roll-out the best pod speaks)
    no usable health pod, never a good one              closed, no health pod
    no usable health pod for less than the grace        the last verdict
    no usable health pod                                closed, no health pod
    gate condition False                                closed, unhealthy
    gate condition neither True nor False               closed, unknown
    Ready False without a reason, ContainersReady True  closed, node lost
    Ready Unknown                                       closed, unknown
    else                                                closed, not ready

A process that starts has no memory of a node. What its health pods still show is as good: one that was good when it was
told to end makes the last verdict open, and the grace begin at that time. After it is gone nothing tells.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from extender.policy import reasons
from extender.policy.evidence import HealthPod, NodeEvidence, ObservedNode
from kube import contract

# A kubelet that finds a pod bound to it which it does not run says so within seconds. So a pod that is still Ready so
# long after its node's Node object was made anew was Ready all the time: somebody deleted the object, the kubelet
# registered again and had nothing new to report (since 1.35 its restart changes no status: kubernetes gate
# ChangeContainerStatusOnKubeletRestart).
OLD_POD_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Memory:
    """What a node's next verdict needs of the past. Belongs to one Node object: a new uid starts anew."""

    node_uid: str = ""
    ever_good: bool = False
    last: str = reasons.CLOSED_NO_HEALTH_POD
    missing_since: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """reason: one of `reasons`. pod: `namespace/name` of the deciding health pod. evidence: text for people.

    changes_at: monotonic seconds when the verdict must be made again although nothing happened; None if never.
    """

    reason: str
    pod: str = ""
    evidence: str = ""
    changes_at: float | None = None


def belongs(pod: HealthPod, node: ObservedNode, monotonic: float) -> bool:
    """Whether the pod runs on this Node object, not on an earlier one of the same name.

    A pod that outlived its Node object counts again when it became Ready after the new one was made (then its kubelet
    has probed it anew), or is Ready OLD_POD_LIMIT_S later.
    """
    if monotonic - node.born_at >= OLD_POD_LIMIT_S:
        return True
    if pod.node_uid and pod.node_uid != node.uid:
        return pod.ready_since > node.created
    return pod.created >= node.created or pod.ready_since >= node.created


def alive(pod: HealthPod, node: ObservedNode) -> bool:
    return not pod.terminating and not pod.finished and pod.node == node.name


def good(pod: HealthPod) -> bool:
    """Ready, and our own condition, if present, agrees: Ready may lag the gate (kubernetes issues 86485, 122002)."""
    return pod.ready == contract.STATUS_TRUE and pod.node_healthy in ("", contract.STATUS_TRUE)


def good_when_deleted(pod: HealthPod) -> bool:
    """Whether a pod that terminates was good until it was told to. What has turned since then did so because of it; a
    pod that had been started had its conditions before."""
    if not pod.terminating or pod.finished or not "" < pod.started < pod.deleted:
        return False
    ready = pod.ready == contract.STATUS_TRUE or (pod.ready == contract.STATUS_FALSE and pod.ready_since >= pod.deleted)
    return ready and (pod.node_healthy in ("", contract.STATUS_TRUE) or pod.node_healthy_since >= pod.deleted)


def verdict_of(
    evidence: NodeEvidence, gate: str, memory: Memory, *, monotonic: float, missing_grace_s: float
) -> tuple[Verdict, Memory]:
    """The verdict on one node by the table above, and what to remember for the next one."""
    node = evidence.node
    pods = evidence.pods.get(gate, ())
    if memory.node_uid != node.uid:
        memory = Memory(node_uid=node.uid)
    present = [pod for pod in pods if alive(pod, node)]
    candidates = [pod for pod in present if belongs(pod, node, monotonic)]
    if not (candidates or memory.ever_good):
        memory = _recalled([pod for pod in pods if belongs(pod, node, monotonic)], memory, monotonic)
    by_pods, memory = _by_pods(candidates, memory, monotonic, missing_grace_s)
    if len(candidates) < len(present):
        old_until = node.born_at + OLD_POD_LIMIT_S
        by_pods = replace(by_pods, changes_at=min(old_until, by_pods.changes_at or old_until))
    if evidence.heartbeat_lost:
        return replace(by_pods, reason=reasons.CLOSED_NODE_LOST, evidence="kubelet Lease not renewed"), memory
    if by_pods.reason == reasons.OPEN and node.ready == contract.STATUS_FALSE:
        return replace(by_pods, reason=reasons.CLOSED_UNHEALTHY, evidence="the node's own Ready is False"), memory
    if by_pods.reason == reasons.OPEN and node.ready == contract.STATUS_UNKNOWN:
        return replace(by_pods, reason=reasons.CLOSED_NODE_LOST, evidence="the node's own Ready is Unknown"), memory
    return by_pods, memory


def _recalled(pods: Sequence[HealthPod], memory: Memory, monotonic: float) -> Memory:
    deleted_at = max((pod.deleted_at for pod in pods if good_when_deleted(pod)), default=None)
    if deleted_at is None:
        return memory
    return Memory(memory.node_uid, ever_good=True, last=reasons.OPEN, missing_since=min(deleted_at, monotonic))


def _by_pods(
    candidates: Sequence[HealthPod], memory: Memory, monotonic: float, missing_grace_s: float
) -> tuple[Verdict, Memory]:
    if not candidates:
        return _without_pod(memory, monotonic, missing_grace_s)
    for pod in candidates:
        if good(pod):
            return Verdict(reasons.OPEN, pod.name), Memory(memory.node_uid, ever_good=True, last=reasons.OPEN)
    newest = max(candidates, key=lambda pod: (pod.created, pod.name))
    reason = _why_not_good(newest)
    return (
        Verdict(reason, newest.name, newest.message),
        Memory(memory.node_uid, ever_good=memory.ever_good, last=reason),
    )


def _without_pod(memory: Memory, monotonic: float, missing_grace_s: float) -> tuple[Verdict, Memory]:
    if not memory.ever_good:
        return Verdict(reasons.CLOSED_NO_HEALTH_POD), memory
    since = monotonic if memory.missing_since is None else memory.missing_since
    memory = replace(memory, missing_since=since)
    if monotonic - since < missing_grace_s:
        last = Verdict(memory.last, evidence="health pod missing, last verdict", changes_at=since + missing_grace_s)
        return last, memory
    return Verdict(reasons.CLOSED_NO_HEALTH_POD, evidence="health pod missing"), memory


def _why_not_good(pod: HealthPod) -> str:
    if pod.node_healthy == contract.STATUS_FALSE:
        return reasons.CLOSED_UNHEALTHY
    if pod.node_healthy not in ("", contract.STATUS_TRUE):
        return reasons.CLOSED_UNKNOWN
    if pod.ready == contract.STATUS_FALSE and pod.containers_ready == contract.STATUS_TRUE and not pod.ready_reason:
        # The node lifecycle controller turns Ready of a lost node's pods to False and leaves ContainersReady and the
        # (empty) reason alone; a kubelet that waits for a readiness gate gives one.
        return reasons.CLOSED_NODE_LOST
    if pod.ready == contract.STATUS_UNKNOWN:
        return reasons.CLOSED_UNKNOWN
    return reasons.CLOSED_NOT_READY
