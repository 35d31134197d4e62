"""Rows LH: postStart and preStop in the sync loop. As startContainer and killContainer of kuberuntime, v1.36.3."""

from dataclasses import replace

import pytest

from agent.wire.model import (
    Container,
    ContainerTerminated,
    ContainerWaiting,
    LifecycleHook,
    PodPhase,
    RestartPolicy,
    Result,
    SleepAction,
)
from agent.wire.semantics import V1_16, Semantics
from tests.agent.kubelet.pods.test_sync import WHERE, Node
from tests.agent.kubelet.status.builders import NOW, make_pod, sidecar

HOOK = LifecycleHook(None)
STARTED = make_pod(Container("c", post_start=HOOK), "d")
STOPPED = make_pod(Container("c", pre_stop=HOOK))
FAILED_START = (WHERE, "Warning", "FailedPostStartHook", "PostStartHook failed")
FAILED_STOP = (WHERE, "Warning", "FailedPreStopHook", "PreStopHook failed")
CREATING = ContainerWaiting("ContainerCreating")


@pytest.fixture
def node() -> Node:
    return Node()


def looked_at(node: Node) -> None:
    node.inbox.put("uid-1")
    node.settle()


def hook_ends(node: Node, error: str | None = None, number: int = -1) -> None:
    node.hooks.end(number, error)
    looked_at(node)


def deleted(pod, grace_s: int):
    return replace(pod, deletion_timestamp=NOW, deletion_grace_period_s=grace_s)


# --- postStart ---


def test_lh1_a_pod_waits_for_its_post_start_hook(node: Node) -> None:
    node.put(STARTED)
    assert [("postStart", "c", "fake://1", float("inf"))] == node.hooks.calls
    assert ([("c", 0)], CREATING) == (node.runtime.started, node.container().state)
    node.after(3600)
    assert [("c", 0)] == node.runtime.started
    hook_ends(node)
    assert ([("c", 0), ("d", 0)], PodPhase.RUNNING) == (node.runtime.started, node.status().phase)
    assert FAILED_START not in node.told


def test_lh1_a_hook_that_ended_well_is_not_reported_as_failed_when_the_pod_is_deleted(node: Node) -> None:
    node.put(STARTED)
    hook_ends(node)
    node.put(deleted(STARTED, 5))
    assert FAILED_START not in node.told


def test_lh2_a_container_whose_hook_fails_is_ended_and_starts_again(node: Node) -> None:
    node.put(STARTED)
    hook_ends(node, "no such command")
    assert ([("c", 30)], [("c", 0)]) == (node.runtime.stopped, node.runtime.started)
    assert [FAILED_START, (WHERE, "Normal", "Killing", "FailedPostStartHook")] == node.told[2:]
    node.end("c", 143)
    assert [("c", 0), ("c", 1)] == node.runtime.started
    hook_ends(node)
    assert [("c", 0), ("c", 1), ("d", 0)] == node.runtime.started


def test_lh2_it_says_so_while_it_waits_for_its_next_start(node: Node) -> None:
    node.put(replace(STARTED, restart_policy=RestartPolicy.ALWAYS))
    node.runtime.refuse["d"] = None  # it fails once it is tried
    hook_ends(node, "no such command")
    node.runtime.end("c", 143)
    waited = node.loop._states["uid-1"].starts.errors["c"]
    assert ContainerWaiting("PostStartHookError", "no such command") == waited


def test_lh3_under_never_it_is_over(node: Node) -> None:
    node.put(replace(make_pod(Container("c", post_start=HOOK)), restart_policy=RestartPolicy.NEVER))
    hook_ends(node, "exit 1")
    node.end("c", 143)
    status = node.status()
    assert (PodPhase.FAILED, True) == (
        status.phase,
        isinstance(status.container_statuses[0].state, ContainerTerminated),
    )


def test_lh4_a_pod_that_is_deleted_does_not_wait_for_it(node: Node) -> None:
    node.put(STARTED)
    node.put(deleted(STARTED, 7))
    assert ([("c", 7)], True) == (node.runtime.stopped, node.hooks.hooks[0].cancelled.is_set())
    assert FAILED_START in node.told
    node.end("c", 143)
    assert node.finished()


def test_lh5_the_next_init_container_waits_for_the_hook_of_a_sidecar(node: Node) -> None:
    node.put(make_pod("app", init=(replace(sidecar("s"), post_start=HOOK),)))
    assert [("s", 0)] == node.runtime.started
    hook_ends(node)
    assert [("s", 0), ("app", 0)] == node.runtime.started


def test_a_container_that_ends_during_its_hook_is_looked_at_when_that_is_over(node: Node) -> None:
    node.put(STARTED)
    node.end("c", 1)
    assert [("c", 0)] == node.runtime.started
    hook_ends(node)
    assert ("c", 1) in node.runtime.started


def test_two_containers_that_start_in_place_wait_for_one_another(node: Node) -> None:
    node.put(make_pod(*(Container(name, post_start=HOOK) for name in "cd")))
    hook_ends(node)
    hook_ends(node)
    node.liveness |= {"fake://1": Result.FAILURE, "fake://2": Result.FAILURE}
    looked_at(node)
    node.runtime.end("c", 143)
    node.end("d", 143)
    assert [("c", 0), ("d", 0), ("c", 1)] == node.runtime.started
    hook_ends(node)
    assert [("c", 1), ("d", 1)] == node.runtime.started[2:]


# --- preStop ---


def test_lh6_a_container_is_stopped_when_its_pre_stop_hook_is_over(node: Node) -> None:
    node.put(STOPPED)
    node.put(deleted(STOPPED, 20))
    assert ([("preStop", "c", "fake://1", 22.0)], []) == (node.hooks.calls, node.runtime.stopped)
    node.after(5.5)
    hook_ends(node)
    assert [("c", 15)] == node.runtime.stopped
    assert FAILED_STOP not in node.told


@pytest.mark.parametrize("grace_s", [20, 1, 0], ids=lambda seconds: f"a grace of {seconds} s")
def test_lh7_a_hook_that_hangs_costs_the_grace_and_two_seconds_are_left(node: Node, grace_s: int) -> None:
    node.put(STOPPED)
    node.put(deleted(STOPPED, grace_s))
    assert [] == node.runtime.stopped
    node.after(max(1, grace_s))
    assert [("c", 2)] == node.runtime.stopped


def test_lh8_a_hook_that_fails_is_told_once_and_the_container_is_stopped(node: Node) -> None:
    node.put(STOPPED)
    node.put(deleted(STOPPED, 20))
    hook_ends(node, "exit 1")
    looked_at(node)
    assert ([("c", 20)], 1) == (node.runtime.stopped, node.told.count(FAILED_STOP))


def test_lh9_no_time_no_hook(node: Node) -> None:
    pod = replace(STOPPED, termination_grace_period_s=0)
    node.put(pod)
    node.liveness["fake://1"] = Result.FAILURE
    looked_at(node)
    assert ([], [("c", 2)]) == (node.hooks.calls, node.runtime.stopped)


def test_lh6_a_container_whose_probe_failed_has_its_hook_too(node: Node) -> None:
    node.put(STOPPED)
    node.liveness["fake://1"] = Result.FAILURE
    looked_at(node)
    node.after(29)
    assert [] == node.runtime.stopped
    node.after(1)
    assert [("c", 2)] == node.runtime.stopped
    node.end("c", 137)
    assert ([("c", 0), ("c", 1)], 1) == (node.runtime.started, len(node.hooks.calls))


def test_lh10_the_hooks_of_sidecars_run_at_once_and_the_stop_waits_for_its_turn(node: Node) -> None:
    pod = make_pod(Container("c", pre_stop=HOOK), init=(replace(sidecar("s"), pre_stop=HOOK),))
    node.put(pod)
    node.put(deleted(pod, 20))
    assert {"c", "s"} == {name for _, name, *_ in node.hooks.calls}
    hook_ends(node, number=0)
    hook_ends(node, number=1)
    assert [("c", 20)] == node.runtime.stopped
    node.after(4)
    node.end("c")
    assert [("c", 20), ("s", 16)] == node.runtime.stopped


def test_lh11_a_hook_runs_once_though_the_pod_is_deleted_meanwhile(node: Node) -> None:
    node.put(STOPPED)
    node.liveness["fake://1"] = Result.FAILURE
    looked_at(node)
    node.put(deleted(STOPPED, 9))
    node.put(deleted(STOPPED, 4))
    assert 1 == len(node.hooks.calls)
    node.after(4)
    assert [("c", 2)] == node.runtime.stopped


def test_a_container_that_ends_by_itself_takes_its_hook_with_it(node: Node) -> None:
    node.put(STOPPED)
    node.put(deleted(STOPPED, 20))
    node.end("c", 0)
    assert (True, [], True) == (node.finished(), node.runtime.stopped, node.hooks.hooks[0].cancelled.is_set())


def test_lh12_the_hook_of_a_container_whose_post_start_failed_runs_too(node: Node) -> None:
    node.put(make_pod(Container("c", post_start=HOOK, pre_stop=LifecycleHook(SleepAction(1)))))
    hook_ends(node, "exit 1")
    assert ["postStart", "preStop"] == [kind for kind, *_ in node.hooks.calls]
    hook_ends(node)
    assert [("c", 30)] == node.runtime.stopped


def test_the_end_of_the_agent_runs_no_hooks(node: Node) -> None:
    node.put(STOPPED)
    node.loop.start()
    node.loop.stop()
    assert ([], 143) == (node.hooks.calls, node.container().state.exit_code)


@pytest.mark.parametrize(
    ("semantics", "expected"), [(Semantics(), ["True"]), (V1_16, [])], ids=["B7 it is said at once", "CM27 as of old"]
)
def test_that_the_sandbox_is_ready_does_not_wait_for_hooks(semantics: Semantics, expected: list[str]) -> None:
    node = Node(semantics=semantics)
    node.put(STARTED)
    assert expected == [c.status for c in node.status().conditions if c.type == "PodReadyToStartContainers"]
    assert CREATING == node.container().state
