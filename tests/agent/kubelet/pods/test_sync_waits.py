"""When the sync loop looks at a pod again by itself: the periods of the kubelet's pod workers, with their jitter."""

import pytest

from agent.kubelet.runtime.base import StartError
from tests.agent.kubelet.pods.test_sync import POD, Node
from tests.agent.kubelet.status.builders import make_pod


@pytest.fixture
def node() -> Node:
    return Node()


def test_pw18_a_pod_is_synced_again_in_a_minute_and_up_to_half_of_one(node: Node) -> None:
    node.random = 1.0
    node.put(POD)
    node.runtime.end("c", 0)
    node.after(89)
    assert [("c", 0)] == node.runtime.started
    node.after(1)
    assert [("c", 0), ("c", 1)] == node.runtime.started


def test_pw19_a_container_that_backs_off_starts_up_to_half_of_the_rest_later(node: Node) -> None:
    node.put(POD)
    node.end("c", 1)
    node.random = 1.0
    node.end("c", 1)
    node.after(14)
    assert [("c", 0), ("c", 1)] == node.runtime.started
    node.after(1)
    assert [("c", 0), ("c", 1), ("c", 2)] == node.runtime.started


def test_pw19_the_back_off_of_one_container_counts_where_another_cannot_be_made(node: Node) -> None:
    """As MinBackoffExpiration: other errors of the same sync do not make it earlier."""
    start, tried = node.runtime.start_container, []

    def without_b(pod, container, restart_count):
        if container.name == "b":
            tried.append(node.clock.time)
            raise StartError("CreateContainerError", "no disk")
        return start(pod, container, restart_count)

    node.runtime.start_container = without_b
    node.put(make_pod("a", "b"))
    node.end("a", 1)
    node.end("a", 1)
    node.after(10)
    node.end("a", 1)  # waits for 20 s
    tried.clear()
    node.after(19)
    assert [] == tried
    node.after(1)
    assert tried
