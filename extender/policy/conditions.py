"""Pure: whether the conditions of a gate are good: conditions of the health pod, and conditions of the Node that other
programs write.

    all of `allOf` good, and one of `anyOf` if there are any      open
    else the first that is not good decides                       closed: unhealthy where its status is the other one,
                                                                  unknown where it is missing, unknown or stale

Each rule says whether a missing, an unknown and a stale condition count as good. A stale status counts as neither good
nor bad.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from extender.config import gates
from extender.policy import reasons
from extender.policy.evidence import HealthPod, ObservedCondition, ObservedNode
from kube import contract
from kube.times import format_time, parse_time


@dataclass(frozen=True, slots=True)
class ConditionRule:
    """The rule for one condition.

    status: the good one. missing, unknown, stale: whether that counts as good. stale_after_s: None = never.
    """

    of_node: bool
    type: str
    status: str = contract.STATUS_TRUE
    missing_good: bool = False
    unknown_good: bool = False
    stale_good: bool = False
    stale_after_s: float | None = None

    @property
    def text(self) -> str:
        return f"{'node' if self.of_node else 'pod'} condition {self.type}"


@dataclass(frozen=True, slots=True)
class ConditionRules:
    all_of: tuple[ConditionRule, ...] = ()
    any_of: tuple[ConditionRule, ...] = ()

    @property
    def each(self) -> tuple[ConditionRule, ...]:
        return self.all_of + self.any_of

    @property
    def needs_pod(self) -> bool:
        return any(not rule.of_node for rule in self.each)

    @property
    def pod_types(self) -> frozenset[str]:
        return frozenset(rule.type for rule in self.each if not rule.of_node)

    @property
    def node_types(self) -> frozenset[str]:
        return frozenset(rule.type for rule in self.each if rule.of_node)

    @property
    def aging_types(self) -> frozenset[str]:
        """Types of Node conditions whose heartbeat is read."""
        return frozenset(rule.type for rule in self.each if rule.of_node and rule.stale_after_s is not None)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of the conditions.

    reason: OPEN, or one of `reasons`. cause: the word of the condition that decided. evidence: text for humans, which
    stays equal until something changes. since: RFC 3339, "" if unknown. changes_wall: seconds since the epoch when time
    alone may change the result; None if never.
    """

    reason: str
    cause: str = ""
    evidence: str = ""
    since: str = ""
    changes_wall: float | None = None


def rules_of(conditions: gates.Conditions) -> ConditionRules:
    return ConditionRules(tuple(map(_rule, conditions.all_of)), tuple(map(_rule, conditions.any_of)))


def judge(rules: ConditionRules, pod: HealthPod | None, node: ObservedNode, wall: float) -> Judgement:
    """Returns the result. pod: the health pod that counts for the node; None = there is none, so its conditions are
    missing."""
    all_of = [_look(rule, pod, node, wall) for rule in rules.all_of]
    any_of = [_look(rule, pod, node, wall) for rule in rules.any_of]
    changes = min((one.changes_wall for one in (*all_of, *any_of) if one.changes_wall is not None), default=None)
    for one in all_of:
        if one.reason != reasons.OPEN:
            return Judgement(one.reason, one.cause, one.evidence, one.since, changes)
    if not any_of or any(one.reason == reasons.OPEN for one in any_of):
        return Judgement(reasons.OPEN, changes_wall=changes)
    first = any_of[0]
    evidence = first.evidence if len(any_of) == 1 else f"none of {len(any_of)} is good; {first.evidence}"
    return Judgement(first.reason, first.cause, evidence, _last(one.since for one in any_of), changes)


def _rule(condition: gates.Condition) -> ConditionRule:
    return ConditionRule(
        of_node=condition.of == "node",
        type=condition.type,
        status=condition.status,
        missing_good=condition.missing == "open",
        unknown_good=condition.unknown == "open",
        stale_good=condition.stale == "open",
        stale_after_s=condition.stale_after_seconds,
    )


def _look(rule: ConditionRule, pod: HealthPod | None, node: ObservedNode, wall: float) -> Judgement:
    seen = _of_node(rule.type, node) if rule.of_node else _of_pod(rule.type, pod)
    if seen is None:
        return _counts(rule.missing_good, rule, "is missing", "Missing")
    changes = None
    if rule.stale_after_s is not None:
        stale_at = _seconds(seen.seen or seen.changed) + rule.stale_after_s
        if wall >= stale_at:
            text = f"has not been renewed for {rule.stale_after_s:g} s"
            since = format_time(stale_at) if stale_at > rule.stale_after_s else ""
            return _counts(rule.stale_good, rule, text, "Stale", since)
        changes = stale_at
    if seen.status == rule.status:
        return Judgement(reasons.OPEN, changes_wall=changes)
    said = ": ".join(part for part in (seen.reason, seen.message) if part)
    text = f"is {seen.status or 'empty'}{said and f': {said}'}"
    cause = seen.reason or seen.status
    if seen.status not in (contract.STATUS_TRUE, contract.STATUS_FALSE):
        return _counts(rule.unknown_good, rule, text, cause, seen.changed, changes)
    return Judgement(reasons.CLOSED_UNHEALTHY, f"{rule.type}:{cause}", f"{rule.text} {text}", seen.changed, changes)


def _counts(
    good: bool, rule: ConditionRule, text: str, cause: str, since: str = "", changes: float | None = None
) -> Judgement:
    if good:
        return Judgement(reasons.OPEN, changes_wall=changes)
    return Judgement(reasons.CLOSED_UNKNOWN, f"{rule.type}:{cause}", f"{rule.text} {text}", since, changes)


def _of_node(kind: str, node: ObservedNode) -> ObservedCondition | None:
    found = next((one for one in node.conditions if one.type == kind), None)
    if found is None and kind == contract.CONDITION_READY and node.ready:
        return ObservedCondition(kind, node.ready, changed=node.ready_since)
    return found


def _of_pod(kind: str, pod: HealthPod | None) -> ObservedCondition | None:
    if pod is None:
        return None
    match kind:
        case contract.CONDITION_READY:
            status, since = pod.ready, pod.ready_since
        case contract.CONDITION_NODE_HEALTHY:
            status, since = pod.node_healthy, pod.node_healthy_since
        case _:
            status, since = pod.conditions.get(kind, ""), ""
    if not status:
        return None
    # for these two conditions the words of the pod are used
    spoken = kind in (contract.CONDITION_READY, contract.CONDITION_NODE_HEALTHY)
    return ObservedCondition(kind, status, pod.cause if spoken else "", pod.message if spoken else "", since)


def _seconds(text: str) -> float:
    """Returns the seconds since the epoch; minus infinity for a time that cannot be read."""
    try:
        return parse_time(text or None) or 0.0
    except (msgspec.ValidationError, OverflowError):
        return 0.0


def _last(times: Iterable[str]) -> str:
    """Returns when the last of them turned; "" if one of the times is missing."""
    each = list(times)
    return "" if "" in each else max(each)
