"""Decides whether readygate keeps a pod off nodes, from the Pod, kube-scheduler's message and the extenders. Pure.

kube-scheduler calls an extender only about nodes that passed its own filters. So the nodes that were refused in the
last complete attempt are exactly those that readygate alone kept the pod off. If no node passes its own filters, it
does not call. Then its message has none of readygate's reasons, and readygate is not the cause, whatever it refused
before.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from cli.shared.errors import EXIT_UNKNOWN
from cli.shared.explain import words_of
from cli.shared.layout import age, count, spoken
from cli.shared.merge_answers import Replies, limits_in_force
from cli.why.pod_view import DEFAULT_SCHEDULER, FINISHED, PodView
from cli.why.scheduler_message import SchedulerMessage, failed_at, parse
from component.command import EXIT_FAILED
from component.text import one_line
from extender.web.schema import Attempt, DecisionTold, GatesTold, NodeTold, PodTold, RefusedNode
from kube.times import parse_time

NODES_SHOWN = 10
WRITTEN_LATE_S = 2.0  # kube-scheduler writes its message at most this long after an attempt


class Kind(StrEnum):
    """The kind of the answer, for scripts."""

    BLOCKED = "blocked"
    NOT_BLOCKED = "notBlocked"
    NOT_PENDING = "notPending"
    NOT_ASKED = "notAsked"
    NO_VERDICTS = "noVerdicts"
    UNKNOWN = "unknown"


CODES = {Kind.BLOCKED: EXIT_FAILED, Kind.NO_VERDICTS: EXIT_UNKNOWN, Kind.UNKNOWN: EXIT_UNKNOWN}


@dataclass(frozen=True)
class PodFacts:
    """The facts about a pod."""

    pod: PodView
    replies: Replies[PodTold]  # what the extenders remember about the pod
    wall: float
    nodes: Mapping[str, NodeTold]  # what the extender of newest() reports about each of nodes_of_interest()
    gates: GatesTold | None = None  # of the same extender


@dataclass(frozen=True)
class RefusedAt:
    """A node that refused the pod."""

    node: str
    state: str  # in words: closed for which pods, and since when
    cause: str
    opens_when: str
    gate: str = ""  # the gate that refused the pod
    open_now: bool = False
    also: tuple[str, ...] = ()  # other gates that close the node


@dataclass(frozen=True)
class Blame:
    """The answer."""

    kind: Kind
    first: str  # the answer in one or two sentences
    nodes: tuple[RefusedAt, ...] = ()  # the first of the nodes that refused the pod
    node_count: int = 0  # how many nodes refused the pod
    message: SchedulerMessage | None = None  # of kube-scheduler, if it is about the same attempt
    message_ago_s: float | None = None  # the age of the message
    lines: tuple[str, ...] = ()  # further remarks

    @property
    def code(self) -> int:
        return CODES.get(self.kind, 0)


def newest(pod: PodView, replies: Replies[PodTold]) -> tuple[str, PodTold] | None:
    """The extender that kube-scheduler called last about this pod. Without calls, any extender that answers."""

    def order(item: tuple[str, PodTold]) -> tuple[bool, bool, float]:
        answer = item[1]
        last = answer.last if _is_about(answer, pod) else None
        return last is None, bool(answer.not_answering), last.ago_seconds if last else 0.0

    return min(replies.answers.items(), key=order, default=None)


def _is_about(answer: PodTold, pod: PodView) -> bool:
    """Whether the answer is about this pod, and not about an earlier pod of the same name."""
    return answer.uid in ("", pod.metadata.uid)


def nodes_of_interest(pod: PodView, replies: Replies[PodTold]) -> tuple[str, list[str]]:
    """The extender to query, and the nodes to query it about."""
    found = newest(pod, replies)
    if found is None:
        return "", []
    name, answer = found
    if pod.spec.node_name:
        return name, [pod.spec.node_name]
    refused = answer.last.refused if answer.last is not None and _is_about(answer, pod) else ()
    return name, [one.node for one in refused[:NODES_SHOWN]]


def judge(facts: PodFacts) -> Blame:
    """Decides. The first match wins."""
    pod = facts.pod
    if pod.status.phase in FINISHED:
        where = f" on {pod.spec.node_name}" if pod.spec.node_name else ""
        return Blame(Kind.NOT_PENDING, f"It is not Pending: it has finished ({pod.status.phase}){where}.")
    if pod.spec.node_name:
        return Blame(Kind.NOT_PENDING, _bound(facts))
    if pod.metadata.deletion_timestamp:
        return Blame(Kind.NOT_PENDING, "It is not Pending: it is being deleted.")
    if pod.gates:
        names = ", ".join(pod.gates)
        held = f"kube-scheduler has not asked readygate about it: it waits for its own scheduling gates ({names})."
        return Blame(Kind.NOT_ASKED, held)
    found = newest(pod, facts.replies)
    if found is None:
        return Blame(Kind.UNKNOWN, "Unknown: no extender answers.")
    answer = found[1]
    no_verdicts = [one.not_answering for one in facts.replies.answers.values()]
    if all(no_verdicts):
        return Blame(
            Kind.NO_VERDICTS,
            f"The extenders give no verdicts: {no_verdicts[0]}; pods are placed unfiltered (protect), or wait "
            "(enforce).",
        )
    message = parse(pod.message)
    last = answer.last if _is_about(answer, pod) else None
    unanswered = _call_failed(facts, last)
    return unanswered or (_not_called(facts, answer, message) if last is None else _called(facts, last, message))


def _call_failed(facts: PodFacts, last: Attempt | None) -> Blame | None:
    """The answer if kube-scheduler's last call failed: the pod waits (enforce), even if another extender answers."""
    message, ago = facts.pod.message, _ago(facts)
    url = failed_at(message)
    if url is None or (last is not None and ago is not None and ago > last.ago_seconds + WRITTEN_LATE_S):
        return None
    lines = _unanswered(facts)
    if not url:
        first = f"It waits for readygate (enforce), and kube-scheduler gets no verdict: {one_line(message)}."
        return Blame(Kind.NO_VERDICTS, first, lines=lines)
    if last is not None:
        return None
    first = (
        f"Unknown: an extender at {one_line(url)} does not answer kube-scheduler; readygate doctor shows whether it "
        "belongs to readygate."
    )
    return Blame(Kind.UNKNOWN, first, lines=lines)


def _bound(facts: PodFacts) -> str:
    pod = facts.pod
    node, bound_at = pod.spec.node_name, pod.bound_at
    answer = facts.nodes.get(node)
    begin = f"It is not Pending: it runs on {node}"
    if pod.status.phase == "Pending":  # the phase is Pending until a container runs
        begin = f"It does not wait for a node: it is bound to {node} and has not started there"
    if bound_at is None:
        return f"{begin}."
    bound_s = max(0.0, facts.wall - bound_at)
    if answer is None or answer.node is None:
        return f"{begin}, bound {age(bound_s)} ago."
    verdict = answer.node
    if verdict.open:
        return f"{begin}, bound {age(bound_s)} ago; {node} is open."
    later_s = bound_s - verdict.since_seconds
    if later_s >= 0:
        return f"{begin}, bound {age(later_s)} before {node} closed."
    return f"{begin}, bound {age(-later_s)} after {node} closed: exempt, or placed unfiltered."


def _not_called(facts: PodFacts, answer: PodTold, message: SchedulerMessage | None) -> Blame:
    """The answer if no extender remembers a call about the pod."""
    pod = facts.pod
    lines = _unanswered(facts)
    if message is not None and not message.refused:
        return Blame(Kind.NOT_BLOCKED, NOT_THE_CAUSE, message=message, message_ago_s=_ago(facts), lines=lines)
    if message is not None:
        since = answer.since_start_seconds
        memory = f"the extenders' memory begins {age(since)} ago" if since is not None else "no extender remembers it"
        missing = (
            f"{count(len(facts.replies.problems), 'extender')} did not answer" if facts.replies.problems else memory
        )
        first = f"Unknown which nodes: kube-scheduler counts readygate's reasons for {message.refused}, but {missing}."
        return Blame(Kind.UNKNOWN, first, message=message, message_ago_s=_ago(facts), lines=lines)
    if pod.message:
        return Blame(
            Kind.NOT_ASKED, f"kube-scheduler has not asked readygate about it: {one_line(pod.message)}.", lines=lines
        )
    name = pod.spec.scheduler_name or DEFAULT_SCHEDULER
    who = "it" if name == DEFAULT_SCHEDULER else f"scheduler {name}"
    return Blame(
        Kind.NOT_ASKED,
        f"kube-scheduler has not asked readygate about it: {who} has not tried to place it yet.",
        lines=lines,
    )


NOT_THE_CAUSE = "readygate is not the cause: no node that it closed would have taken this pod."


def _called(facts: PodFacts, last: Attempt, message: SchedulerMessage | None) -> Blame:
    """The answer by the last call about the pod."""
    ago = _ago(facts)
    lines = (*_uncounted(facts, message), *_shadow(last), *_limits(facts.gates), *_unanswered(facts))
    if last.exempt:
        first = f"readygate is not the cause: the pod is exempt ({last.exempt}) and is never refused a node."
        return Blame(Kind.NOT_BLOCKED, first, message=message, message_ago_s=ago, lines=lines)
    refused = max(last.refused_count, len(last.refused))
    later = ago is not None and ago <= last.ago_seconds + WRITTEN_LATE_S
    if not refused or (message is not None and not message.refused and later):
        return Blame(Kind.NOT_BLOCKED, NOT_THE_CAUSE, message=message, message_ago_s=ago, lines=lines)
    nodes = tuple(_refused_at(one, facts) for one in last.refused[:NODES_SHOWN])
    if last.passed and not last.nominated:
        let = f"{count(last.passed, 'node')} that would take it {'was' if last.passed == 1 else 'were'} let through"
        first = f"readygate does not hold it: {let}; {spoken(refused)} {'was' if refused == 1 else 'were'} not."
        return Blame(Kind.NOT_BLOCKED, first, nodes, refused, lines=lines)
    same = message if message is not None and message.refused == refused else None
    still = refused - max(last.open_count, sum(one.node_open for one in last.refused))
    waited = _pending(facts)
    if not still:
        them = "it" if refused == 1 else "them"
        first = f"{waited} {_would(refused, last)}; readygate has opened {them} since: kube-scheduler retries the pod."
        return Blame(Kind.NOT_BLOCKED, first, nodes, refused, same, ago, lines)
    return Blame(
        Kind.BLOCKED,
        f"{waited} {_would(still, last)}; readygate keeps it off{_all(still)}.",
        nodes,
        refused,
        same,
        ago,
        lines,
    )


def _pending(facts: PodFacts) -> str:
    created = parse_time(facts.pod.metadata.creation_timestamp)
    waited = "" if created is None else f" for {age(facts.wall - created)}"
    return f"{facts.pod.metadata.name} has been Pending{waited}."


def _would(number: int, last: Attempt) -> str:
    words = f"{spoken(number)} node{'' if number == 1 else 's'} would take it now"
    return f"at least {words}".capitalize() if not last.complete else words[:1].upper() + words[1:]


def _all(number: int) -> str:
    return {1: "", 2: " both"}.get(number, " all of them")


def _ago(facts: PodFacts) -> float | None:
    at = facts.pod.message_at
    return None if at is None else max(0.0, facts.wall - at)


def _refused_at(refused: RefusedNode, facts: PodFacts) -> RefusedAt:
    answer = facts.nodes.get(refused.node)
    node = answer.node if answer is not None else None
    decisions = node.gates if node is not None else ()
    decision = next((one for one in decisions if one.gate == refused.gate), None)
    whom = next((gate.for_ for gate in facts.gates.gates if gate.gate == refused.gate), "") if facts.gates else ""
    if refused.node_open or decision is None:
        since = "" if refused.since_seconds is None else f" {age(refused.since_seconds)}"
        state = "open again" if refused.node_open else f"closed{since}"
        return RefusedAt(
            refused.node,
            state,
            "" if refused.node_open else _cause_of_reason(refused),
            "",
            refused.gate,
            refused.node_open,
        )
    words = words_of(decision, node.heartbeat_age_seconds if node is not None else None)
    also = tuple(one.gate for one in decisions if one is not decision and _closes(one))
    state = f"{words.state} for {whom or 'it'} {age(decision.since_seconds)}"
    return RefusedAt(refused.node, state, words.cause, words.opens_when, refused.gate, also=also)


def _cause_of_reason(refused: RefusedNode) -> str:
    return words_of(DecisionTold(open=False, reason=refused.reason, verdict=refused.reason)).cause


def _closes(decision: DecisionTold) -> bool:
    return decision.armed and not decision.open and decision.severity == "gate"


def _uncounted(facts: PodFacts, parsed: SchedulerMessage | None) -> tuple[str, ...]:
    """kube-scheduler's message if it counts no nodes, as when the plugin that binds volumes failed."""
    message = facts.pod.message
    return (f"kube-scheduler reports: {one_line(message)}",) if message and parsed is None else ()


def _shadow(last: Attempt) -> tuple[str, ...]:
    number = max(last.shadow_count, len(last.shadow))
    if not number:
        return ()
    gates = ", ".join(sorted({one.gate for one in last.shadow}))
    return (f"Gate {gates} is in shadow: if armed, it would have refused {count(number, 'node')} for the pod.",)


def _limits(gates: GatesTold | None) -> tuple[str, ...]:
    found = limits_in_force(gates)
    if gates is None:
        return ()
    return (f"In force: {'; '.join(found)}.",) if found else ("No cap, pause or storm is in force.",)


def _unanswered(facts: PodFacts) -> tuple[str, ...]:
    answers = [one for one in facts.replies.answers.values() if _is_about(one, facts.pod)]
    answered, failed = sum(one.attempts for one in answers), sum(one.unanswered for one in answers)
    if not answered + failed:
        return ()
    cause = next((f" (last failure: {one.unanswered_why})" for one in answers if one.unanswered_why and failed), "")
    calls = f"{answered:,} of {count(answered + failed, 'scheduler call')} for this pod"
    return (f"{calls} {'was' if answered + failed == 1 else 'were'} answered{cause}.",)
