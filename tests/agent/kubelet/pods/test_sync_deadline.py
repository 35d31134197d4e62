"""Rows AD: pods that run for longer than they may are ended, whatever clocks and agents do meanwhile."""

from dataclasses import replace

import pytest

from agent.kubelet.status.deadline import MESSAGE_DEADLINE
from agent.wire.model import PodPhase
from tests.agent.kubelet.pods.test_sync import POD, Node
from tests.agent.kubelet.status.builders import NOW, make_status

LIMITED = replace(POD, active_deadline_s=90, termination_grace_period_s=5)
EXCEEDED = ("", "Normal", "DeadlineExceeded", MESSAGE_DEADLINE)


@pytest.fixture
def node() -> Node:
    return Node()


def test_ad5_a_pod_ends_at_its_deadline_and_fails(node: Node) -> None:
    node.put(LIMITED)
    node.after(60)
    node.after(29)
    assert ([], PodPhase.RUNNING) == (node.runtime.stopped, node.status().phase)
    node.after(1)
    assert ([("c", 5)], False) == (node.runtime.stopped, node.finished())
    assert EXCEEDED in node.told
    node.end("c", 143)
    status = node.status()
    assert (PodPhase.FAILED, "DeadlineExceeded", True) == (status.phase, status.reason, node.finished())
    assert [("c", 0)] == node.runtime.started


def test_ad7_a_new_agent_counts_from_the_start_of_the_pod(node: Node) -> None:
    node.put(replace(LIMITED, status=make_status(phase=PodPhase.RUNNING, start_time=NOW - 80)))
    node.after(9)
    assert [] == node.runtime.stopped
    node.after(1)
    assert [("c", 5)] == node.runtime.stopped


def test_ad7_a_pod_whose_time_was_over_before_its_agent_came_is_not_started(node: Node) -> None:
    node.put(replace(LIMITED, status=make_status(phase=PodPhase.RUNNING, start_time=NOW - 3600)))
    assert ([], PodPhase.FAILED, True) == (node.runtime.started, node.status().phase, node.finished())


def test_ad9_a_clock_that_is_set_forward_ends_it_within_two_seconds_as_a_kubelets_does(node: Node) -> None:
    node.put(LIMITED)
    node.wall.time += 3600
    node.after(2)
    assert [("c", 5)] == node.runtime.stopped


def test_ad9_a_clock_that_is_set_back_gives_it_more_time(node: Node) -> None:
    node.put(LIMITED)
    node.wall.time -= 3600
    node.after(90)
    assert [] == node.runtime.stopped
    node.after(3600)
    assert [("c", 5)] == node.runtime.stopped


def test_a_deadline_that_comes_later_holds_too(node: Node) -> None:
    node.put(POD)
    node.after(60)
    node.put(replace(POD, active_deadline_s=30))
    assert [("c", 30)] == node.runtime.stopped
