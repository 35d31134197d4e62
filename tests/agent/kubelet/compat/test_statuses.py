"""Rows CM of statuses: what kubelet 1.16 did (`compat: v1.16`), beside what 1.36 does."""

import json
from dataclasses import fields, replace

import pytest

from agent.kubelet.status.conditions import initialized_condition, is_owned
from agent.kubelet.status.generate import Host, Inputs, generate_status
from agent.kubelet.status.merge import can_be_deleted, equal_for_kubelet, illegal_transition, merged, settled
from agent.kubelet.status.patch import status_patch
from agent.kubelet.status.termination import MESSAGE_TERMINATED, terminated_status
from agent.wire.containers import ContainerPhase, RuntimeContainer, RuntimePod, Sandbox
from agent.wire.model import (
    Container,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Pod,
    PodPhase,
    PodStatus,
    RestartPolicy,
    RestartRule,
)
from agent.wire.semantics import GATES, V1_16, Semantics, chosen
from agent.wire.status import write_status
from tests.agent.kubelet.compat.test_probes import BOTH, then
from tests.agent.kubelet.status.builders import NOW, condition, exited, make_pod, make_status, running, sidecar
from tests.agent.kubelet.status.scene import Scene
from tests.agent.kubelet.status.test_generate import dead, instance

POD = make_pod("c")
READY = (condition("Ready"), condition("ContainersReady"))


@BOTH
def test_cm13_cm14_of_several_statuses_the_newest_is_written(semantics: Semantics) -> None:
    scene = Scene(semantics=semantics)
    for phase in (PodPhase.PENDING, PodPhase.RUNNING):
        scene.set(make_status(phase=phase))
    assert ("GET PATCH", "") == (scene.sync(), scene.sync())
    assert PodPhase.RUNNING == scene.client.pod.status.phase


@pytest.mark.parametrize(
    ("changes", "now", "then_"),
    [
        pytest.param({}, None, b'{"metadata":{"uid":"u"}}', id="nothing has changed"),
        pytest.param(
            {"phase": "Running"},
            b'{"metadata":{"uid":"u"},"status":{"phase":"Running"}}',
            b'{"metadata":{"uid":"u"},"status":{"phase":"Running"}}',
            id="something has",
        ),
    ],
)
def test_cm15_patches(changes: dict, now: bytes | None, then_: bytes) -> None:
    made = [status_patch("u", {}, changes, sends_empty=s.sends_empty_patches) for s in (Semantics(), V1_16)]
    assert [now, then_] == made


@BOTH
def test_cm15_the_manager_sends_them(semantics: Semantics) -> None:
    scene = Scene(semantics=semantics)
    scene.set(make_status(phase=PodPhase.RUNNING))
    scene.sync()
    scene.restart()
    scene.set(scene.client.pod.status)
    assert ("GET PATCH" if then(semantics) else "GET") == scene.sync()


@BOTH
def test_cm16_containers_whose_end_nobody_saw(semantics: Semantics) -> None:
    status = make_status(phase=PodPhase.RUNNING, container_statuses=(running("c"), exited("d", 3)))
    made = terminated_status(make_pod("c", "d"), status, semantics)
    if then(semantics):
        expected = (PodPhase.RUNNING, [ContainerTerminated(0)] * 2)
    else:
        lost = ContainerTerminated(137, "ContainerStatusUnknown", MESSAGE_TERMINATED)
        expected = (PodPhase.FAILED, [lost, ContainerTerminated(3)])
    assert expected == (made.phase, [s.state for s in made.container_statuses])


@BOTH
def test_cm17_a_pod_whose_phase_is_not_terminal_is_deleted(semantics: Semantics) -> None:
    pod = replace(POD, deletion_timestamp=NOW, status=make_status(phase=PodPhase.RUNNING))
    assert then(semantics) == can_be_deleted(pod, semantics, finished=True)
    assert not can_be_deleted(pod, semantics, finished=False)
    assert not can_be_deleted(replace(pod, mirror=True), semantics, finished=True)


@BOTH
def test_cm18_a_condition_that_has_gone_makes_a_difference(semantics: Semantics) -> None:
    old, new = make_status(conditions=READY), make_status(conditions=READY[:1])
    assert then(semantics) == equal_for_kubelet(old, new, semantics)
    assert not equal_for_kubelet(new, old, semantics)


@pytest.mark.parametrize(
    ("kind", "now", "then_"),
    [
        ("Ready", True, True),
        ("Unschedulable", False, True),
        ("PodReadyToStartContainers", True, False),
        ("PodResizePending", True, False),
        ("AllContainersRestarting", True, False),
        ("example.com/gate", False, False),
    ],
)
def test_cm19_whose_a_condition_is(kind: str, now: bool, then_: bool) -> None:
    assert (now, then_) == (is_owned(kind, Semantics()), is_owned(kind, V1_16))


@BOTH
def test_cm20_a_pod_that_has_ended_is_not_ready(semantics: Semantics) -> None:
    new = make_status(phase=PodPhase.FAILED, conditions=READY)
    made = merged(POD, make_status(), new, could_run=False, wall=NOW, semantics=semantics)
    expected = "True" if then(semantics) else "False"
    assert {"Ready": expected, "ContainersReady": expected} == {c.type: c.status for c in made.conditions}


@BOTH
def test_cm21_sidecars_count_when_a_container_turns_ready(semantics: Semantics) -> None:
    pod = make_pod("c", init=(sidecar("s"),))
    scene = Scene(pod, semantics=semantics)
    conditions = (condition("Ready", "False"), condition("ContainersReady", "False"))
    scene.set(
        make_status(
            phase=PodPhase.RUNNING,
            conditions=conditions,
            container_statuses=(running("c"),),
            init_container_statuses=(running("s", started=True),),
        )
    )
    scene.manager.set_container_readiness(pod.uid, "test://c", True)
    expected = "True" if then(semantics) else "False"
    assert expected == next(c.status for c in scene.status.conditions if c.type == "ContainersReady")


def generated(semantics: Semantics, **pod: object) -> list[str]:
    made = make_pod("c", **pod)
    runtime = RuntimePod(made.uid, (Sandbox(True, "127.0.1.2"),), (instance("c"),))
    return [c.type for c in generate_status(Inputs(made, runtime, semantics), lambda _pod, s: s).conditions]


@BOTH
def test_cm27_whether_containers_can_start_is_told(semantics: Semantics) -> None:
    old = ["Initialized", "Ready", "ContainersReady", "PodScheduled"]
    assert (old if then(semantics) else ["PodReadyToStartContainers", *old]) == generated(semantics)


def test_cm29_no_generation_is_observed() -> None:
    for semantics, expected in ((Semantics(), 3), (V1_16, 0)):
        pod = replace(make_pod("c"), generation=3)
        scene = Scene(pod, semantics=semantics)
        scene.set(
            make_status(
                phase=PodPhase.RUNNING, conditions=(condition("Ready", "False"),), container_statuses=(running("c"),)
            )
        )
        scene.manager.set_container_readiness(pod.uid, "test://c", True)
        ready = next(c for c in scene.status.conditions if c.type == "Ready")
        assert (expected, expected) == (scene.status.observed_generation, ready.observed_generation)


@BOTH
def test_cm30_a_terminal_phase_is_written_while_containers_may_run(semantics: Semantics) -> None:
    old, new = make_status(phase=PodPhase.RUNNING), make_status(phase=PodPhase.FAILED)
    made = merged(POD, old, new, could_run=True, wall=NOW, semantics=semantics)
    assert (PodPhase.FAILED if then(semantics) else PodPhase.RUNNING) == made.phase


@BOTH
def test_cm31_disruption_target_is_of_others(semantics: Semantics) -> None:
    old, new = make_status(conditions=()), make_status(conditions=(condition("DisruptionTarget"),))
    assert then(semantics) == equal_for_kubelet(old, new, semantics)
    kept = settled(POD, old, new, NOW + 5, semantics).conditions[0]
    assert then(semantics) == (kept.last_transition_time == new.conditions[0].last_transition_time)


@BOTH
def test_cm32_init_statuses_in_another_order(semantics: Semantics) -> None:
    pod = make_pod("c", init=("i", "j"), restart_policy=RestartPolicy.NEVER)
    old = make_status(init_container_statuses=(exited("j", 0), exited("i", 0)))
    said = illegal_transition(old, old, pod, semantics)
    assert ("" if then(semantics) else "found mismatch between pod spec and status, container: j") == said


@BOTH
def test_cm33_initialized_while_an_app_container_runs(semantics: Semantics) -> None:
    pod = make_pod("c", init=("i",))
    made = initialized_condition(pod, None, (running("c"),), PodPhase.RUNNING, semantics)
    assert ("False" if then(semantics) else "True") == made.status


def test_cm34_cm35_cm36_cm37_cm38_these_fixes_stay_on() -> None:
    on = {field.name for field in fields(V1_16) if field.name.startswith("fix_") and getattr(V1_16, field.name)}
    assert on == {
        "fix_ended_containers_without_record",
        "fix_readiness_without_sidecars",
        "fix_removed_container_stays_known",
        "fix_clock_that_is_set",
        "fix_exec_probes_of_ending_pods",
    }


@BOTH
def test_cm43_a_container_that_ran_and_is_gone(semantics: Semantics) -> None:
    old = make_status(phase=PodPhase.RUNNING, container_statuses=(running("c", restart_count=2),))
    for instances in ((), (instance("c", ContainerPhase.UNKNOWN, restart_count=2),)):
        (status,) = container_statuses_of(semantics, POD, old, *instances)
        ends = [one for one in (status.state, status.last_state) if isinstance(one, ContainerTerminated)]
        expected = ([], 2) if then(semantics) else ([137], 3)
        assert expected == ([end.exit_code for end in ends], status.restart_count)


@BOTH
def test_cm44_an_init_container_that_is_gone_while_an_app_container_runs(semantics: Semantics) -> None:
    pod = make_pod("c", init=("i",))
    made = generate_status(
        Inputs(pod, runtime_of(pod, instance("c")), semantics, make_status()), lambda _pod, status: status
    )
    assert (PodPhase.PENDING if then(semantics) else PodPhase.RUNNING) == made.phase


def runtime_of(pod: Pod, *instances: RuntimeContainer) -> RuntimePod:
    return RuntimePod(pod.uid, (Sandbox(True, "127.0.1.2"),), instances)


def container_statuses_of(
    semantics: Semantics, pod: Pod, old: PodStatus, *instances: RuntimeContainer
) -> tuple[ContainerStatus, ...]:
    made = generate_status(Inputs(pod, runtime_of(pod, *instances), semantics, old), lambda _pod, status: status)
    return made.container_statuses or ()


@BOTH
def test_cm46_a_created_container_waits(semantics: Semantics) -> None:
    (status,) = container_statuses_of(semantics, POD, make_status(), instance("c", ContainerPhase.CREATED))
    assert isinstance(status.state, ContainerWaiting)


@BOTH
def test_cm47_the_status_of_a_pod_past_its_deadline_is_whole(semantics: Semantics) -> None:
    pod = replace(POD, active_deadline_s=5)
    old = make_status(phase=PodPhase.RUNNING, start_time=NOW)
    inputs = Inputs(pod, runtime_of(pod, instance("c")), semantics, old, Host("10.0.0.9"), wall=NOW + 6)
    made = generate_status(inputs, lambda _pod, status: status)
    assert (PodPhase.FAILED, "DeadlineExceeded", "10.0.0.9") == (made.phase, made.reason, made.host_ip)
    assert "Ready" in {c.type for c in made.conditions}


@BOTH
def test_cm48_the_reason_of_a_pod_stays_with_its_phase(semantics: Semantics) -> None:
    old = make_status(phase=PodPhase.FAILED, reason="Evicted", message="The node was low on memory")
    pod = replace(POD, restart_policy=RestartPolicy.NEVER)
    made = generate_status(Inputs(pod, runtime_of(pod, dead("c", 1)), semantics, old), lambda _pod, status: status)
    assert ("Evicted", old.message) == (made.reason, made.message)


@BOTH
def test_cm49_a_failed_start_of_a_pod_that_is_being_deleted_is_not_shown(semantics: Semantics) -> None:
    pod = replace(POD, deletion_timestamp=NOW)
    inputs = Inputs(pod, runtime_of(pod, dead("c", 1)), semantics, start_errors={"c": ContainerWaiting("ErrImagePull")})
    made = generate_status(inputs, lambda _pod, status: status)
    assert [ContainerTerminated] == [type(one.state) for one in made.container_statuses or ()]


@BOTH
def test_cm50_a_terminal_phase_that_is_not_written_yet_stays(semantics: Semantics) -> None:
    old = make_status(phase=PodPhase.SUCCEEDED)
    made = generate_status(Inputs(POD, runtime_of(POD, instance("c")), semantics, old), lambda _pod, status: status)
    assert PodPhase.SUCCEEDED == made.phase


@BOTH
def test_cm40_host_ips_are_written_by_both(semantics: Semantics) -> None:
    made = generate_status(
        Inputs(POD, RuntimePod(POD.uid, (), ()), semantics, host=Host("10.0.0.9")), lambda _pod, status: status
    )
    assert [{"ip": "10.0.0.9"}] == write_status(made)["hostIPs"]


RESTARTS_ALL = Container(
    "b", restart_policy=RestartPolicy.NEVER, restart_rules=(RestartRule("RestartAllContainers", "In", (42,)),)
)


def conditions_of(semantics: Semantics, *instances: RuntimeContainer) -> dict[str, str]:
    """Of a pod that was initialized, one of whose containers has a rule by which all start anew."""
    pod = make_pod("a", RESTARTS_ALL, init=("i",), restart_policy=RestartPolicy.NEVER)
    before = make_status(phase=PodPhase.RUNNING, conditions=(condition("Initialized"),))
    runtime = RuntimePod(pod.uid, (Sandbox(True, "127.0.1.2"),), instances)
    made = generate_status(Inputs(pod, runtime, semantics, before), lambda _pod, status: status)
    return {c.type: c.status for c in made.conditions}


@BOTH
def test_cm23_initialized_while_the_init_container_runs_anew(semantics: Semantics) -> None:
    assert ("False" if then(semantics) else "True") == conditions_of(semantics, instance("i"))["Initialized"]


@BOTH
def test_cm24_whether_all_containers_restart_is_told(semantics: Semantics) -> None:
    made = conditions_of(semantics, dead("i", 0), instance("a"), dead("b", 42))
    assert (None if then(semantics) else "True") == made.get("AllContainersRestarting")


@pytest.mark.parametrize("compat", ["current", "v1.16"])
@pytest.mark.parametrize("gate", sorted(GATES))
def test_a_feature_gate_is_one_field(compat: str, gate: str) -> None:
    for on in (False, True):
        made = chosen(compat, [(gate, on)])
        assert (on, True) == (getattr(made, GATES[gate]), replace(made, **{GATES[gate]: on}) == made)


def test_without_a_word_it_is_the_newest() -> None:
    assert Semantics() == chosen("current", [])
    assert ("v1.16.0", V1_16) == (V1_16.profile, chosen("v1.16", []))


def test_the_patches_of_both_say_the_same() -> None:
    now, old = (status_patch("u", {}, {"phase": "Failed"}, sends_empty=on) for on in (False, True))
    assert json.loads(now or b"")["status"] == json.loads(old or b"")["status"]
