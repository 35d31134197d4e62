"""Rows GS: TestConvertToAPIContainerStatuses and Test_generateAPIPodStatus of kubelet_pods_test.go of v1.36.3."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agent.kubelet.status.generate import MESSAGE_INIT_LOST, MESSAGE_LOST, Host, Inputs, generate_status
from agent.wire.containers import ContainerPhase, RuntimeContainer, RuntimePod, Sandbox
from agent.wire.model import (
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Pod,
    PodPhase,
    PodStatus,
    RestartPolicy,
)
from agent.wire.semantics import Semantics
from tests.agent.kubelet.status.builders import (
    NOW,
    condition,
    exited,
    make_pod,
    make_status,
    running,
    sidecar,
    waiting,
    words,
)
from tools.kit.cases import cases

LOST = ContainerTerminated(137, "ContainerStatusUnknown", MESSAGE_LOST)


def instance(
    name: str,
    phase: ContainerPhase = ContainerPhase.RUNNING,
    exit_code: int = 0,
    *,
    cid: str | None = None,
    created_at: float = NOW,
    **fields: Any,
) -> RuntimeContainer:
    return RuntimeContainer(
        id=cid or f"test://{name}",
        name=name,
        phase=phase,
        created_at=created_at,
        started_at=NOW,
        exit_code=exit_code,
        **fields,
    )


def dead(name: str, exit_code: int, **fields: Any) -> RuntimeContainer:
    return instance(name, ContainerPhase.EXITED, exit_code, **fields)


def generate(
    pod: Pod,
    *instances: RuntimeContainer,
    old: PodStatus | None = None,
    fill: Callable[[Pod, PodStatus], PodStatus] = lambda _pod, status: status,
    **fields: Any,
) -> PodStatus:
    runtime = RuntimePod(pod.uid, (Sandbox(True, "127.0.1.2"),), instances)
    return generate_status(Inputs(pod, runtime, Semantics(), old=old, **fields), fill)


def only(status: PodStatus, *, init: bool = False) -> ContainerStatus:
    statuses = status.init_container_statuses if init else status.container_statuses
    assert len(statuses) == 1
    return statuses[0]


POD = make_pod("a")
OLD_RUNNING = make_status(phase=PodPhase.RUNNING, container_statuses=(running("a"),))
OLD_ENDED = make_status(phase=PodPhase.RUNNING, container_statuses=(exited("a", -1, restart_count=5),))


@pytest.mark.parametrize(
    ("pod", "expected_count"),
    [
        pytest.param(replace(POD, deletion_timestamp=NOW), 0, id="GS1 the pod is being deleted"),
        pytest.param(POD, 1, id="GS2 the pod is not being deleted"),
    ],
)
def test_a_running_container_the_runtime_lost(pod: Pod, expected_count: int) -> None:
    made = only(generate(pod, old=OLD_RUNNING))
    assert (ContainerWaiting("ContainerCreating"), LOST, expected_count) == (
        made.state,
        made.last_state,
        made.restart_count,
    )


def test_gs3_an_ended_container_the_runtime_lost_stays_as_it_was() -> None:
    assert OLD_ENDED.container_statuses[0] == only(generate(POD, old=OLD_ENDED))


def test_gs4_a_new_instance_of_an_ended_container_counts_on() -> None:
    made = only(generate(POD, instance("a", cid="test://new"), old=OLD_ENDED))
    assert (ContainerRunning(NOW), 6, ContainerTerminated(-1)) == (made.state, made.restart_count, made.last_state)


def test_gs24_no_count_is_more_than_the_api_takes() -> None:
    most = 2**31 - 1
    ended = make_status(container_statuses=(exited("a", 1, restart_count=most),))
    ran = make_status(container_statuses=(running("a", restart_count=most),))
    unknown = instance("a", cid="test://new", phase=ContainerPhase.UNKNOWN)
    made = [
        generate(POD, instance("a", cid="test://new"), old=ended),
        generate(POD, old=ran),
        generate(POD, unknown, old=ran),
    ]
    assert [most] * 3 == [only(status).restart_count for status in made]


def test_gs9_the_last_state_is_kept_when_the_runtime_has_one_instance_only() -> None:
    old = make_status(container_statuses=(waiting("a", last_state=ContainerTerminated(3), restart_count=1),))
    made = only(generate(POD, instance("a", cid="test://new", restart_count=1), old=old))
    assert (ContainerRunning(NOW), ContainerTerminated(3), 1) == (made.state, made.last_state, made.restart_count)


@pytest.mark.parametrize("exit_code", [pytest.param(0, id="GS10 with 0"), pytest.param(1, id="GS11 with 1")])
def test_a_container_ended(exit_code: int) -> None:
    old = make_status(container_statuses=(running("a", restart_count=1),))
    made = only(generate(POD, dead("a", exit_code, restart_count=1), old=old))
    assert (exit_code, 1) == (made.state.exit_code, made.restart_count)


def test_gs12_a_regular_init_container_lost_while_the_app_runs_has_ended_well() -> None:
    made = only(generate(make_pod("a", init=("i",)), instance("a")), init=True)
    assert ContainerTerminated(0, "Completed", MESSAGE_INIT_LOST) == made.state


def test_gs13_a_sidecar_lost_while_the_app_runs_waits() -> None:
    made = only(generate(make_pod("a", init=(sidecar("s"),)), instance("a")), init=True)
    assert ContainerWaiting("PodInitializing") == made.state


ENDED_WELL = PodStatus(phase=PodPhase.SUCCEEDED, reason="Test", message="test", container_statuses=(exited("a", 0),))


WELL_AND_WAITING = replace(ENDED_WELL, container_statuses=(waiting("a"),))
RUNNING = PodStatus(phase=PodPhase.RUNNING)
PENDING_FOR_TEST = PodStatus(phase=PodPhase.PENDING, reason="Test", message="test")


@cases(
    "policy, api, old, expected",
    ("GS14 the API says Succeeded", "Always", PodStatus(phase=PodPhase.SUCCEEDED), None, ("Succeeded", "", "")),
    ("GS15 the old status is terminal", "Always", RUNNING, WELL_AND_WAITING, ("Succeeded", "Test", "test")),
    ("GS16 the same with policy Never", "Never", RUNNING, ENDED_WELL, ("Succeeded", "Test", "test")),
    ("GS17 Running falls back to Pending", "Always", RUNNING, None, ("Pending", "", "")),
    ("GS18 the same phase keeps its reason", "Always", PodStatus(), PENDING_FOR_TEST, ("Pending", "Test", "test")),
)
def test_phase_reason_and_message(
    policy: RestartPolicy, api: PodStatus, old: PodStatus | None, expected: tuple[str, str, str]
) -> None:
    made = generate(replace(POD, restart_policy=RestartPolicy(policy), status=api), old=old)
    assert expected == (made.phase, made.reason, made.message)


def test_gs19_a_new_phase_clears_reason_and_message() -> None:
    old = PodStatus(phase=PodPhase.PENDING, reason="Test", message="test")
    made = generate(POD, instance("a"), old=old)
    assert (made.phase, made.reason, made.message) == ("Running", "", "")


def test_gs20_a_deleted_pod_that_ended_keeps_its_disruption_target() -> None:
    target = condition("DisruptionTarget", "True", "TerminationByKubelet")
    pod = replace(POD, deletion_timestamp=NOW)
    made = generate(pod, dead("a", 1), old=replace(OLD_RUNNING, conditions=(target,)), pod_is_terminal=True)
    found = {c.type: words(c) for c in made.conditions}
    assert (
        made.phase,
        found["Ready"],
        found["ContainersReady"],
    ) == ("Failed", ("False", "PodFailed", ""), ("False", "PodFailed", ""))
    assert words(target) == found["DisruptionTarget"]


NEW, OLD = Sandbox(True, "127.0.1.2", id="test://new"), Sandbox(False, "", id="test://old")


@cases(
    "sandboxes, of_app, expected",
    ("GS21 the app container is one of the newest sandbox", (NEW,), "test://new", "Running"),
    ("GS22 of an older one: the pod begins anew", (NEW, OLD), "test://old", "Pending"),
    ("GS22 of one that has gone", (NEW,), "test://gone", "Pending"),
    ("GS23 the newest sandbox is not ready any more", (replace(NEW, ready=False),), "test://new", "Pending"),
    ("GS23 there is no sandbox", (), "test://new", "Pending"),
)
def test_the_phase_while_a_sidecar_has_not_started(
    sandboxes: tuple[Sandbox, ...], of_app: str, expected: PodPhase
) -> None:
    """Nor shown that it has: it has a startup probe. What runs beside it is of a sandbox that may be an older one."""
    pod = make_pod("a", init=(sidecar("s"),))
    containers = (instance("s", sandbox_id="test://new"), instance("a", sandbox_id=of_app))
    made = generate_status(Inputs(pod, RuntimePod(pod.uid, sandboxes, containers), Semantics()), lambda _pod, s: s)
    assert expected == made.phase


def test_conditions_come_in_the_order_of_the_kubelet() -> None:
    pod = replace(POD, status=PodStatus(conditions=(condition("mine"), condition("Ready"))))
    made = generate(pod, instance("a"), old=PodStatus(conditions=(condition("DisruptionTarget"),)))
    expected = [
        "mine",
        "DisruptionTarget",
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ]
    assert expected == [c.type for c in made.conditions]


def test_the_second_newest_instance_gives_the_last_state() -> None:
    made = only(generate(POD, dead("a", 7, cid="test://old", created_at=NOW - 9), instance("a", restart_count=1)))
    assert (ContainerRunning(NOW), 7) == (made.state, made.last_state.exit_code)


BACK_OFF = ContainerWaiting("CrashLoopBackOff", "back-off 10s")


@cases(
    "pod, given, expected_state, expected_last",
    ("ended and to be restarted: it waits", POD, (dead("a", 1),), BACK_OFF, 1),
    ("never started", POD, (), BACK_OFF, None),
    ("it runs by now", POD, (instance("a"),), ContainerRunning(NOW), None),
    ("it is never restarted", replace(POD, restart_policy=RestartPolicy.NEVER), (dead("a", 1),), None, None),
    ("deleted", replace(POD, deletion_timestamp=NOW), (), ContainerWaiting("ContainerCreating"), None),
)
def test_why_a_container_did_not_start(
    pod: Pod, given: list[RuntimeContainer], expected_state: ContainerState, expected_last: ContainerState | None
) -> None:
    made = only(generate(pod, *given, start_errors={"a": BACK_OFF}))
    if expected_state is None:
        assert made.state.exit_code == 1
    else:
        assert expected_state == made.state
    assert expected_last == (made.last_state and made.last_state.exit_code)


def test_started_is_copied_by_name_from_the_old_status() -> None:
    old = make_status(container_statuses=(running("a", started=True),))
    assert only(generate(POD, instance("a", cid="test://new"), old=old)).started is True


def test_probe_results_are_filled_in_before_the_conditions_are_made() -> None:
    def fill(_pod: Pod, status: PodStatus) -> PodStatus:
        return replace(status, container_statuses=tuple(replace(s, ready=True) for s in status.container_statuses))

    made = generate(POD, instance("a"), fill=fill)
    assert {c.type: words(c) for c in made.conditions}["Ready"] == ("True", "", "")


@pytest.mark.parametrize(
    ("host_network", "expected"),
    [
        pytest.param(False, ("10.0.0.1", "127.0.1.2"), id="own address"),
        pytest.param(True, ("10.0.0.1", "10.0.0.1"), id="the node's address"),
    ],
)
def test_addresses(host_network: bool, expected: tuple[str, str]) -> None:
    pod = replace(POD, host_network=host_network)
    sandbox = Sandbox(True, None if host_network else "127.0.1.2", host_network)
    inputs = Inputs(pod, RuntimePod(pod.uid, (sandbox,), (instance("a"),)), Semantics(), host=Host("10.0.0.1"))
    made = generate_status(inputs, lambda _pod, status: status)
    assert expected == (made.host_ip, made.pod_ip)


def test_a_container_of_unknown_state_that_ran_is_lost() -> None:
    made = only(generate(POD, instance("a", ContainerPhase.UNKNOWN), old=OLD_RUNNING))
    assert (made.state.exit_code, made.state.reason, made.restart_count) == (137, "ContainerStatusUnknown", 1)


def test_a_created_container_waits() -> None:
    assert only(generate(POD, instance("a", ContainerPhase.CREATED))).state == ContainerWaiting()


def test_app_statuses_are_sorted_and_init_statuses_in_spec_order() -> None:
    made = generate(make_pod("z", "a", init=("second", "first")))
    assert [s.name for s in made.container_statuses] == ["a", "z"]
    assert [s.name for s in made.init_container_statuses] == ["second", "first"]
    assert {ContainerWaiting("PodInitializing")} == {s.state for s in made.container_statuses}


def test_fields_we_do_not_model_are_carried() -> None:
    pod = replace(POD, status=PodStatus(qos_class="Burstable", extra={"resize": b'"x"'}))
    made = generate(pod)
    assert (made.qos_class, made.extra) == ("Burstable", {"resize": b'"x"'})


def test_an_old_status_without_that_container_is_no_hindrance() -> None:
    made = only(generate(POD, instance("a"), old=make_status(container_statuses=(ContainerStatus("b"),))))
    assert made.name == "a"
