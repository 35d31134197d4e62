"""Pure: the texts of Events: a Node that has changed, a Pod that was refused all nodes."""

import heapq
from collections.abc import Collection
from typing import NamedTuple

from component.text import one_line
from extender.outlets.node_condition_text import EVIDENCE_LIMIT, NOTHING_KNOWN, WORDS, Standing, said_of
from extender.policy.evidence import TOLD_HEALTHY
from extender.policy.snapshot import UNKNOWN_NODE, Snapshot
from kube.contract import STATUS_TRUE

MESSAGE_LIMIT = 1000  # characters; the API accepts 1024 in an Event
NAMES_SHOWN = 3
NODE_CLOSED, NODE_OPENED = "NodeClosed", "NodeOpened"
POD_REFUSED = "RefusedOnAllNodes"


class About(NamedTuple):
    """The object of an Event. namespace: "" for a Node."""

    kind: str
    namespace: str
    name: str
    uid: str


class EventText(NamedTuple):
    """One Event. warning: its type is Warning, else Normal. cause: equal causes are written once for one object, "" if
    each is written."""

    about: About
    warning: bool
    reason: str
    message: str
    cause: str = ""


def of_node(node: str, uid: str, standing: Standing) -> EventText:
    """Returns the Event for a node with this condition."""
    if standing.status != STATUS_TRUE:
        reason = NODE_CLOSED
    else:
        reason = NODE_OPENED if standing.reason == TOLD_HEALTHY else f"Node{standing.reason}"
    return EventText(About("Node", "", node, uid), standing.reason != TOLD_HEALTHY, reason, standing.message)


class Blame(NamedTuple):
    """The nodes that one gate refused for one reason. gate: "" for nodes that it does not know."""

    gate: str
    reason: str
    names: Collection[str]


def blames_of(snapshot: Snapshot, mask: int, refused: Collection[str]) -> list[Blame]:
    """Groups refused nodes by the first gate that refused each: in the order of the gates, then by the number
    of nodes."""
    left = set(refused)
    found = []
    for i, state in enumerate(snapshot.gates.values()):
        if not mask >> i & 1 or not state.refuses:
            continue
        hits = left & state.closed.keys()
        left -= hits
        by_reason: dict[str, list[str]] = {}
        for node in hits:
            by_reason.setdefault(state.closed[node], []).append(node)
        ordered = sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0]))
        found += [Blame(state.name, reason, names) for reason, names in ordered]
    if left:
        found.append(Blame("", UNKNOWN_NODE, left))
    return found


def cause_of(blames: Collection[Blame]) -> str:
    """Returns a text that is equal for equal gates and reasons, whatever the nodes."""
    return ";".join(sorted(f"{gate}/{WORDS.get(reason, reason)}" for gate, reason, _ in blames))


def of_pod(about: About, snapshot: Snapshot, blames: Collection[Blame]) -> EventText:
    """Returns the Event on a pod: kube-scheduler asked about some nodes, and all were refused."""
    count = sum(len(blame.names) for blame in blames)
    head = "readygate refused the one node" if count == 1 else f"readygate refused all {count} nodes"
    tail = f". See: readygate why pod {about.namespace}/{about.name}"
    each = "; ".join(_said(snapshot, blame) for blame in blames)
    body = one_line(f"{head} that kube-scheduler asked about: {each}", MESSAGE_LIMIT - len(tail))
    return EventText(about, warning=True, reason=POD_REFUSED, message=body + tail, cause=cause_of(blames))


def _said(snapshot: Snapshot, blame: Blame) -> str:
    first = heapq.nsmallest(NAMES_SHOWN, blame.names)
    more = len(blame.names) - len(first)
    names = ", ".join(first) + (f" and {more} more" if more else "")
    if not blame.gate:
        return f"{names}: {blame.reason.removeprefix('node(s) ')}"
    decision = snapshot.gates[blame.gate].decisions.get(first[0])
    # An unknown node has no evidence to show; of several nodes the first one's is the example.
    said = "" if decision is None or blame.reason in NOTHING_KNOWN else said_of(decision)
    said = said or blame.reason.removeprefix("node(s) ")
    return f"gate {blame.gate}: {names}: {one_line(said, 2 * EVIDENCE_LIMIT)}"
