"""The table of extender.policy.verdict, row by row."""

import pytest

from extender.policy.verdict import OPEN, REASONS, Memory, judge
from kube.contract import (
    CLOSED_NO_HEALTH_POD,
    CLOSED_NODE_LOST,
    CLOSED_NODE_NOT_READY,
    CLOSED_NOT_READY,
    CLOSED_UNHEALTHY,
    CLOSED_UNKNOWN,
)
from tests.extender.builders import LATER, facts, health_pod

GRACE_S = 30.0
GOOD_ONCE = Memory(node_uid="uid-n1", ever_good=True, last=OPEN)


def reason(node, pods, *, memory=None, lost=False, now=100.0):
    verdict, _ = judge(
        node, pods, Memory() if memory is None else memory, heartbeat_lost=lost, now=now, missing_grace_s=GRACE_S
    )
    return verdict.reason


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([health_pod()], OPEN, id="a Ready pod opens"),
        pytest.param([health_pod(node_healthy="True")], OPEN, id="Ready and our condition True open"),
        pytest.param([health_pod(ready="False")], CLOSED_NOT_READY, id="Ready False closes"),
        pytest.param([health_pod(ready="")], CLOSED_NOT_READY, id="a pod without conditions is not ready"),
        pytest.param([health_pod(ready="Unknown")], CLOSED_UNKNOWN, id="Ready Unknown is unknown"),
        pytest.param([health_pod(node_healthy="False")], CLOSED_UNHEALTHY, id="Ready may lag our condition"),
        pytest.param(
            [health_pod(ready="False", containers_ready="True", node_healthy="False")],
            CLOSED_UNHEALTHY,
            id="our condition explains Ready False",
        ),
        pytest.param([health_pod(node_healthy="Unknown")], CLOSED_UNKNOWN, id="our condition Unknown is unknown"),
        pytest.param(
            [health_pod(ready="False", containers_ready="True")],
            CLOSED_NODE_LOST,
            id="Ready False while containers are ready: the node controller wrote it",
        ),
        pytest.param(
            [health_pod(ready="False", containers_ready="True", node_healthy="True")],
            CLOSED_NODE_LOST,
            id="the same with our condition still True",
        ),
        pytest.param(
            [health_pod(ready="False", containers_ready="True", ready_reason="ReadinessGatesNotReady")],
            CLOSED_NOT_READY,
            id="a pod that still waits for a readiness gate is not a lost node",
        ),
        pytest.param([], CLOSED_NO_HEALTH_POD, id="no pod, never a good one"),
        pytest.param([health_pod(terminating=True)], CLOSED_NO_HEALTH_POD, id="X52: a terminating pod does not count"),
        pytest.param([health_pod(finished=True)], CLOSED_NO_HEALTH_POD, id="X52: a finished pod does not count"),
        pytest.param([health_pod(node="n2")], CLOSED_NO_HEALTH_POD, id="a pod of another node does not count"),
        pytest.param(
            [health_pod("a", ready="False"), health_pod("b", created=LATER)], OPEN, id="X51: the best pod speaks"
        ),
        pytest.param(
            [health_pod("a", ready="Unknown"), health_pod("b", ready="False", created=LATER)],
            CLOSED_NOT_READY,
            id="of several bad pods the newest speaks",
        ),
    ],
)
def test_the_pods_decide(pods, expected):
    assert expected == reason(facts(), pods)


@pytest.mark.parametrize(
    ("ready", "pods", "expected"),
    [
        pytest.param(
            "False", [health_pod()], CLOSED_NODE_NOT_READY, id="a kubelet that reports itself not Ready closes"
        ),
        pytest.param("Unknown", [health_pod()], CLOSED_NODE_LOST, id="a node the controller lost closes"),
        pytest.param("", [health_pod()], OPEN, id="a node without conditions is no evidence"),
        pytest.param("False", [health_pod(ready="False")], CLOSED_NOT_READY, id="a bad pod's own reason is told first"),
    ],
)
def test_the_nodes_own_condition(ready, pods, expected):
    assert expected == reason(facts(ready=ready), pods)


def test_an_old_heartbeat_closes_whatever_the_pod_says():
    assert reason(facts(), [health_pod()], lost=True) == CLOSED_NODE_LOST


@pytest.mark.parametrize(
    ("old_pod", "expected"),
    [
        pytest.param(health_pod(created="2025-12-31T23:59:59Z"), CLOSED_NO_HEALTH_POD, id="older than the node"),
        pytest.param(
            health_pod(created="2025-12-31T23:59:59Z", ready_since="2026-01-01T00:00:05Z"),
            OPEN,
            id="older, but Ready since after the node was made",
        ),
        pytest.param(
            health_pod(node_uid="uid-before"), CLOSED_NO_HEALTH_POD, id="first seen on a Node with another uid"
        ),
        pytest.param(
            health_pod(node_uid="uid-before", ready_since=LATER), OPEN, id="first seen there, but Ready again since"
        ),
        pytest.param(health_pod(), OPEN, id="made in the same second"),
    ],
)
def test_x54_a_node_made_again_does_not_inherit_the_old_pod(old_pod, expected):
    assert expected == reason(facts(), [old_pod])


def test_an_old_pod_that_stays_ready_counts_again_and_the_verdict_says_when():
    old = health_pod(created="2025-12-31T23:59:59Z")
    verdict, memory = judge(facts(), [old], Memory(), heartbeat_lost=False, now=100.0, missing_grace_s=GRACE_S)
    assert (verdict.reason, verdict.changes_at) == (CLOSED_NO_HEALTH_POD, 160.0)
    assert reason(facts(), [old], memory=memory, now=159.9) == CLOSED_NO_HEALTH_POD
    assert reason(facts(), [old], memory=memory, now=160.0) == OPEN


@pytest.mark.parametrize(
    ("memory", "now", "expected"),
    [
        pytest.param(GOOD_ONCE, 100.0, OPEN, id="the last verdict stays at first"),
        pytest.param(
            Memory("uid-n1", ever_good=True, last=OPEN, missing_since=71.0), 100.0, OPEN, id="and up to the grace"
        ),
        pytest.param(
            Memory("uid-n1", ever_good=True, last=OPEN, missing_since=70.0),
            100.0,
            CLOSED_NO_HEALTH_POD,
            id="then it closes",
        ),
        pytest.param(
            Memory("uid-n1", ever_good=True, last=CLOSED_UNHEALTHY, missing_since=99.0),
            100.0,
            CLOSED_UNHEALTHY,
            id="a closed verdict stays as well",
        ),
        pytest.param(
            Memory("uid-before", ever_good=True, last=OPEN),
            100.0,
            CLOSED_NO_HEALTH_POD,
            id="not for another Node object",
        ),
    ],
)
def test_a_missing_pod_has_a_grace(memory, now, expected):
    assert expected == reason(facts(), [], memory=memory, now=now)


def test_the_grace_says_when_it_ends_and_starts_anew_with_each_loss():
    verdict, memory = judge(facts(), [], GOOD_ONCE, heartbeat_lost=False, now=100.0, missing_grace_s=GRACE_S)
    assert verdict.changes_at == 130.0
    _, memory = judge(facts(), [health_pod()], memory, heartbeat_lost=False, now=110.0, missing_grace_s=GRACE_S)
    verdict, _ = judge(facts(), [], memory, heartbeat_lost=False, now=120.0, missing_grace_s=GRACE_S)
    assert verdict.changes_at == 150.0


def test_reasons_are_at_most_six_and_constant():
    assert len(set(REASONS)) <= 6
    assert not [text for text in REASONS if "%" in text or any(c.isdigit() for c in text)]
