"""Rows SP30 to SP35: the life of a static pod in the sync loop."""

from dataclasses import replace

import pytest

from agent.wire.model import PodPhase
from tests.agent.kubelet.pods.test_sync import Node
from tests.agent.kubelet.status.builders import make_pod

STATIC = make_pod("c", static=True)
NEWER = replace(STATIC, uid="uid-2")
MIRROR = make_pod("c", uid="mirror", name=STATIC.name, static=True, mirror=True)


@pytest.fixture
def node() -> Node:
    node = Node()
    node.put(STATIC)
    return node


def test_sp30_it_runs_without_a_mirror(node: Node) -> None:
    assert (PodPhase.RUNNING, [("c", 0)]) == (node.status().phase, node.runtime.started)


def test_sp31_it_ends_when_its_file_is_gone(node: Node) -> None:
    node.remove()
    assert [("c", 30)] == node.runtime.stopped
    assert node.loop.ends_static(STATIC.namespace, STATIC.name)
    node.end("c", 143)
    assert (False, False) == (node.loop.ends_static(STATIC.namespace, STATIC.name), node.loop.could_run("uid-1"))


def test_sp32_its_mirror_shows_how_it_ends(node: Node) -> None:
    node.pods["mirror"] = MIRROR
    node.remove()
    node.end("c", 143)
    assert (PodPhase.RUNNING, 143) == (node.status().phase, node.container().state.exit_code)
    node.after(10)
    assert node.status() is None


def test_sp33_a_changed_file_is_another_pod_that_waits_for_the_end_of_the_first(node: Node) -> None:
    del node.pods["uid-1"]
    node.inbox.put("uid-1")
    node.put(NEWER)
    assert ([("c", 0)], False) == (node.runtime.started, node.loop.could_run("uid-2"))
    node.end("c", 143)
    assert (True, PodPhase.RUNNING) == (node.loop.could_run("uid-2"), node.status("uid-2").phase)


def test_sp33_pods_of_the_api_server_do_not_wait(node: Node) -> None:
    node.put(replace(STATIC, uid="uid-2", static=False))
    assert node.loop.could_run("uid-2")


def test_sp34_a_file_that_is_back_before_its_pod_has_ended_starts_it_again(node: Node) -> None:
    node.remove()
    node.put(STATIC)
    assert [("c", 0)] == node.runtime.started
    node.end("c", 143)
    assert (2, PodPhase.RUNNING) == (len(node.runtime.started), node.status().phase)


def test_sp34_as_one_that_had_finished_before() -> None:
    node, once = Node(), make_pod("c", static=True, restart_policy="Never")
    node.put(once)
    node.end("c")
    assert PodPhase.SUCCEEDED == node.status().phase
    node.settle()
    assert 1 == len(node.runtime.started)
    node.remove()
    node.after(10)
    node.put(once)
    assert 2 == len(node.runtime.started)


def test_sp35_it_is_not_refused_for_the_number_of_pods() -> None:
    node = Node(max_pods=1)
    node.put(make_pod("c", uid="other", name="other"))
    node.put(STATIC)
    assert PodPhase.RUNNING == node.status().phase
    node.put(make_pod("c", uid="third", name="third"))
    assert "OutOfpods" == node.status("third").reason
