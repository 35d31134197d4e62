"""The loop asks which pods its node takes, of the Node as it is.

Kubelets have refused pods by old Nodes: kubernetes #85334 (a kubelet that starts and cannot list its Node), #93338 (a
label that it has not seen yet), #100467; and for pods that had ended: #104560, #106884.
"""

from dataclasses import replace

import pytest

from agent.wire.model import Container, PodPhase
from agent.wire.placement_model import Placement
from tests.agent.kubelet.pods.test_sync import Node, node_for
from tests.agent.kubelet.status.builders import make_pod

ON_B = Placement(node_selector={"pool": "b"})


@pytest.fixture
def node() -> Node:
    return Node()


def big(uid: str, cpu: str = "3") -> object:
    container = Container("c", resources=(("requests", "cpu", cpu),))
    return make_pod(container, uid=uid, name=uid)


def test_am7_a_pod_that_the_newest_node_takes_is_taken(node: Node) -> None:
    node.newest = replace(node.as_read, labels={"pool": "b"})
    node.put(make_pod("c", placement=ON_B))
    assert (PodPhase.RUNNING, 1) == (node.status().phase, node.asked)


def test_am7_a_pod_that_the_node_takes_costs_no_request(node: Node) -> None:
    node.put(make_pod("c"))
    assert (PodPhase.RUNNING, 0) == (node.status().phase, node.asked)


def test_am7_a_pod_that_the_newest_node_does_not_take_either_is_refused(node: Node) -> None:
    node.put(make_pod("c", placement=ON_B))
    status = node.status()
    text = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    assert (PodPhase.FAILED, "NodeAffinity", f"Pod was rejected: {text}") == (
        status.phase,
        status.reason,
        status.message,
    )
    assert ("", "Warning", "NodeAffinity", text) == node.told[-1]
    assert [] == node.runtime.started


def test_am7_the_newest_node_is_read_once_for_all_pods_of_a_turn(node: Node) -> None:
    for number in range(20):
        uid = f"u{number}"
        node.pods[uid] = make_pod("c", uid=uid, name=uid, placement=ON_B)
        node.inbox.put(uid)
    node.settle()
    assert ({PodPhase.FAILED}, 1) == ({node.status(f"u{number}").phase for number in range(20)}, node.asked)


def test_am7_while_the_node_cannot_be_read_a_pod_that_it_may_not_take_waits(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    node.newest = None
    node.put(make_pod("c", uid="waits", name="waits", placement=ON_B))
    node.put(make_pod("c", uid="runs", name="runs"))
    assert (None, PodPhase.RUNNING) == (node.status("waits"), node.status("runs").phase)
    assert {"pod waits until the Node can be read"} == {record.getMessage() for record in caplog.records}
    node.newest = replace(node.as_read, labels={"pool": "b"})
    node.after(10.0)
    assert node.status("waits").phase == PodPhase.RUNNING


def test_am8_pods_that_run_take_their_room_until_they_have_ended(node: Node) -> None:
    node.put(big("first"))
    node.put(big("second"))
    assert "OutOfcpu" == node.status("second").reason
    node.pods["first"] = replace(node.pods["first"], deletion_timestamp=1.0, deletion_grace_period_s=1)
    node.end("c", 0, "first")
    node.put(big("third"))
    assert [PodPhase.RUNNING, PodPhase.FAILED] == [node.status(uid).phase for uid in ("third", "second")]


def test_am8_what_a_node_has_may_change(node: Node) -> None:
    node.newest = node.as_read = node_for(1)
    node.put(big("first"))
    node.newest = node_for(2)
    node.put(big("second", "1"))
    assert [PodPhase.RUNNING] * 2 == [node.status(uid).phase for uid in ("first", "second")]
