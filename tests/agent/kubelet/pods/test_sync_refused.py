"""Pods on a node that is full: which are refused, what becomes of these later, and whose room the next one gets."""

from dataclasses import replace

import pytest

from agent.wire.model import Pod, PodPhase
from tests.agent.kubelet.pods.test_sync import Node
from tests.agent.kubelet.status.builders import NOW, make_pod, make_status

FAILED = make_status(phase=PodPhase.FAILED, reason="OutOfpods")
NEXT = make_pod("c", uid="uid-2", name="pod-2")
DELETED = replace(NEXT, deletion_timestamp=NOW, deletion_grace_period_s=7)


@pytest.fixture
def full() -> Node:
    """It takes one pod, and that runs."""
    node = Node(max_pods=1)
    node.put(make_pod("c"))
    return node


def refused(node: Node) -> bool:
    status = node.status("uid-2")
    return (PodPhase.FAILED, "OutOfpods") == (status.phase, status.reason)


def test_pw15_a_pod_that_is_being_deleted_needs_room_too(full: Node) -> None:
    full.put(DELETED)
    assert (True, False) == (refused(full), full.finished("uid-2"))
    full.pods["uid-2"] = replace(DELETED, status=FAILED)  # the API server has taken it over
    full.after(2.0)
    assert (True, True) == (refused(full), full.finished("uid-2"))


def test_pw15_one_that_finds_room_is_ended_and_not_refused() -> None:
    node = Node(max_pods=1)
    node.put(DELETED)
    assert (False, True) == (refused(node), node.finished("uid-2"))


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(replace(NEXT, status=FAILED, labels={"a": "b"}), id="labels"),
        pytest.param(replace(DELETED, status=FAILED), id="deleted"),
        pytest.param(DELETED, id="deleted before the API server has its status"),
    ],
)
def test_pw16_a_refused_pod_that_is_changed_later_is_ended(full: Node, changed: Pod) -> None:
    full.put(NEXT)
    assert (True, False) == (refused(full), full.finished("uid-2"))
    full.put(changed)
    assert (True, False) == (full.finished("uid-2"), full.loop.could_run("uid-2"))
    assert PodPhase.FAILED == full.status("uid-2").phase
    assert [("c", 0)] == full.runtime.started


def test_pw16_one_whose_status_the_api_server_does_not_have_yet_does_not_run(full: Node) -> None:
    full.put(NEXT)
    full.put(replace(NEXT, labels={"a": "b"}))
    assert (True, False) == (refused(full), full.finished("uid-2"))


def test_pw12_a_pod_that_was_force_deleted_leaves_its_room_while_its_container_ends(full: Node) -> None:
    full.remove()
    assert 1 == len(full.runtime.pods["uid-1"].running)
    full.put(NEXT)
    assert PodPhase.RUNNING == full.status("uid-2").phase


def test_pw12_so_does_one_that_another_client_calls_failed(full: Node) -> None:
    full.pods["uid-1"] = make_pod("c", status=make_status(phase=PodPhase.FAILED))
    full.put(NEXT)
    assert PodPhase.RUNNING == full.status("uid-2").phase


def test_pw12_one_that_is_being_deleted_keeps_it(full: Node) -> None:
    full.put(make_pod("c", deletion_timestamp=NOW, deletion_grace_period_s=7))
    full.put(NEXT)
    assert refused(full)
