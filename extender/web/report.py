"""The shapes of GET /api/v1/...: what `extender.web` writes and `cli` reads. Pure.

Most fields have a default, so that a reader understands an extender of another release: what is not told is as if it
were nothing. Ages are seconds at the moment of the answer; None where nobody knows. Free text of the cluster is one
line, but no reader relies on it.
"""

import msgspec


class _Told(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A part of an answer."""


class Head(_Told, frozen=True, kw_only=True, rename="camel"):
    """What every answer begins with.

    not_answering: why kube-scheduler gets no verdicts at present, "" if it does. release: the product's version.
    last_word_seconds: since the API server last said something, by the cache that is the furthest behind.
    since_start_seconds: how far back what is remembered reaches. continue_: where the next page begins, "" at the end.
    """

    not_answering: str
    release: str = ""
    last_word_seconds: float | None = None
    since_start_seconds: float | None = None
    continue_: str = msgspec.field(default="", name="continue")


class DecisionTold(_Told, frozen=True, rename="camel"):
    """What one gate decided of one node.

    open, reason: what kube-scheduler is told where the gate is armed. verdict: the reason before anything held it, ""
    is open. held_by: who made them differ, one word. until_seconds: when that ends by itself. note: of it, for people.
    """

    gate: str = ""
    armed: bool = True
    severity: str = "gate"
    open: bool = True
    reason: str = ""
    verdict: str = ""
    held_by: str = ""
    since_seconds: float = 0.0
    until_seconds: float | None = None
    pod: str = ""
    evidence: str = ""
    note: str = ""


class NodeVerdict(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What holds for a node for every pod that each armed gate speaks for; `gates` says what each of them decided.

    pod: `namespace/name` of the deciding health pod. evidence: free text of the cluster, one line.
    heartbeat_age_seconds: since the kubelet last renewed its Lease, null if that is not looked at.
    """

    node: str
    open: bool
    reason: str
    since_seconds: float
    pod: str
    evidence: str
    heartbeat_age_seconds: float | None
    gates: tuple[DecisionTold, ...] = ()


class NodeVerdicts(Head, frozen=True, kw_only=True, rename="camel"):
    """GET nodes."""

    nodes: list[NodeVerdict]


class Change(_Told, frozen=True, rename="camel"):
    """What happened. kind: closed, opened, held, released, cap, storm, stormEnded or order. wall: RFC 3339."""

    ago_seconds: float = 0.0
    wall: str = ""
    kind: str = ""
    gate: str = ""
    node: str = ""
    reason: str = ""
    evidence: str = ""
    held_by: str = ""
    note: str = ""


class RefusedPod(_Told, frozen=True, rename="camel"):
    namespace: str = ""
    name: str = ""
    gate: str = ""
    times: int = 0
    last_seconds: float = 0.0


class NodeTold(Head, frozen=True, kw_only=True, rename="camel"):
    """GET nodes/NAME. node: None for one that no snapshot has. transitions, refused_pods: the newest first."""

    node: NodeVerdict | None = None
    transitions: tuple[Change, ...] = ()
    refused_pods: tuple[RefusedPod, ...] = ()


class CapTold(_Told, frozen=True, rename="camel"):
    """limit: None where there is none."""

    limit: int | None = None
    closed: int = 0
    held: int = 0


class StormTold(_Told, frozen=True, rename="camel"):
    cause: str = ""
    nodes: int = 0
    suspect: str = ""
    until_seconds: float | None = None
    note: str = ""


class GateTold(_Told, frozen=True, rename="camel"):
    """for_: whom it speaks for, in words: "every pod". The counts of refusals are those of the last ten minutes."""

    gate: str = ""
    armed: bool = True
    severity: str = "gate"
    for_: str = msgspec.field(default="every pod", name="for")
    nodes: int = 0
    open: int = 0
    closed: int = 0
    held_open: int = 0
    refused10m: int = 0
    would_refuse10m: int = 0
    last_change: Change | None = None
    cap: CapTold = CapTold()
    storms: tuple[StormTold, ...] = ()


class Scope(_Told, frozen=True, rename="camel"):
    """All empty: the cluster."""

    gate: str = ""
    pool: str = ""
    node: str = ""


class OrderTold(_Told, frozen=True, rename="camel"):
    """An operator's word in force. expires: RFC 3339, None for never."""

    id: str = ""
    order: str = ""
    scope: Scope = Scope()
    author: str = ""
    reason: str = ""
    expires: str | None = None


class GatesTold(Head, frozen=True, kw_only=True, rename="camel"):
    """GET gates. cap: of the cluster. faults: entries of the orders that are ignored, and why."""

    gates: tuple[GateTold, ...] = ()
    cap: CapTold = CapTold()
    orders: tuple[OrderTold, ...] = ()
    faults: tuple[str, ...] = ()


class RefusedNode(_Told, frozen=True, rename="camel"):
    """since_seconds: since when the node is closed."""

    node: str = ""
    gate: str = ""
    reason: str = ""
    since_seconds: float = 0.0


class Attempt(_Told, frozen=True, rename="camel"):
    """One question of kube-scheduler's. asked: names in it. complete: all of them were answered from one snapshot.

    exempt: why the pod is never refused a node, "" if it can be. shadow: what gates in shadow would have refused.
    """

    ago_seconds: float = 0.0
    asked: int = 0
    passed: int = 0
    refused: tuple[RefusedNode, ...] = ()
    shadow: tuple[RefusedNode, ...] = ()
    complete: bool = True
    exempt: str = ""


class Refusal(_Told, frozen=True, rename="camel"):
    """Of one pod, over all attempts that are remembered."""

    node: str = ""
    gate: str = ""
    reason: str = ""
    times: int = 0
    last_seconds: float = 0.0


class PodTold(Head, frozen=True, kw_only=True, rename="camel"):
    """GET pods/NAMESPACE/NAME. attempts 0, last None: kube-scheduler has not asked about it as far as we remember."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    attempts: int = 0
    unanswered: int = 0
    first_seconds: float | None = None
    last: Attempt | None = None
    refusals: tuple[Refusal, ...] = ()


class HistoryTold(Head, frozen=True, kw_only=True, rename="camel"):
    """GET history: the newest first."""

    events: tuple[Change, ...] = ()


class Impact(_Told, frozen=True, rename="camel"):
    """What a gate would have done, had it been armed, since since_seconds. would_close: nodes at present."""

    gate: str = ""
    armed: bool = True
    since_seconds: float | None = None
    would_close: int = 0
    would_close_most: int = 0
    would_refuse: int = 0
    pods: int = 0
    cap_hits: int = 0
    storm_hits: int = 0


class ImpactTold(Head, frozen=True, kw_only=True, rename="camel"):
    """GET impact."""

    gates: tuple[Impact, ...] = ()
