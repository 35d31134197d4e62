"""Rows S29-S49: TestTerminatePod* of status_manager_test.go of v1.36.3."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent.kubelet.status.termination import terminated_status
from agent.wire.model import ContainerStatus, ContainerTerminated, Pod, PodPhase, PodStatus
from agent.wire.semantics import Semantics
from tests.agent.kubelet.status.builders import exited, make_pod, make_status, running, waiting
from tools.kit.cases import cases

LOST = ContainerTerminated(
    137, "ContainerStatusUnknown", "The container could not be located when the pod was terminated"
)


def states(statuses: Sequence[ContainerStatus] | None) -> str:
    """137 for a container that was declared lost, W for one that still waits, else its exit code."""
    words = []
    for status in statuses or ():
        state = status.state
        words.append(
            "137" if state == LOST else str(state.exit_code) if isinstance(state, ContainerTerminated) else "W"
        )
    return " ".join(words)


def ended(pod: Pod, status: PodStatus) -> PodStatus:
    """The API's copy and the newest status are the same, as in upstream's cases."""
    return terminated_status(replace(pod, status=status), status, Semantics())


def test_s29_containers_without_an_end_get_137_and_all_else_stays() -> None:
    pod = make_pod("test-1", "test-2", "test-3", init=("init-1", "init-2", "init-3"))
    status = make_status(
        phase=PodPhase.FAILED,
        message="kept",
        container_statuses=(replace(running("test-1"), state=None), exited("test-2", 2), exited("test-3", 0)),
        init_container_statuses=(replace(running("init-1"), state=None), exited("init-2", 0), exited("init-3", 3)),
    )
    made = ended(pod, status)
    assert (states(made.container_statuses), states(made.init_container_statuses)) == ("137 2 0", "137 0 3")
    assert (made.phase, made.message) == (PodPhase.FAILED, "kept")


def test_s30_a_waiting_app_container_ends_but_the_last_waiting_init_container_stays() -> None:
    pod = make_pod("test-1", "test-2", "test-3", init=("init-1", "init-2", "init-3"))
    status = make_status(
        phase=PodPhase.FAILED,
        container_statuses=(replace(running("test-1"), state=None), exited("test-2", 2), waiting("test-3")),
        init_container_statuses=(replace(running("init-1"), state=None), exited("init-2", 0), waiting("init-3")),
    )
    made = ended(pod, status)
    assert (states(made.container_statuses), states(made.init_container_statuses)) == ("137 2 137", "137 0 W")


OK = ContainerTerminated(0)
TWO = ContainerTerminated(2)


@cases(
    "init, app, expected_init, expected_app",
    ("S33 last state set", [], [waiting("a", last_state=TWO)], "", "137"),
    ("S34 no previous state", [], [waiting("a")], "", "137"),
    ("S35 uninitialized, one init waits", [waiting("i")], [waiting("a")], "137", "W"),
    ("S36 uninitialized, two init wait", [waiting("i"), waiting("j")], [waiting("a")], "137 W", "W"),
    ("S37 gaps", [waiting("i"), waiting("j"), exited("k", 1), waiting("l")], [waiting("a")], "137 137 1 W", "W"),
    ("S38 the last one failed", [waiting("i"), waiting("j"), exited("k", 1)], [waiting("a")], "137 137 1", "W"),
    ("S39 the last one ended 0", [waiting("i"), waiting("j"), exited("k", 0)], [waiting("a")], "137 137 0", "137"),
    ("S40 ended 0", [waiting("i"), waiting("j"), waiting("k", last_state=OK)], [waiting("a")], "137 137 137", "137"),
    ("S41 a running app proves init", [waiting("i")], [running("a")], "137", "137"),
    ("S42 an ended app proves init", [waiting("i")], [exited("a", 0)], "137", "0"),
    ("S43 an app that ended before proves init", [waiting("i")], [waiting("a", last_state=OK)], "137", "137"),
)
def test_states_of_a_terminated_pod(
    init: Sequence[ContainerStatus], app: Sequence[ContainerStatus], expected_init: str, expected_app: str
) -> None:
    pod = make_pod(*(s.name for s in app), init=[s.name for s in init])
    status = make_status(phase=PodPhase.RUNNING, container_statuses=tuple(app), init_container_statuses=tuple(init))
    made = ended(pod, status)
    assert (expected_init, expected_app) == (states(made.init_container_statuses), states(made.container_statuses))


def test_s33_the_last_state_is_kept() -> None:
    status = make_status(container_statuses=(waiting("a", last_state=TWO),))
    assert [s.last_state for s in ended(make_pod("a"), status).container_statuses] == [TWO]


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        pytest.param(PodPhase.PENDING, PodPhase.FAILED, id="S44 Pending"),
        pytest.param(PodPhase.RUNNING, PodPhase.FAILED, id="S45 Running"),
        pytest.param(PodPhase.SUCCEEDED, PodPhase.SUCCEEDED, id="S46 Succeeded"),
        pytest.param(PodPhase.FAILED, PodPhase.FAILED, id="S31 S47 Failed"),
        pytest.param(PodPhase.UNKNOWN, PodPhase.FAILED, id="S48 Unknown"),
        pytest.param("odd", PodPhase.FAILED, id="S49 odd"),
    ],
)
def test_phase_of_a_terminated_pod(phase: PodPhase, expected: PodPhase) -> None:
    assert expected == ended(make_pod(), PodStatus(phase=phase)).phase


@pytest.mark.parametrize(
    "containers", [pytest.param((), id="S32 without"), pytest.param((exited("a", 2),), id="S32 with exit 2")]
)
def test_a_running_pod_fails(containers: tuple[ContainerStatus, ...]) -> None:
    status = make_status(phase=PodPhase.RUNNING, container_statuses=containers)
    assert ended(make_pod("a"), status).phase is PodPhase.FAILED


def test_a_static_pod_keeps_its_phase() -> None:
    assert ended(make_pod(static=True), PodStatus(phase=PodPhase.RUNNING)).phase is PodPhase.RUNNING
