"""Whether a gate's conditions are as they shall be."""

from dataclasses import replace

import pytest

from extender.config.settings import parse
from extender.policy.conditions import ConditionRule, ConditionRules, Judgement, judge, rules_of
from extender.policy.evidence import ObservedCondition
from extender.policy.reasons import CLOSED_UNHEALTHY, CLOSED_UNKNOWN, OPEN
from kube.times import parse_time
from tests.extender.builders import health_pod, observed_node
from tools.kit.cases import cases

AT = "2026-01-01T12:00:00Z"
EARLIER = "2026-01-01T11:50:00Z"
WALL = parse_time(AT)


def on_node(*conditions):
    return replace(observed_node(), conditions=conditions)


def condition(status, *, kind="Disk", reason="", message="", changed=EARLIER, seen=""):
    return ObservedCondition(kind, status, reason, message, changed, seen)


def of_node(status="True", kind="Disk", **others):
    return ConditionRule(True, kind, status, **others)


def of_pod(status="True", kind="example.com/Tested", **others):
    return ConditionRule(False, kind, status, **others)


def judged(rules, node=None, pod=None, wall=WALL):
    rules = rules if isinstance(rules, ConditionRules) else ConditionRules((rules,))
    return judge(rules, pod, node or on_node(), wall)


@cases(
    "rule, node, expected",
    ("as it shall be", of_node(), on_node(condition("True")), OPEN),
    ("the other status", of_node(), on_node(condition("False")), CLOSED_UNHEALTHY),
    ("True, where False is good", of_node("False"), on_node(condition("True")), CLOSED_UNHEALTHY),
    ("False, where False is good", of_node("False"), on_node(condition("False")), OPEN),
    ("Unknown is closed", of_node(), on_node(condition("Unknown")), CLOSED_UNKNOWN),
    ("Unknown, said to be open", of_node(unknown_good=True), on_node(condition("Unknown")), OPEN),
    ("a word that nobody knows is unknown", of_node(), on_node(condition("Maybe")), CLOSED_UNKNOWN),
    ("missing is closed", of_node(), on_node(), CLOSED_UNKNOWN),
    ("missing, said to be open", of_node(missing_good=True), on_node(), OPEN),
    ("not missing, so it counts", of_node(missing_good=True), on_node(condition("False")), CLOSED_UNHEALTHY),
    ("the node's own Ready", of_node(kind="Ready"), observed_node(ready="True"), OPEN),
    ("a node that is lost", of_node(kind="Ready"), observed_node(ready="Unknown"), CLOSED_UNKNOWN),
)
def test_a_condition_of_the_node(rule, node, expected):
    assert expected == judged(rule, node).reason


NODE_HEALTHY = "readygate.dev/NodeHealthy"


@cases(
    "rule, pod, expected",
    ("as it shall be", of_pod(), health_pod(conditions={"example.com/Tested": "True"}), OPEN),
    ("the other status", of_pod(), health_pod(conditions={"example.com/Tested": "False"}), CLOSED_UNHEALTHY),
    ("missing", of_pod(), health_pod(), CLOSED_UNKNOWN),
    ("missing, said to be open", of_pod(missing_good=True), health_pod(), OPEN),
    ("no pod, so it is missing", of_pod(), None, CLOSED_UNKNOWN),
    ("Ready", of_pod(kind="Ready"), health_pod(ready="True"), OPEN),
    ("not Ready", of_pod(kind="Ready"), health_pod(ready="False"), CLOSED_UNHEALTHY),
    ("the agent's own", of_pod(kind=NODE_HEALTHY), health_pod(ready="True", node_healthy="False"), CLOSED_UNHEALTHY),
)
def test_a_condition_of_the_health_pod(rule, pod, expected):
    assert expected == judged(rule, pod=pod).reason


GOOD, BAD, GONE = of_node(kind="Good"), of_node(kind="Bad"), of_node(kind="Gone")
SEEN = on_node(condition("True", kind="Good"), condition("False", kind="Bad"))


@pytest.mark.parametrize(
    ("all_of", "any_of", "expected"),
    [
        pytest.param((GOOD,), (), OPEN, id="all good"),
        pytest.param((GOOD, BAD), (), CLOSED_UNHEALTHY, id="one of all bad"),
        pytest.param((GONE, BAD), (), CLOSED_UNKNOWN, id="the first that is not good decides"),
        pytest.param((), (BAD, GOOD), OPEN, id="one of any good"),
        pytest.param((), (BAD, GONE), CLOSED_UNHEALTHY, id="none of any good: the first decides"),
        pytest.param((GOOD,), (BAD,), CLOSED_UNHEALTHY, id="all good, none of any"),
        pytest.param((BAD,), (GOOD,), CLOSED_UNHEALTHY, id="one of any good, not all"),
        pytest.param((GOOD,), (BAD, GOOD), OPEN, id="all good, and one of any"),
    ],
)
def test_all_of_and_any_of(all_of, any_of, expected):
    assert expected == judged(ConditionRules(all_of, any_of), SEEN).reason


STALE = of_node(stale_after_s=300.0)


@cases(
    "rule, seen, reason, changes_s",
    ("renewed four minutes ago", STALE, condition("True", seen="2026-01-01T11:56:00Z"), OPEN, 60),
    ("at the limit it is stale", STALE, condition("True", seen="2026-01-01T11:55:00Z"), CLOSED_UNKNOWN, None),
    ("bad, and not stale yet", STALE, condition("False", seen="2026-01-01T11:56:00Z"), CLOSED_UNHEALTHY, 60),
    ("bad but stale", of_node(stale_after_s=300.0, stale_good=True), condition("False", seen=EARLIER), OPEN, None),
    ("without a heartbeat the last change counts", STALE, condition("True", changed="2026-01-01T11:56:00Z"), OPEN, 60),
    ("no time at all is stale", STALE, condition("True", changed="", seen=""), CLOSED_UNKNOWN, None),
    ("nor is what is no time", STALE, condition("True", seen="yesterday"), CLOSED_UNKNOWN, None),
    ("a clock that is ahead", STALE, condition("True", seen="2026-01-01T12:30:00Z"), OPEN, 2100),
)
def test_a_condition_that_nobody_renews(rule, seen, reason, changes_s):
    found = judged(rule, on_node(seen))
    assert (reason, None if changes_s is None else WALL + changes_s) == (found.reason, found.changes_wall)


DEADLOCKED = on_node(condition("True", kind="KernelDeadlock", reason="DockerHung", message="task docker:7 blocked"))
MESSAGE = "node condition KernelDeadlock is True: DockerHung: task docker:7 blocked"
DEADLOCK = Judgement(CLOSED_UNHEALTHY, "KernelDeadlock:DockerHung", MESSAGE, EARLIER)
STALE_SAYS = "node condition Disk has not been renewed for 300 s"
NOT_RENEWED = Judgement(CLOSED_UNKNOWN, "Disk:Stale", STALE_SAYS, "2026-01-01T11:55:00Z")
BOTH_BAD = on_node(condition("False", kind="Bad"), condition("False", kind="Worse", changed=AT))
NONE_GOOD = Judgement(CLOSED_UNHEALTHY, "Bad:False", "none of 2 is good; node condition Bad is False", AT)


@cases(
    "rules, node, expected",
    ("a node problem detector's", of_node("False", kind="KernelDeadlock"), DEADLOCKED, DEADLOCK),
    ("missing", of_node(), on_node(), Judgement(CLOSED_UNKNOWN, "Disk:Missing", "node condition Disk is missing")),
    ("stale since then", STALE, on_node(condition("True", seen="2026-01-01T11:50:00Z")), NOT_RENEWED),
    ("none of any, since the last change", ConditionRules((), (BAD, of_node(kind="Worse"))), BOTH_BAD, NONE_GOOD),
)
def test_which_condition_decided_and_since_when(rules, node, expected):
    assert expected == judged(rules, node)


def test_the_conditions_of_a_configuration():
    text = """
gates:
- conditions:
    allOf:
    - {of: pod, type: Ready}
    - of: node
      type: KernelDeadlock
      status: "False"
      missing: open
      unknown: open
      stale: open
      staleAfterSeconds: 60
    anyOf: [{of: node, type: Ready}]
"""
    conditions = parse(text).gate.conditions
    rules = rules_of(conditions)
    assert rules == ConditionRules(
        (
            ConditionRule(False, "Ready"),
            ConditionRule(True, "KernelDeadlock", "False", True, True, True, 60),
        ),
        (ConditionRule(True, "Ready"),),
    )
    assert (True, {"Ready"}, {"Ready", "KernelDeadlock"}, {"KernelDeadlock"}) == (
        rules.needs_pod,
        rules.pod_types,
        rules.node_types,
        rules.aging_types,
    )
