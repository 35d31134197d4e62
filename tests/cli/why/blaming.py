"""Builds the facts of `readygate why pod`: a Pod, what extenders remember of it, their decisions."""

import msgspec

from cli.shared.merge_answers import Replies
from cli.why.blame import PodFacts, judge
from cli.why.pod_view import read_pod
from extender.policy.reasons import CLOSED_NODE_LOST, CLOSED_UNHEALTHY
from extender.web.report import (
    Attempt,
    CapTold,
    DecisionTold,
    GatesTold,
    GateTold,
    NodeTold,
    NodeVerdict,
    PodTold,
    RefusedNode,
)
from kube.times import format_time

WALL = 1_800_000_000.0
NAME = "train-7"
LEASE = "kubelet Lease not renewed"
OTHERS = "7 Insufficient nvidia.com/gpu, 3 node(s) didn't match Pod's node affinity/selector"
PREEMPTION = " preemption: 0/12 nodes are available: 12 Preemption is not helpful for scheduling."
BOTH = f"1 {CLOSED_NODE_LOST}, 1 {CLOSED_UNHEALTHY}"
MESSAGE = f"0/12 nodes are available: {BOTH}, {OTHERS}.{PREEMPTION}"
NOT_OURS = f"0/12 nodes are available: 2 Insufficient cpu, {OTHERS}.{PREEMPTION}"


def encoded_pod(message="", *, said_s=8.0, waited_s=252.0, node="", bound_s=None, phase="Pending", **spec):
    """A Pod as the API server sends it. said_s: the age of kube-scheduler's message."""
    conditions = []
    if message:
        conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
    if bound_s is not None:
        at = format_time(WALL - bound_s)
        conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at}]
    written = [{"manager": "kube-scheduler", "subresource": "status", "time": format_time(WALL - said_s)}]
    metadata = {
        "name": NAME,
        "namespace": "team-a",
        "uid": "u-1",
        "creationTimestamp": format_time(WALL - waited_s),
        "managedFields": [{"manager": "kubectl", "time": format_time(WALL)}, *(written if message else [])],
    }
    metadata |= {"deletionTimestamp": format_time(WALL)} if spec.pop("deleted", False) else {}
    status = {"phase": phase, "conditions": conditions}
    return msgspec.json.encode({"metadata": metadata, "spec": {"nodeName": node, **spec}, "status": status})


def pod(message="", **others):
    """A decoded Pod. others: as of encoded_pod()."""
    found = read_pod(encoded_pod(message, **others))
    assert found is not None
    return found


def told(last=None, **others):
    others = {"attempts": 41 if last else 0, "uid": "u-1", "since_start_seconds": 90_000.0, **others}
    return PodTold(not_answering=others.pop("not_answering", ""), name=NAME, namespace="team-a", last=last, **others)


def refused(node, gate, reason, *, open_now=False):
    return RefusedNode(node, gate, reason, None if open_now else 60.0, open_now)


LAST = Attempt(
    ago_seconds=8.4,
    asked=2,
    refused=(refused("gpu-03", "gpu", CLOSED_UNHEALTHY), refused("gpu-11", "base", CLOSED_NODE_LOST)),
    refused_count=2,
)


def node(name, *decisions, heartbeat_s=1.0):
    closed = any(one.armed and not one.open for one in decisions)
    since = max((one.since_seconds for one in decisions if not one.open), default=9000.0)
    verdict = NodeVerdict(
        name, not closed, decisions[0].reason if closed else "", since, "", "", heartbeat_s, decisions
    )
    return NodeTold(not_answering="", node=verdict)


def closed(gate, reason, since_s, evidence):
    return DecisionTold(gate, reason=reason, open=False, verdict=reason, since_seconds=since_s, evidence=evidence)


NODES = {
    "gpu-03": node("gpu-03", closed("gpu", CLOSED_UNHEALTHY, 271.0, 'CheckFailed: gpu-count: "7 of 8 devices"')),
    "gpu-11": node("gpu-11", closed("base", CLOSED_NODE_LOST, 28.0, LEASE), heartbeat_s=52.0),
}
GATES = GatesTold(
    not_answering="",
    gates=(GateTold(gate="base"), GateTold(gate="gpu", for_="pods that request nvidia.com/gpu")),
    cap=CapTold(3, 2),
)


def blamed(seen, *answers, problems=(), nodes=NODES, gates=GATES):
    replies = Replies({f"e-{number}": one for number, one in enumerate(answers)}, tuple(problems))
    return judge(PodFacts(seen, replies, WALL, nodes, gates))


def attempt(*refused_nodes, **others):
    return Attempt(asked=3, refused=refused_nodes, refused_count=len(refused_nodes), **{"ago_seconds": 8.4, **others})


ONE = refused("gpu-03", "gpu", CLOSED_UNHEALTHY)
ONE_OPEN = refused("gpu-03", "gpu", CLOSED_UNHEALTHY, open_now=True)
TWO = refused("gpu-11", "base", CLOSED_NODE_LOST)
FIVE = [refused(f"n-{number}", "base", CLOSED_NODE_LOST) for number in range(5)]
EARLIER = Attempt(ago_seconds=60.0, asked=2, refused=LAST.refused, refused_count=2)
