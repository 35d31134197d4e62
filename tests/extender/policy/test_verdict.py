"""The table of extender.policy.verdict, row by row."""

import math

import pytest

from extender.policy.evidence import HealthPod, NodeEvidence
from extender.policy.reasons import (
    CLOSED_NO_HEALTH_POD,
    CLOSED_NODE_LOST,
    CLOSED_NOT_READY,
    CLOSED_STARTS_FAIL,
    CLOSED_UNHEALTHY,
    CLOSED_UNKNOWN,
    OPEN,
    REASONS,
)
from extender.policy.verdict import Memory, verdict_of
from tests.extender.builders import CREATED, LATER, health_pod, observed_node
from tools.kit.cases import cases

GRACE_S = 30.0
GOOD_ONCE = Memory(node_uid="uid-n1", ever_good=True, last=OPEN)


def verdict_on(node, pods, *, memory=None, lost=False, silent=False, monotonic=100.0):
    evidence = NodeEvidence(node, {"health": tuple(pods)}, heartbeat_lost=lost, agent_silent=silent)
    memory = Memory() if memory is None else memory
    return verdict_of(evidence, "health", memory, monotonic=monotonic, missing_grace_s=GRACE_S)


def reason(node, pods, **options):
    verdict, _ = verdict_on(node, pods, **options)
    return verdict.reason


def pod(ready: str = "True", **more: str | bool) -> HealthPod:
    return health_pod(ready=ready, **more)


def gated(**more: str) -> HealthPod:
    """Ready False while its containers are ready: somebody else wrote it, or a gate is missing."""
    return pod("False", containers_ready="True", **more)


WAITS_FOR_A_GATE = gated(ready_reason="ReadinessGatesNotReady")
UNKNOWN_POD, NEWER_BAD_POD = pod("Unknown", name="a"), pod("False", name="b", created=LATER)


def row(name: str, expected: str, *pods: HealthPod) -> object:
    return pytest.param(pods, expected, id=name)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        row("a Ready pod opens", OPEN, pod()),
        row("Ready and our condition True open", OPEN, pod(node_healthy="True")),
        row("Ready False closes", CLOSED_NOT_READY, pod("False")),
        row("a pod without conditions is not ready", CLOSED_NOT_READY, pod("")),
        row("Ready Unknown is unknown", CLOSED_UNKNOWN, pod("Unknown")),
        row("Ready may lag our condition", CLOSED_UNHEALTHY, pod(node_healthy="False")),
        row("our condition explains Ready False", CLOSED_UNHEALTHY, gated(node_healthy="False")),
        row("our condition Unknown is unknown", CLOSED_UNKNOWN, pod(node_healthy="Unknown")),
        row("Ready False while containers are ready: the node controller wrote it", CLOSED_NODE_LOST, gated()),
        row("the same with our condition still True", CLOSED_NODE_LOST, gated(node_healthy="True")),
        row("a pod that still waits for a readiness gate is not a lost node", CLOSED_NOT_READY, WAITS_FOR_A_GATE),
        row("no pod, never a good one", CLOSED_NO_HEALTH_POD),
        row("X52: a terminating pod does not count", CLOSED_NO_HEALTH_POD, pod(terminating=True)),
        row("X52: a finished pod does not count", CLOSED_NO_HEALTH_POD, pod(finished=True)),
        row("a pod of another node does not count", CLOSED_NO_HEALTH_POD, pod(node="n2")),
        row("X51: the best pod speaks", OPEN, pod("False", name="a"), pod(name="b", created=LATER)),
        row("of several bad pods the newest speaks", CLOSED_NOT_READY, UNKNOWN_POD, NEWER_BAD_POD),
    ],
)
def test_the_pods_decide(pods: tuple[HealthPod, ...], expected: str) -> None:
    assert expected == reason(observed_node(), pods)


@pytest.mark.parametrize(
    ("ready", "pods", "expected"),
    [
        pytest.param("False", [health_pod()], CLOSED_UNHEALTHY, id="a kubelet that reports itself not Ready closes"),
        pytest.param("Unknown", [health_pod()], CLOSED_NODE_LOST, id="a node the controller lost closes"),
        pytest.param("", [health_pod()], OPEN, id="a node without conditions is no evidence"),
        pytest.param("False", [health_pod(ready="False")], CLOSED_NOT_READY, id="a bad pod's own reason is told first"),
    ],
)
def test_the_nodes_own_condition(ready, pods, expected):
    assert expected == reason(observed_node(ready=ready), pods)


def test_an_old_heartbeat_closes_whatever_the_pod_says():
    assert reason(observed_node(), [health_pod()], lost=True) == CLOSED_NODE_LOST


MADE_BEFORE = "2025-12-31T23:59:59Z"


@cases(
    "old_pod, expected",
    ("older than the node", health_pod(created=MADE_BEFORE), CLOSED_NO_HEALTH_POD),
    ("older, Ready again since", health_pod(created=MADE_BEFORE, ready_since="2026-01-01T00:00:05Z"), OPEN),
    ("first seen on a Node with another uid", health_pod(node_uid="uid-before"), CLOSED_NO_HEALTH_POD),
    ("first seen there, but Ready again since", health_pod(node_uid="uid-before", ready_since=LATER), OPEN),
    ("made in the same second", health_pod(), OPEN),
)
def test_x54_a_node_made_again_does_not_inherit_the_old_pod(old_pod, expected):
    assert expected == reason(observed_node(), [old_pod])


def test_an_old_pod_that_stays_ready_counts_again_and_the_verdict_says_when():
    old = health_pod(created=MADE_BEFORE)
    verdict, memory = verdict_on(observed_node(), [old], memory=Memory(), monotonic=100.0)
    assert (verdict.reason, verdict.changes_at) == (CLOSED_NO_HEALTH_POD, 160.0)
    assert reason(observed_node(), [old], memory=memory, monotonic=159.9) == CLOSED_NO_HEALTH_POD
    assert reason(observed_node(), [old], memory=memory, monotonic=160.0) == OPEN


@cases(
    "memory, monotonic, expected",
    ("the last verdict stays at first", GOOD_ONCE, 100.0, OPEN),
    ("and up to the grace", Memory("uid-n1", ever_good=True, last=OPEN, missing_since=71.0), 100.0, OPEN),
    ("then it closes", Memory("uid-n1", ever_good=True, last=OPEN, missing_since=70.0), 100.0, CLOSED_NO_HEALTH_POD),
    ("bad stays", Memory("uid-n1", ever_good=True, last=CLOSED_UNHEALTHY, missing_since=99.0), 100.0, CLOSED_UNHEALTHY),
    ("not for another Node object", Memory("uid-before", ever_good=True, last=OPEN), 100.0, CLOSED_NO_HEALTH_POD),
)
def test_a_missing_pod_has_a_grace(memory, monotonic, expected):
    assert expected == reason(observed_node(), [], memory=memory, monotonic=monotonic)


def test_the_grace_says_when_it_ends_and_starts_anew_with_each_loss():
    verdict, memory = verdict_on(observed_node(), [], memory=GOOD_ONCE, monotonic=100.0)
    assert verdict.changes_at == 130.0
    _, memory = verdict_on(observed_node(), [health_pod()], memory=memory, monotonic=110.0)
    verdict, _ = verdict_on(observed_node(), [], memory=memory, monotonic=120.0)
    assert verdict.changes_at == 150.0


DELETED, BEFORE, AFTER = "2026-01-01T01:00:00Z", "2026-01-01T00:59:59Z", "2026-01-01T01:00:03Z"


def leaving(ready: str = "True", **more: object) -> HealthPod:
    """Told to end ten seconds ago."""
    facts = {"started": CREATED, "ready_since": CREATED, "deleted": DELETED, "deleted_at": 90.0, "terminating": True}
    return health_pod(ready=ready, **(facts | more))


RECALLED = [
    ("it is still Ready", leaving(), OPEN),
    ("not Ready since it was told to end", leaving("False", ready_since=AFTER), OPEN),
    ("in the same second", leaving("False", ready_since=DELETED), OPEN),
    ("not Ready before", leaving("False", ready_since=BEFORE), CLOSED_NO_HEALTH_POD),
    ("nobody knows", leaving("Unknown", ready_since=AFTER), CLOSED_NO_HEALTH_POD),
    ("no condition", leaving(""), CLOSED_NO_HEALTH_POD),
    ("the agent said farewell", leaving(node_healthy="False", node_healthy_since=AFTER), OPEN),
    ("it was unhealthy before", leaving(node_healthy="False", node_healthy_since=BEFORE), CLOSED_NO_HEALTH_POD),
    ("first heard of after that", leaving("False", ready_since=AFTER, started=AFTER), CLOSED_NO_HEALTH_POD),
    ("never started", leaving("False", ready_since=AFTER, started=""), CLOSED_NO_HEALTH_POD),
    ("the grace is over", leaving(deleted_at=70.0), CLOSED_NO_HEALTH_POD),
    ("a clock that is behind", leaving(deleted_at=500.0), OPEN),
    ("a time that cannot be read", leaving(deleted="", deleted_at=-math.inf), CLOSED_NO_HEALTH_POD),
    ("it has finished", leaving(finished=True), CLOSED_NO_HEALTH_POD),
    ("X54: of an earlier Node object", leaving(node_uid="uid-before"), CLOSED_NO_HEALTH_POD),
]


@cases("old_pod, expected", *RECALLED)
def test_a_start_between_two_pods_of_a_rollout_finds_the_last_verdict(old_pod: HealthPod, expected: str) -> None:
    assert expected == reason(observed_node(born_at=95.0), [old_pod])


def test_what_is_recalled_ends_with_the_grace_and_not_when_the_old_pod_goes() -> None:
    verdict, memory = verdict_on(observed_node(), [leaving()])
    assert (OPEN, 120.0) == (verdict.reason, verdict.changes_at)
    assert OPEN == reason(observed_node(), [], memory=memory, monotonic=119.9)
    assert CLOSED_NO_HEALTH_POD == reason(observed_node(), [], memory=memory, monotonic=120.0)


def test_what_is_remembered_is_not_recalled() -> None:
    memory = Memory("uid-n1", ever_good=True, last=CLOSED_UNHEALTHY, missing_since=95.0)
    assert CLOSED_UNHEALTHY == reason(observed_node(), [leaving()], memory=memory)


def test_a_new_pod_speaks_louder_than_one_that_leaves() -> None:
    assert CLOSED_NOT_READY == reason(observed_node(), [leaving(name="old"), health_pod("new", ready="False")])


def test_reasons_are_at_most_seven_and_constant():
    assert len(set(REASONS)) <= 7
    assert not [text for text in REASONS if "%" in text or any(c.isdigit() for c in text)]


@pytest.mark.parametrize(
    ("said", "node", "lost", "expected"),
    [
        pytest.param("True", {}, False, CLOSED_UNKNOWN, id="all that is there says that it is good: nobody looks"),
        pytest.param("False", {}, False, CLOSED_NOT_READY, id="what its health pod says explains more"),
        pytest.param("True", {"ready": "Unknown"}, False, CLOSED_NODE_LOST, id="and so does its Node"),
        pytest.param("True", {}, True, CLOSED_NODE_LOST, id="and its kubelet's Lease"),
    ],
)
def test_an_agent_that_is_silent_closes_what_nothing_else_has_closed(said, node, lost, expected):
    found, _ = verdict_on(observed_node(**node), [pod(said)], lost=lost, silent=True)
    assert expected == found.reason


def test_a_silent_agent_has_a_cause_of_its_own():
    """By it people, metrics and storms tell it from all else that is unknown."""
    found, _ = verdict_on(observed_node(), [pod()], silent=True)
    assert ("Heartbeat", "the agent on the node is silent") == (found.cause, found.evidence)


@pytest.mark.parametrize(
    ("swallows", "lost", "expected"),
    [
        pytest.param("", False, (OPEN, ""), id="pods start there"),
        pytest.param("", True, (OPEN, ""), id="a lost node is no matter of this gate"),
        pytest.param("pods of 3", False, (CLOSED_STARTS_FAIL, "pods of 3"), id="pods fail that start elsewhere"),
    ],
)
def test_a_gate_by_starts_looks_at_nothing_else(swallows: str, lost: bool, expected: tuple[str, str]) -> None:
    evidence = NodeEvidence(observed_node(ready="False"), {"health": (pod("False"),)}, lost, swallows=swallows)
    verdict, memory = verdict_of(evidence, "x", Memory(), monotonic=100.0, missing_grace_s=GRACE_S, by_starts=True)
    assert (*expected, True) == (verdict.reason, verdict.evidence, memory.ever_good)
    assert verdict.reason == verdict.bare
