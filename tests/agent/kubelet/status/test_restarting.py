"""Rows A, GS5-GS8 and what the feature gates change: all containers of a pod restarted in place."""

from dataclasses import replace

import pytest

from agent.kubelet.status import merge, restarting
from agent.kubelet.status.conditions import find_condition
from agent.kubelet.status.generate import Inputs, generate_status
from agent.kubelet.status.phase import pod_phase
from agent.wire.containers import ContainerPhase, RuntimeContainer, RuntimePod, Sandbox
from agent.wire.model import (
    Container,
    ContainerTerminated,
    ContainerWaiting,
    Pod,
    PodPhase,
    PodStatus,
    RestartPolicy,
    RestartRule,
)
from agent.wire.semantics import Semantics
from tests.agent.kubelet.status.builders import NOW, condition, exited, make_pod, running, waiting, words
from tools.kit.cases import cases

ALL = (RestartRule("RestartAllContainers", "In", (42,)),)
APP = Container("b", restart_policy=RestartPolicy.NEVER, restart_rules=ALL)
SIDECAR = Container("b", restart_policy=RestartPolicy.ALWAYS, restart_rules=ALL)
POD = make_pod("a", APP, restart_policy=RestartPolicy.NEVER)
ON, OFF = Semantics(), Semantics(restart_all_containers_on_container_exits=False)
KIND = "AllContainersRestarting"
GOING_ON = PodStatus(conditions=(condition(KIND),))
STARTED = ("True", "RestartAllContainersStarted", "container exited with restart policy rule")
REMOVED = ContainerTerminated(
    137,
    "RestartingAllContainers",
    restarting_text := ("The container is removed because RestartAllContainers in place"),
)


def instance(
    name: str, exit_code: int | None = None, phase: ContainerPhase = ContainerPhase.RUNNING
) -> RuntimeContainer:
    if exit_code is not None:
        phase = ContainerPhase.EXITED
    return RuntimeContainer(f"test://{name}", name, phase, NOW, started_at=NOW, exit_code=exit_code or 0)


def runtime(*instances: RuntimeContainer) -> RuntimePod:
    return RuntimePod(POD.uid, (Sandbox(True, "10.0.0.1"),), instances)


def generate(old: PodStatus, *instances: RuntimeContainer, semantics: Semantics = ON, pod: Pod = POD) -> PodStatus:
    return generate_status(Inputs(pod, runtime(*instances), semantics, old=old), lambda _pod, status: status)


@pytest.mark.parametrize(
    ("phase", "old", "instances", "expected"),
    [
        pytest.param("Pending", PodStatus(), (), ("False", "", ""), id="A1 nothing has run"),
        pytest.param("Failed", GOING_ON, (), ("False", "PodFailed", ""), id="A2 failed"),
        pytest.param("Succeeded", GOING_ON, (), ("False", "PodCompleted", ""), id="A3 succeeded"),
        pytest.param("Running", PodStatus(), (instance("b", 42),), STARTED, id="A4 ended by the rule"),
        pytest.param("Running", GOING_ON, (instance("a"),), STARTED, id="A5 some are there still"),
        pytest.param("Running", GOING_ON, (), ("False", "", ""), id="A6 all are gone"),
    ],
)
def test_the_condition(phase: str, old: PodStatus, instances: tuple, expected: tuple[str, str, str]) -> None:
    made = restarting.restarting_condition(POD, old, runtime(*instances), phase)
    assert (expected, 0) == (words(made), made.observed_generation)


@cases(
    "pod, status, instances, expected",
    ("A7 it is going on", POD, GOING_ON, (instance("b"),), True),
    ("A8 an app container ended by the rule", POD, PodStatus(), (instance("b", 42),), True),
    ("A9 an init container did", make_pod("a", init=(APP,)), PodStatus(), (instance("b", 42),), True),
    ("A10 a sidecar did", make_pod("a", init=(SIDECAR,)), PodStatus(), (instance("b", 42),), True),
    ("A11 one without rules did", POD, PodStatus(), (instance("a", 1),), False),
    ("A12 the runtime does not know it", POD, PodStatus(container_statuses=(exited("b", 42),)), (), False),
)
def test_whether_all_restart(pod: Pod, status: PodStatus, instances: tuple, expected: bool) -> None:
    assert expected is restarting.all_containers_restart(pod, status, runtime(*instances))


def test_without_a_runtime_the_status_alone_counts() -> None:
    assert restarting.all_containers_restart(POD, PodStatus(container_statuses=(exited("b", 42),)))


def test_gs5_one_ended_by_the_rule_while_the_other_runs() -> None:
    made = generate(PodStatus(), instance("a"), instance("b", 42))
    assert [None, 42] == [getattr(s.state, "exit_code", None) for s in made.container_statuses]
    assert STARTED == words(find_condition(made.conditions, KIND))


def test_gs6_one_that_was_removed_waits_for_the_restart() -> None:
    old = replace(GOING_ON, container_statuses=(running("a"), exited("b", 42)))
    a, b = generate(old, instance("a", 137)).container_statuses
    assert (137, 0) == (a.state.exit_code, a.restart_count)
    assert (ContainerWaiting("RestartingAllContainers", restarting_text), REMOVED, 1) == (
        b.state,
        b.last_state,
        b.restart_count,
    )


@pytest.mark.parametrize(
    "old",
    [
        pytest.param((exited("a", 0), exited("b", 42)), id="GS7 both had ended"),
        pytest.param((running("a"), exited("b", 42)), id="GS8 one ran"),
    ],
)
def test_both_were_removed(old: tuple) -> None:
    made = generate(replace(GOING_ON, container_statuses=old)).container_statuses
    assert [("RestartingAllContainers", REMOVED, 1)] * 2 == [
        (s.state.reason, s.last_state, s.restart_count) for s in made
    ]


def test_one_that_waited_and_is_not_there_waits_on() -> None:
    old = replace(GOING_ON, container_statuses=(waiting("a", restart_count=3), running("b")))
    assert ("ContainerCreating", 3) == (
        (made := generate(old).container_statuses[0]).state.reason,
        made.restart_count,
    )


def test_one_in_a_state_nobody_knows_ended_for_the_restart() -> None:
    old = replace(GOING_ON, container_statuses=(running("a"),))
    made = generate(old, instance("a", phase=ContainerPhase.UNKNOWN)).container_statuses[0]
    assert "RestartingAllContainers" == made.state.reason


def test_with_the_gate_off_there_is_no_such_condition_and_its_owner_is_somebody_else() -> None:
    made = generate(PodStatus(), instance("b", 42), semantics=OFF)
    assert find_condition(made.conditions, KIND) is None
    theirs = PodStatus(phase=PodPhase.RUNNING, conditions=(condition(KIND, "Unknown"),))
    kept = [
        find_condition(merge.merged(POD, theirs, made, could_run=True, wall=NOW, semantics=s).conditions, KIND)
        for s in (OFF, ON)
    ]
    assert [theirs.conditions[0], None] == kept


def test_with_the_gate_off_the_old_status_does_not_count_instances() -> None:
    old = PodStatus(container_statuses=(exited("a", 1, restart_count=5), running("b")))
    made = generate(old, instance("a"), semantics=OFF).container_statuses[0]
    assert (0, None) == (made.restart_count, made.last_state)


def test_with_the_gate_off_a_container_that_ended_for_such_a_restart_is_over() -> None:
    ended = exited("a", 0)
    ended = replace(ended, state=replace(ended.state, reason="RestartingAllContainers"))
    pod = make_pod("a", restart_policy=RestartPolicy.NEVER)
    phases = [
        pod_phase(pod, [ended], pod_is_terminal=False, initialized=True, semantics=semantics) for semantics in (ON, OFF)
    ]
    assert [PodPhase.RUNNING, PodPhase.SUCCEEDED] == phases


def test_with_the_gate_of_w46_a_new_instance_has_not_started_because_the_old_one_had() -> None:
    old = PodStatus(container_statuses=(running("a", started=True),))
    changed = Semantics(change_container_status_on_kubelet_restart=True)
    assert [True, None] == [
        generate(old, instance("a"), semantics=s).container_statuses[0].started for s in (ON, changed)
    ]


def test_an_init_container_lost_while_the_app_is_in_no_known_state_waits() -> None:
    pod = make_pod("a", init=("i",))
    made = generate(PodStatus(), instance("a", phase=ContainerPhase.UNKNOWN), pod=pod)
    assert ContainerWaiting("PodInitializing") == made.init_container_statuses[0].state
