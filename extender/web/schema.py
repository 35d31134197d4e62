"""The types of GET /api/v1/...: `extender.web` writes and `cli` reads them. Pure.

Most fields have a default, so that a reader understands an extender of another release: a missing field counts as
empty. Ages are seconds at the moment of the answer; None if unknown. Free text of the cluster is one line, but no
reader relies on it.
"""

import msgspec

# No script in a browser can set a header whose name begins with Sec-. So a request with this header is not from a page
# of another site, whatever its Host. `readygate` sends it, because `--server` may name an extender by any name of its
# host.
NO_BROWSER_HEADER = "Sec-Readygate"


class _Told(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A part of an answer."""


class Head(_Told, frozen=True, kw_only=True, rename="camel"):
    """The beginning of every answer.

    not_answering: why kube-scheduler gets no verdicts at present, "" if it does. release: the product's version.
    last_word_seconds: since the API server last answered, by the cache that is furthest behind. since_start_seconds:
    how far back the history reaches. continue_: where the next page begins, "" at the end. at: RFC 3339, when the
    answer was made. dropped_attempts: calls since then that could not be recorded; if any, numbers about pods are
    minimums.
    """

    not_answering: str
    release: str = ""
    last_word_seconds: float | None = None
    since_start_seconds: float | None = None
    continue_: str = msgspec.field(default="", name="continue")
    at: str = ""
    dropped_attempts: int = 0


class DecisionTold(_Told, frozen=True, rename="camel"):
    """The decision of one gate on one node.

    open, reason: what kube-scheduler is answered if the gate is armed. verdict: the reason before an order, storm, cap
    or grace changed it, "" is open. held_by: what changed it, one word. until_seconds: when that ends by itself. note:
    about it, for humans.
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
    """The joined decision on a node for a pod to which every armed gate applies; `gates` has the decision of each.

    pod: `namespace/name` of the deciding health pod. evidence: free text of the cluster, one line; for a healthy node,
    what its agent says besides. heartbeat_age_seconds: since the kubelet last renewed its Lease, null if Leases are not
    read.
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
    """An event. kind: closed, opened, held, released, cap, storm, stormEnded or order. wall: RFC 3339."""

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
    """A pod that was refused the node in its last answered attempt. times: its attempts in which any node was."""

    namespace: str = ""
    name: str = ""
    gate: str = ""
    times: int = 0
    last_seconds: float = 0.0


class NodeTold(Head, frozen=True, kw_only=True, rename="camel"):
    """GET nodes/NAME. node: None if no snapshot has it. transitions, refused_pods: the newest first."""

    node: NodeVerdict | None = None
    transitions: tuple[Change, ...] = ()
    refused_pods: tuple[RefusedPod, ...] = ()


class CapTold(_Told, frozen=True, rename="camel"):
    """A cap. limit: None if there is none."""

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
    """A gate. for_: the pods to which it applies, in words: "every pod". refused10m, would_refuse10m: calls of the last
    ten minutes in which it refused a node, or would have in shadow. not_gated: nodes to which it does not apply."""

    gate: str = ""
    armed: bool = True
    severity: str = "gate"
    for_: str = msgspec.field(default="every pod", name="for")
    nodes: int = 0
    open: int = 0
    closed: int = 0
    held_open: int = 0
    not_gated: int = 0
    refused10m: int = 0
    would_refuse10m: int = msgspec.field(default=0, name="wouldRefuse10m")
    last_change: Change | None = None
    cap: CapTold = CapTold()
    storms: tuple[StormTold, ...] = ()


class Scope(_Told, frozen=True, rename="camel"):
    """The scope of an order. All empty: the cluster."""

    gate: str = ""
    pool: str = ""
    node: str = ""


class OrderTold(_Told, frozen=True, rename="camel"):
    """An order in force. expires: RFC 3339, None for never."""

    id: str = ""
    order: str = ""
    scope: Scope = Scope()
    author: str = ""
    reason: str = ""
    expires: str | None = None


class SchedulerTold(_Told, frozen=True, rename="camel"):
    """kube-scheduler's calls of this extender. mode: protect or enforce, as configured; "" if not configured. calls,
    unanswered: of the verb filter since the start, and those without a verdict. per_second, p99_seconds: of the last
    ten minutes; the latter is a bound that 99 of 100 keep, None without calls or above all bounds. last_call_seconds:
    None if there was none."""

    mode: str = ""
    calls: int = 0
    unanswered: int = 0
    per_second: float = 0.0
    p99_seconds: float | None = msgspec.field(default=None, name="p99Seconds")
    last_call_seconds: float | None = None


class GatesTold(Head, frozen=True, kw_only=True, rename="camel"):
    """GET gates. cap: of the cluster. faults: ignored entries of the orders, and why.

    credentials_left_seconds: until the extender's token ends unless it is renewed, below 0 if it has ended.
    credentials_life_seconds: from the token's issue to its end. Both are None if unknown.
    """

    gates: tuple[GateTold, ...] = ()
    cap: CapTold = CapTold()
    orders: tuple[OrderTold, ...] = ()
    faults: tuple[str, ...] = ()
    scheduler: SchedulerTold | None = None
    credentials_left_seconds: float | None = None
    credentials_life_seconds: float | None = None


class RefusedNode(_Told, frozen=True, rename="camel"):
    """A refused node. gate: "" for a name in no snapshot. since_seconds: for how long the gate has closed the node,
    None if it no longer does. node_open: whether the node is open now."""

    node: str = ""
    gate: str = ""
    reason: str = ""
    since_seconds: float | None = None
    node_open: bool = False


class Attempt(_Told, frozen=True, rename="camel"):
    """The last answered call of kube-scheduler for a pod. asked: the nodes that its own filters had passed; passed:
    those that readygate passed, too.

    complete: readygate alone kept the pod from exactly the other nodes. If not, this is a minimum: kube-scheduler asked
    about a sample of the nodes, or (nominated) about the nominated node alone, and asks again at once.

    refused, shadow (what gates in shadow would have refused): one page; refused_count, shadow_count: all; open_count:
    how many of the refused are open now. exempt: why the pod is never refused a node, "" if it can be.
    """

    ago_seconds: float = 0.0
    asked: int = 0
    passed: int = 0
    refused: tuple[RefusedNode, ...] = ()
    shadow: tuple[RefusedNode, ...] = ()
    complete: bool = True
    exempt: str = ""
    refused_count: int = 0
    shadow_count: int = 0
    nominated: bool = False
    open_count: int = 0


class PodTold(Head, frozen=True, kw_only=True, rename="camel"):
    """GET pods/NAMESPACE/NAME. attempts 0, last None: no call for the pod is recorded.

    attempts: answered. unanswered: answered with an error, the last one for unanswered_why. refused_times: attempts
    with at least one refused node. kube-scheduler calls nothing if its own filters pass no node, so its last attempt
    may be later than `last`.
    """

    namespace: str = ""
    name: str = ""
    uid: str = ""
    attempts: int = 0
    unanswered: int = 0
    first_seconds: float | None = None
    last: Attempt | None = None
    unanswered_why: str = ""
    refused_times: int = 0


class HistoryTold(Head, frozen=True, kw_only=True, rename="camel"):
    """GET history: the newest first. forgotten: how many older ones there were since the start."""

    events: tuple[Change, ...] = ()
    forgotten: int = 0


class Impact(_Told, frozen=True, rename="camel"):
    """What a gate has refused since since_seconds, or would have refused if it had been armed.

    would_close: nodes at present; would_close_most: at once. would_refuse: nodes in calls; would_refuse_calls: calls
    with any; pods: different ones, a minimum if pods_at_least. cap_hits: nodes that the cap began to hold open;
    storm_hits: storms that began.
    """

    gate: str = ""
    armed: bool = True
    since_seconds: float | None = None
    would_close: int = 0
    would_close_most: int = 0
    would_refuse: int = 0
    would_refuse_calls: int = 0
    pods: int = 0
    pods_at_least: bool = False
    cap_hits: int = 0
    storm_hits: int = 0


class ImpactTold(Head, frozen=True, kw_only=True, rename="camel"):
    """GET impact."""

    gates: tuple[Impact, ...] = ()


class Problem(_Told, frozen=True, rename="camel"):
    """The body of every answer of /api/v1 that is not 200. error: its class. cause: one line, with a remedy."""

    error: str = ""
    cause: str = ""
