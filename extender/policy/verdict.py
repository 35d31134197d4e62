"""Pure: is one node open for new pods, and if not, why. Knows no API object, no clock and no lock.

The table, first match wins:

    heartbeat too old                                   closed, node lost
    a good health pod, node reports itself not Ready    closed, unhealthy
    a good health pod, node's Ready is Unknown          closed, node lost
    a good health pod, the agent on the node is silent  closed, unknown
    a good health pod                                   open (in a roll-out the best pod speaks)
    no usable health pod, never a good one              closed, no health pod
    no usable health pod for less than the grace        the last verdict
    no usable health pod                                closed, no health pod
    gate condition False                                closed, unhealthy
    the successor of a good one, within the grace       the last verdict
    gate condition neither True nor False               closed, unknown
    Ready False without a reason, ContainersReady True  closed, node lost
    Ready Unknown                                       closed, unknown
    else                                                closed, not ready

A process that starts has no memory of a node. What its health pods still show is as good: one that was good when it was
told to end makes the last verdict open, and the graces begin at that time. After it is gone nothing tells.

A gate by how pods start knows two rows only: where it swallows pods the node is closed, pods fail to start; else open.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from extender.policy import reasons
from extender.policy.conditions import ConditionRules, judge
from extender.policy.evidence import HealthPod, NodeEvidence, ObservedNode
from kube import contract
from kube.times import parse_time

TURNED_LATER_S = 2.0  # a kubelet writes both at once, in whole seconds
NODE_CLOSES = {contract.STATUS_FALSE: reasons.CLOSED_UNHEALTHY, contract.STATUS_UNKNOWN: reasons.CLOSED_NODE_LOST}

# A kubelet that finds a pod bound to it which it does not run reports that within seconds. So a pod that is still Ready
# so long after its node's Node object was created again was Ready all the time: the object was deleted, the kubelet
# registered again and had nothing new to report (since 1.35 its restart changes no status: kubernetes gate
# ChangeContainerStatusOnKubeletRestart).
OLD_POD_LIMIT_S = 60.0


class Memory(msgspec.Struct, frozen=True, gc=False):
    """The memory that a node's next verdict needs. It belongs to one Node object: a new uid starts without memory.

    good_uid: of the last good health pod, "" when a bad one has reported since. gone: when the deletion of that pod was
    requested, RFC 3339, "" if unknown; missing_since: the same by the monotonic clock, None while the pod is there.
    """

    node_uid: str = ""
    ever_good: bool = False
    last: str = reasons.CLOSED_NO_HEALTH_POD
    missing_since: float | None = None
    good_uid: str = ""
    gone: str = ""


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """A verdict. reason: one of `reasons`. pod: `namespace/name` of the deciding health pod. evidence: text for humans;
    of a healthy node, what its agent says besides.

    changes_at: monotonic seconds when time alone makes a new verdict necessary; None if never. bare: the reason without
    any grace. cause: the word of what turned, the same for all that fail alike. since: when the node became bad by its
    objects, RFC 3339 in UTC; "" if unknown.
    """

    reason: str
    pod: str = ""
    evidence: str = ""
    changes_at: float | None = None
    bare: str = reasons.OPEN
    cause: str = ""
    since: str = ""


def belongs(pod: HealthPod, node: ObservedNode, monotonic: float) -> bool:
    """Returns whether the pod runs on this Node object, not on an earlier one of the same name.

    A pod that outlived its Node object counts again when it became Ready after the new one was created (then its
    kubelet has probed it again), or if it is Ready OLD_POD_LIMIT_S later.
    """
    if monotonic - node.born_at >= OLD_POD_LIMIT_S:
        return True
    if pod.node_uid and pod.node_uid != node.uid:
        return pod.ready_since > node.created
    return pod.created >= node.created or pod.ready_since >= node.created


def alive(pod: HealthPod, node: ObservedNode) -> bool:
    return not pod.terminating and not pod.finished and pod.node == node.name


def good(pod: HealthPod) -> bool:
    """Returns whether the pod is Ready and readygate's own condition, if present, agrees: Ready may lag the gate
    (kubernetes issues 86485, 122002)."""
    return pod.ready == contract.STATUS_TRUE and pod.node_healthy in ("", contract.STATUS_TRUE)


def good_when_deleted(pod: HealthPod) -> bool:
    """Returns whether a terminating pod was good until its deletion was requested. Conditions that turned since then
    turned because of it; a pod that had been started had its conditions before."""
    if not pod.terminating or pod.finished or not "" < pod.started < pod.deleted:
        return False
    ready = pod.ready == contract.STATUS_TRUE or (pod.ready == contract.STATUS_FALSE and pod.ready_since >= pod.deleted)
    return ready and (pod.node_healthy in ("", contract.STATUS_TRUE) or pod.node_healthy_since >= pod.deleted)


def verdict_of(
    evidence: NodeEvidence,
    gate: str,
    memory: Memory,
    *,
    monotonic: float,
    missing_grace_s: float,
    replace_grace_s: float = 0.0,
    conditions: ConditionRules | None = None,
    wall: float = 0.0,
    by_starts: bool = False,
) -> tuple[Verdict, Memory]:
    """Returns the verdict on one node by the table above, and the memory for the next one.

    conditions: None = Ready and the gate condition, as in the table; otherwise these decide whether a pod is good.
    wall: seconds since the epoch, for conditions that become stale. by_starts: by how pods start there, and nothing
    else.
    """
    node, pods = evidence.node, evidence.pods.get(gate, ())
    if by_starts:
        return _by_starts(evidence)
    if memory.node_uid != node.uid:
        memory = Memory(node_uid=node.uid)
    present = [pod for pod in pods if alive(pod, node)]
    candidates = [pod for pod in present if belongs(pod, node, monotonic)]
    if not memory.ever_good:
        memory = _recalled(pods, node, memory, monotonic)
    rule = _Rule(conditions, missing_grace_s, replace_grace_s, monotonic, wall)
    if conditions is None or conditions.needs_pod:
        verdict, memory = _by_pods(candidates, pods, node, memory, rule)
    else:
        verdict = _judged(None, node, rule, conditions)
        memory = Memory(node.uid, memory.ever_good or verdict.reason == reasons.OPEN, verdict.reason)
    if len(candidates) < len(present):
        old_until = node.born_at + OLD_POD_LIMIT_S
        verdict = replace(verdict, changes_at=min(old_until, verdict.changes_at or old_until))
    if verdict.reason == reasons.OPEN != verdict.bare and conditions is not None:
        on_node = _judged(None, node, rule, ConditionRules(tuple(one for one in conditions.all_of if one.of_node)))
        if on_node.reason != reasons.OPEN:  # conditions of the Node need no pod, so there is no grace
            return on_node, memory
    if evidence.heartbeat_lost:
        since = node.ready_since if node.ready == contract.STATUS_UNKNOWN else ""
        return _by_node(verdict, reasons.CLOSED_NODE_LOST, "kubelet Lease not renewed", "Lease", since), memory
    if verdict.reason == reasons.OPEN and node.ready in NODE_CLOSES:
        said = f"the node's own Ready is {node.ready}"
        return _by_node(verdict, NODE_CLOSES[node.ready], said, "Node Ready", node.ready_since), memory
    if verdict.reason == reasons.OPEN and evidence.agent_silent:
        return _by_node(verdict, reasons.CLOSED_UNKNOWN, "the agent on the node is silent", "Heartbeat", ""), memory
    return verdict, memory


def only_good(pods: Sequence[HealthPod], node: ObservedNode) -> HealthPod | None:
    """Returns the only health pod of the node if a quick check shows that pod and node are good, which is nearly always
    so."""
    if len(pods) != 1 or node.ready in NODE_CLOSES:
        return None
    pod = pods[0]
    if pod.ready != contract.STATUS_TRUE or pod.terminating or pod.finished or pod.node != node.name:
        return None
    if pod.node_healthy not in ("", contract.STATUS_TRUE) or pod.node_uid not in ("", node.uid):
        return None
    return pod if pod.created >= node.created else None


def never_good(memory: Memory, pods: Sequence[HealthPod], node: ObservedNode) -> bool:
    """Returns whether nothing shows that the node was ever in use. A kubelet writes Ready False when it starts a pod; a
    Ready that turned False later was True. If the pod is gone, readygate's condition on the Node shows it."""
    return not (memory.ever_good or node.told_good) and not any(
        pod.ready == contract.STATUS_FALSE and _turned_later(pod) for pod in pods
    )


def _turned_later(pod: HealthPod) -> bool:
    try:
        started_s, turned_s = parse_time(pod.started or None), parse_time(pod.ready_since or None)
    except msgspec.ValidationError:
        return False
    return started_s is not None and turned_s is not None and turned_s - started_s >= TURNED_LATER_S


class _Rule(NamedTuple):
    conditions: ConditionRules | None
    missing_grace_s: float
    replace_grace_s: float
    monotonic: float
    wall: float


def _judged(pod: HealthPod | None, node: ObservedNode, rule: _Rule, conditions: ConditionRules) -> Verdict:
    """Decides by the conditions of the gate. pod: None = no health pod counts for the node."""
    found = judge(conditions, pod, node, rule.wall)
    changes_at = None if found.changes_wall is None else rule.monotonic + max(0.0, found.changes_wall - rule.wall)
    name = "" if pod is None else pod.name
    return Verdict(found.reason, name, found.evidence, changes_at, found.reason, found.cause, found.since)


def _of_pod(pod: HealthPod, node: ObservedNode, rule: _Rule) -> Verdict:
    if rule.conditions is not None:
        return _judged(pod, node, rule, rule.conditions)
    if good(pod):
        return Verdict(reasons.OPEN, pod.name, pod.message)
    reason = _why_not_good(pod)
    return Verdict(reason, pod.name, pod.message, bare=reason, cause=pod.cause, since=_since(pod))


def _by_node(by_pods: Verdict, reason: str, evidence: str, cause: str, since: str) -> Verdict:
    return replace(by_pods, reason=reason, bare=reason, evidence=evidence, cause=cause, since=since)


def _by_starts(evidence: NodeEvidence) -> tuple[Verdict, Memory]:
    """Pods were placed there, so the node was in use."""
    reason = reasons.CLOSED_STARTS_FAIL if evidence.swallows else reasons.OPEN
    memory = Memory(evidence.node.uid, ever_good=True, last=reason)
    return Verdict(reason, evidence=evidence.swallows, bare=reason, cause="PodStarts" if reason else ""), memory


def _recalled(pods: Sequence[HealthPod], node: ObservedNode, memory: Memory, monotonic: float) -> Memory:
    """Returns what a terminating pod still shows of the past."""
    ended = [pod for pod in pods if good_when_deleted(pod) and belongs(pod, node, monotonic)]
    if not ended:
        return memory
    last = max(ended, key=lambda pod: (pod.deleted_at, pod.uid))
    return Memory(
        memory.node_uid,
        ever_good=True,
        last=reasons.OPEN,
        missing_since=min(last.deleted_at, monotonic),
        good_uid=last.uid,
        gone=last.deleted,
    )


def _by_pods(
    candidates: Sequence[HealthPod], pods: Sequence[HealthPod], node: ObservedNode, memory: Memory, rule: _Rule
) -> tuple[Verdict, Memory]:
    verdicts = {}
    for pod in candidates:
        verdict = verdicts[pod.uid] = _of_pod(pod, node, rule)
        if verdict.reason == reasons.OPEN:
            if memory.good_uid != pod.uid or memory.missing_since is not None:
                memory = Memory(node.uid, ever_good=True, last=reasons.OPEN, good_uid=pod.uid)
            return verdict, memory
    if memory.good_uid and not any(pod.uid == memory.good_uid for pod in candidates):
        memory = _missing(pods, memory, rule.monotonic)
    if not candidates:
        return _without_pod(node, memory, rule)
    newest = max(candidates, key=lambda pod: (pod.created, pod.name))
    return _bad(newest, verdicts[newest.uid], memory, rule)


def _missing(pods: Sequence[HealthPod], memory: Memory, monotonic: float) -> Memory:
    """Returns since when the last good pod is terminating or gone."""
    ended = next((pod for pod in pods if pod.uid == memory.good_uid and pod.deleted), None)
    if memory.missing_since is None:
        since = monotonic if ended is None else min(monotonic, ended.deleted_at)
        memory = replace(memory, missing_since=since)
    return memory if ended is None else replace(memory, gone=ended.deleted)


def _without_pod(node: ObservedNode, memory: Memory, rule: _Rule) -> tuple[Verdict, Memory]:
    if not memory.ever_good:
        return _no_pod(since=node.created), memory
    if memory.missing_since is None:
        memory = replace(memory, missing_since=rule.monotonic)
    until = (memory.missing_since or 0.0) + rule.missing_grace_s
    if rule.monotonic < until:
        return _kept(memory, until, _no_pod(), "health pod missing, last verdict"), memory
    return _no_pod("health pod missing", memory.gone), replace(memory, good_uid="")


def _bad(pod: HealthPod, verdict: Verdict, memory: Memory, rule: _Rule) -> tuple[Verdict, Memory]:
    """Decides by a pod that is not good. A successor of the good pod gets the grace to become good."""
    if memory.good_uid and memory.missing_since is not None and pod.node_healthy != contract.STATUS_FALSE:
        until = memory.missing_since + rule.replace_grace_s
        if rule.monotonic < until:
            return _kept(memory, until, verdict, "health pod replaced, last verdict"), memory
    return verdict, Memory(memory.node_uid, ever_good=memory.ever_good, last=verdict.reason)


def _kept(memory: Memory, until: float, bare: Verdict, evidence: str) -> Verdict:
    """Keeps the last verdict for a while. Its cause is not remembered: the node has not become worse since."""
    return replace(bare, reason=memory.last, evidence=evidence, changes_at=until)


def _no_pod(evidence: str = "", since: str = "") -> Verdict:
    reason = reasons.CLOSED_NO_HEALTH_POD
    return Verdict(reason, evidence=evidence, bare=reason, since=since)


def _since(pod: HealthPod) -> str:
    """Returns when the first of its conditions turned that are not True."""
    healthy = pod.node_healthy in ("", contract.STATUS_TRUE)
    by_node = "" if healthy else pod.node_healthy_since
    by_ready = "" if pod.ready == contract.STATUS_TRUE else pod.ready_since or pod.created
    return min(by_node, by_ready) if by_node and by_ready else by_node or by_ready


def _why_not_good(pod: HealthPod) -> str:
    if pod.node_healthy == contract.STATUS_FALSE:
        return reasons.CLOSED_UNHEALTHY
    if pod.node_healthy not in ("", contract.STATUS_TRUE):
        return reasons.CLOSED_UNKNOWN
    if pod.ready == contract.STATUS_FALSE and pod.containers_ready == contract.STATUS_TRUE and not pod.ready_reason:
        # The node lifecycle controller turns Ready of a lost node's pods to False and changes neither ContainersReady
        # nor the (empty) reason; a kubelet that waits for a readiness gate gives one.
        return reasons.CLOSED_NODE_LOST
    if pod.ready == contract.STATUS_UNKNOWN:
        return reasons.CLOSED_UNKNOWN
    return reasons.CLOSED_NOT_READY
