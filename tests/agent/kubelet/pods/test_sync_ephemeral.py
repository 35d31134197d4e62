"""Rows EC: ephemeral containers, which are added to a pod that runs. As computePodActions of kuberuntime, v1.36.3."""

from dataclasses import replace

import pytest

from agent.kubelet.status.merge import normalized
from agent.wire.model import Container, ContainerRunning, ContainerTerminated, PodPhase, RestartPolicy
from tests.agent.kubelet.pods.test_sync import POD, Node
from tests.agent.kubelet.status.builders import NOW, exited, make_pod, make_status, sidecar

DEBUG = (Container("x"), Container("e"))


@pytest.fixture
def node() -> Node:
    return Node()


def test_ec1_they_start_when_they_come(node: Node) -> None:
    node.put(POD)
    node.put(replace(POD, ephemeral_containers=DEBUG))
    assert [("c", 0), ("x", 0), ("e", 0)] == node.runtime.started


def test_ec1_they_do_not_wait_for_init_containers(node: Node) -> None:
    node.put(make_pod("app", init=("i",), ephemeral_containers=DEBUG[:1]))
    assert [("i", 0), ("x", 0)] == node.runtime.started


@pytest.mark.parametrize("policy", list(RestartPolicy))
def test_ec2_one_that_has_ended_does_not_start_again(node: Node, policy: RestartPolicy) -> None:
    node.put(replace(POD, restart_policy=policy, ephemeral_containers=DEBUG[:1]))
    node.end("x", 1)
    node.after(600)
    assert [("c", 0), ("x", 0)] == node.runtime.started


def test_ec3_their_statuses_stand_apart_and_change_nothing_else(node: Node) -> None:
    node.put(replace(POD, ephemeral_containers=DEBUG))
    node.end("e", 1)
    status = node.status()
    states = {s.name: type(s.state) for s in status.ephemeral_container_statuses}
    assert [("e", ContainerTerminated), ("x", ContainerRunning)] == list(states.items())
    assert (PodPhase.RUNNING, "True") == (status.phase, next(c.status for c in status.conditions if c.type == "Ready"))


def test_ec3_a_pod_whose_apps_are_done_does_not_wait_for_them(node: Node) -> None:
    node.put(replace(POD, restart_policy=RestartPolicy.NEVER, ephemeral_containers=DEBUG[:1]))
    node.end("c", 0)
    assert (PodPhase.SUCCEEDED, [("x", 30)]) == (node.status().phase, node.runtime.stopped)


def test_ec4_they_share_in_the_limit_of_messages() -> None:
    pod = make_pod("c", ephemeral_containers=DEBUG)
    long = replace(exited("c"), state=ContainerTerminated(1, message="m" * 5000))
    made = normalized(
        pod, make_status(container_statuses=(long,), ephemeral_container_statuses=(replace(long, name="x"),))
    )
    found = (*made.container_statuses, *made.ephemeral_container_statuses)
    assert [4096, 4096] == [len(status.state.message) for status in found]


def test_ec5_they_end_with_the_pod_and_sidecars_do_not_wait_for_them(node: Node) -> None:
    pod = make_pod("app", init=(sidecar("s"),), ephemeral_containers=DEBUG[:1])
    node.put(pod)
    node.put(replace(pod, deletion_timestamp=NOW, deletion_grace_period_s=20))
    assert {"app", "x"} == {name for name, _ in node.runtime.stopped}
    node.end("app")
    assert "s" in {name for name, _ in node.runtime.stopped}


def test_ec6_events_are_about_them(node: Node) -> None:
    node.put(replace(POD, ephemeral_containers=DEBUG[:1]))
    assert ("spec.ephemeralContainers{x}", "Normal", "Started", "Container started") in node.told
