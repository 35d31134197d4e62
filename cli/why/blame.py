"""Is it us who keep a pod off nodes? What scheduler, extenders and the Pod say, joined to one answer. Pure.

kube-scheduler asks an extender only about the nodes that its own filters have passed. So what was refused in the last
complete attempt is exactly what readygate alone kept the pod off. It does not ask at all where its own filters pass
none: then its message has none of our reasons, and the pod is none of our doing, whatever was refused before.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from cli.because import words_of
from cli.layout import age, count, spoken
from cli.replicas import Heard, brakes
from cli.why.scheduler import Said, failed_at, read
from cli.why.seen import DEFAULT_SCHEDULER, FINISHED, PodSeen
from component.text import one_line
from extender.web.schema import Attempt, DecisionTold, GatesTold, NodeTold, PodTold, RefusedNode
from kube.times import parse_time

NODES_LOOKED_AT = 10  # of which the cause is told
WRITTEN_LATE_S = 2.0  # so long after an attempt its message may be there


class Kind(StrEnum):
    """What the answer is, in a word."""

    OURS = "ours"
    NOT_OURS = "notOurs"
    NOT_PENDING = "notPending"
    NOT_ASKED = "notAsked"
    BLIND = "blind"
    UNKNOWN = "unknown"


NOT_OURS_CODE, OURS_CODE, CANNOT_KNOW_CODE = 0, 1, 3
CODES = {Kind.OURS: OURS_CODE, Kind.BLIND: CANNOT_KNOW_CODE, Kind.UNKNOWN: CANNOT_KNOW_CODE}


@dataclass(frozen=True)
class Facts:
    """nodes: what an extender says of each node of interest. wall: seconds since the epoch."""

    pod: PodSeen
    heard: Heard[PodTold]
    wall: float
    nodes: Mapping[str, NodeTold]
    gates: GatesTold | None = None


@dataclass(frozen=True)
class Kept:
    """A node that the pod was kept off. state: of the node for which pods, and since when. also: gates beside it."""

    node: str
    state: str
    because: str
    opens_when: str
    gate: str = ""
    open_now: bool = False
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Blame:
    """first: the answer, one or two sentences. kept: the nodes that matter. said: kube-scheduler's own words where they
    are of the same attempt, so many seconds ago. lines: what else is worth saying."""

    kind: Kind
    first: str
    kept: tuple[Kept, ...] = ()
    kept_count: int = 0
    said: Said | None = None
    said_ago_s: float | None = None
    lines: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        return CODES.get(self.kind, NOT_OURS_CODE)


def newest(pod: PodSeen, heard: Heard[PodTold]) -> tuple[str, PodTold] | None:
    """The replica that kube-scheduler asked last about this very pod; any that answers where none was asked."""

    def order(item: tuple[str, PodTold]) -> tuple[bool, bool, float]:
        told = item[1]
        last = told.last if _is_of(told, pod) else None
        return last is None, bool(told.not_answering), last.ago_seconds if last else 0.0

    return min(heard.answers.items(), key=order, default=None)


def _is_of(told: PodTold, pod: PodSeen) -> bool:
    """Not of an earlier pod of the same name."""
    return told.uid in ("", pod.metadata.uid)


def nodes_of_interest(pod: PodSeen, heard: Heard[PodTold]) -> tuple[str, list[str]]:
    """The replica to ask, and the nodes to ask it about."""
    found = newest(pod, heard)
    if found is None:
        return "", []
    name, told = found
    if pod.spec.node_name:
        return name, [pod.spec.node_name]
    refused = told.last.refused if told.last is not None and _is_of(told, pod) else ()
    return name, [one.node for one in refused[:NODES_LOOKED_AT]]


def judge(facts: Facts) -> Blame:
    """First match wins."""
    pod = facts.pod
    if pod.status.phase in FINISHED:
        where = f" on {pod.spec.node_name}" if pod.spec.node_name else ""
        return Blame(Kind.NOT_PENDING, f"It is not Pending: it has finished ({pod.status.phase}){where}.")
    if pod.spec.node_name:
        return Blame(Kind.NOT_PENDING, _bound(facts))
    if pod.metadata.deletion_timestamp:
        return Blame(Kind.NOT_PENDING, "It waits no more: it is being deleted.")
    if pod.gates:
        names = ", ".join(pod.gates)
        held = f"kube-scheduler has not asked us about it: it waits for {names}, scheduling gates of its own."
        return Blame(Kind.NOT_ASKED, held)
    found = newest(pod, facts.heard)
    if found is None:
        return Blame(Kind.UNKNOWN, "Nobody can know: no extender answers.")
    told = found[1]
    blind = [one.not_answering for one in facts.heard.answers.values()]
    if all(blind):
        return Blame(
            Kind.BLIND, f"We are blind: {blind[0]}; pods are placed unfiltered (protect) or wait for us (enforce)."
        )
    said = read(pod.message)
    last = told.last if _is_of(told, pod) else None
    return _unheard(facts, last) or (_never_asked(facts, told, said) if last is None else _asked(facts, last, said))


def _unheard(facts: Facts, last: Attempt | None) -> Blame | None:
    """A call of kube-scheduler has failed, and none was answered since. So the pod waits in enforce, also where another
    extender than the one beside the scheduler answers us."""
    message, ago = facts.pod.message, _ago(facts)
    url = failed_at(message)
    if url is None or (last is not None and ago is not None and ago > last.ago_seconds + WRITTEN_LATE_S):
        return None
    lines = _unanswered(facts)
    if not url:
        first = f"It waits for us (enforce), and kube-scheduler gets no verdict: {one_line(message)}."
        return Blame(Kind.BLIND, first, lines=lines)
    if last is not None:
        return None
    first = (
        f"Nobody can know: an extender at {one_line(url)} gives kube-scheduler no answer, and readygate doctor tells "
        "whether that is ours."
    )
    return Blame(Kind.UNKNOWN, first, lines=lines)


def _bound(facts: Facts) -> str:
    pod = facts.pod
    node, bound_at = pod.spec.node_name, pod.bound_at
    told = facts.nodes.get(node)
    begin = f"It is not Pending: it runs on {node}"
    if pod.status.phase == "Pending":  # so a Pod is called until a container of its own runs
        begin = f"It waits for no node: it is placed on {node} and has not started there"
    if bound_at is None:
        return f"{begin}."
    bound_s = max(0.0, facts.wall - bound_at)
    if told is None or told.node is None:
        return f"{begin}, bound {age(bound_s)} ago."
    closed = told.node
    if closed.open:
        return f"{begin}, bound {age(bound_s)} ago; {node} is open."
    later_s = bound_s - closed.since_seconds
    if later_s >= 0:
        return f"{begin}, bound {age(later_s)} before {node} closed."
    return f"{begin}, bound {age(-later_s)} after {node} closed: exempt, or placed unfiltered."


def _never_asked(facts: Facts, told: PodTold, said: Said | None) -> Blame:
    pod = facts.pod
    lines = _unanswered(facts)
    if said is not None and not said.ours:
        return Blame(Kind.NOT_OURS, NOTHING, said=said, said_ago_s=_ago(facts), lines=lines)
    if said is not None:
        since = told.since_start_seconds
        memory = f"what they remember begins {age(since)} ago" if since is not None else "none remembers it"
        missing = f"{count(len(facts.heard.problems), 'extender')} did not answer" if facts.heard.problems else memory
        first = f"Nobody can know which nodes: kube-scheduler names our reasons for {said.ours}, but {missing}."
        return Blame(Kind.UNKNOWN, first, said=said, said_ago_s=_ago(facts), lines=lines)
    if pod.message:
        return Blame(Kind.NOT_ASKED, f"kube-scheduler has not asked us about it: {one_line(pod.message)}.", lines=lines)
    name = pod.spec.scheduler_name or DEFAULT_SCHEDULER
    who = "it" if name == DEFAULT_SCHEDULER else f"scheduler {name}"
    return Blame(
        Kind.NOT_ASKED, f"kube-scheduler has not asked us about it: {who} has not tried to place it yet.", lines=lines
    )


NOTHING = "readygate has nothing to do with it: no node it closed would have taken this pod."


def _asked(facts: Facts, last: Attempt, said: Said | None) -> Blame:
    ago = _ago(facts)
    lines = (*_words(facts, said), *_shadow(last), *_brakes(facts.gates), *_unanswered(facts))
    if last.exempt:
        first = f"readygate has nothing to do with it: it is exempt ({last.exempt}) and never refused a node."
        return Blame(Kind.NOT_OURS, first, said=said, said_ago_s=ago, lines=lines)
    refused = max(last.refused_count, len(last.refused))
    later = ago is not None and ago <= last.ago_seconds + WRITTEN_LATE_S
    if not refused or (said is not None and not said.ours and later):
        return Blame(Kind.NOT_OURS, NOTHING, said=said, said_ago_s=ago, lines=lines)
    kept = tuple(_kept(one, facts) for one in last.refused[:NODES_LOOKED_AT])
    if last.passed and not last.nominated:
        let = f"{count(last.passed, 'node')} that would take it {'was' if last.passed == 1 else 'were'} let through"
        first = f"readygate does not hold it: {let}; {spoken(refused)} {'was' if refused == 1 else 'were'} not."
        return Blame(Kind.NOT_OURS, first, kept, refused, lines=lines)
    same = said if said is not None and said.ours == refused else None
    still = refused - max(last.open_count, sum(one.node_open for one in last.refused))
    waited = _pending(facts)
    if not still:
        them = "it" if refused == 1 else "them"
        first = f"{waited} {_would(refused, last)}; readygate has opened {them} since: kube-scheduler tries it again."
        return Blame(Kind.NOT_OURS, first, kept, refused, same, ago, lines)
    return Blame(
        Kind.OURS,
        f"{waited} {_would(still, last)}; readygate keeps it off{_all(still)}.",
        kept,
        refused,
        same,
        ago,
        lines,
    )


def _pending(facts: Facts) -> str:
    created = parse_time(facts.pod.metadata.creation_timestamp)
    waited = "" if created is None else f" for {age(facts.wall - created)}"
    return f"{facts.pod.metadata.name} has been Pending{waited}."


def _would(number: int, last: Attempt) -> str:
    words = f"{spoken(number)} node{'' if number == 1 else 's'} would take it now"
    return f"at least {words}".capitalize() if not last.complete else words[:1].upper() + words[1:]


def _all(number: int) -> str:
    return {1: "", 2: " both"}.get(number, " all of them")


def _ago(facts: Facts) -> float | None:
    at = facts.pod.message_at
    return None if at is None else max(0.0, facts.wall - at)


def _kept(refused: RefusedNode, facts: Facts) -> Kept:
    told = facts.nodes.get(refused.node)
    node = told.node if told is not None else None
    decisions = node.gates if node is not None else ()
    mine = next((one for one in decisions if one.gate == refused.gate), None)
    whom = next((gate.for_ for gate in facts.gates.gates if gate.gate == refused.gate), "") if facts.gates else ""
    if refused.node_open or mine is None:
        since = "" if refused.since_seconds is None else f" {age(refused.since_seconds)}"
        state = "open again" if refused.node_open else f"closed{since}"
        return Kept(
            refused.node, state, "" if refused.node_open else _alone(refused), "", refused.gate, refused.node_open
        )
    words = words_of(mine, node.heartbeat_age_seconds if node is not None else None)
    also = tuple(one.gate for one in decisions if one is not mine and _closes(one))
    state = f"{words.state} for {whom or 'it'} {age(mine.since_seconds)}"
    return Kept(refused.node, state, words.because, words.opens_when, refused.gate, also=also)


def _alone(refused: RefusedNode) -> str:
    return words_of(DecisionTold(open=False, reason=refused.reason, verdict=refused.reason)).because


def _closes(decision: DecisionTold) -> bool:
    return decision.armed and not decision.open and decision.severity == "gate"


def _words(facts: Facts, said: Said | None) -> tuple[str, ...]:
    """kube-scheduler's own, where they count no nodes: a plugin that failed later, as one that binds volumes."""
    message = facts.pod.message
    return (f"kube-scheduler says: {one_line(message)}",) if message and said is None else ()


def _shadow(last: Attempt) -> tuple[str, ...]:
    number = max(last.shadow_count, len(last.shadow))
    if not number:
        return ()
    gates = ", ".join(sorted({one.gate for one in last.shadow}))
    return (f"Gate {gates} is in shadow: armed, it would have kept it off {count(number, 'node')}.",)


def _brakes(gates: GatesTold | None) -> tuple[str, ...]:
    found = brakes(gates)
    if gates is None:
        return ()
    return (f"In force: {'; '.join(found)}.",) if found else ("No cap, pause or storm is in force.",)


def _unanswered(facts: Facts) -> tuple[str, ...]:
    told = [one for one in facts.heard.answers.values() if _is_of(one, facts.pod)]
    answered, not_so = sum(one.attempts for one in told), sum(one.unanswered for one in told)
    if not answered + not_so:
        return ()
    why = next((f" (the last time: {one.unanswered_why})" for one in told if one.unanswered_why and not_so), "")
    calls = f"{answered:,} of {count(answered + not_so, 'scheduler call')} for this pod"
    return (f"{calls} {'was' if answered + not_so == 1 else 'were'} answered{why}.",)
