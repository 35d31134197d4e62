"""Rows AD: pkg/kubelet/active_deadline.go and what generateAPIPodStatus makes of it, v1.36.3."""

from dataclasses import replace

import pytest

from agent.kubelet.status.deadline import MESSAGE_DEADLINE, active_left_s, past_active_deadline
from agent.kubelet.status.generate import Inputs, generate_status
from agent.wire.containers import RuntimePod, Sandbox
from agent.wire.model import ContainerTerminated, PodPhase, PodStatus
from agent.wire.semantics import Semantics
from tests.agent.kubelet.status.builders import NOW, make_pod, make_status
from tests.agent.kubelet.status.test_generate import dead, instance

POD = make_pod("c", active_deadline_s=60)
STARTED = make_status(phase=PodPhase.RUNNING, start_time=NOW)


@pytest.mark.parametrize(
    ("deadline_s", "start_time", "after_s", "expected"),
    [
        pytest.param(None, NOW, 1e9, False, id="AD1 a pod without a deadline"),
        pytest.param(60, None, 1e9, False, id="AD2 one that has not started"),
        pytest.param(60, NOW, 59.9, False, id="AD3 one that has not had its time"),
        pytest.param(60, NOW, 60.0, True, id="AD4 one that has just had it"),
        pytest.param(60, NOW, 86400, True, id="AD4 one that had it long ago"),
        pytest.param(1, NOW, -3600, False, id="AD3 the clock is set back"),
    ],
)
def test_who_is_past_the_deadline(
    deadline_s: int | None, start_time: float | None, after_s: float, expected: object
) -> None:
    pod = make_pod("c", active_deadline_s=deadline_s)
    assert expected == past_active_deadline(pod, make_status(start_time=start_time), NOW + after_s)


def test_what_is_left_of_it() -> None:
    assert 45.5 == active_left_s(POD, STARTED, NOW + 14.5)


def generated(after_s: float, *, old: PodStatus | None = STARTED, api: PodStatus | None = None, ended: bool = False):
    one = dead("c", 0, reason="Completed", finished_at=NOW) if ended else instance("c")
    runtime = RuntimePod(POD.uid, (Sandbox(True, "127.0.1.2"),), (one,))
    pod = replace(POD, restart_policy="Never", status=api or make_status())
    inputs = Inputs(pod, runtime, Semantics(), old=old, wall=NOW + after_s)
    return generate_status(inputs, lambda _pod, status: status)


EVICTED = (PodPhase.FAILED, "DeadlineExceeded", MESSAGE_DEADLINE)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(generated(59), (PodPhase.RUNNING, "", ""), id="before it nothing is said"),
        pytest.param(generated(60), EVICTED, id="AD5 it fails though its container runs"),
        pytest.param(generated(60, ended=True), EVICTED, id="AD6 it fails though its container has just ended well"),
        pytest.param(generated(60, old=None, api=STARTED), EVICTED, id="AD7 an agent that starts anew knows the start"),
        pytest.param(
            generated(60, api=make_status(phase=PodPhase.SUCCEEDED), ended=True),
            (PodPhase.SUCCEEDED, "DeadlineExceeded", MESSAGE_DEADLINE),
            id="AD8 what the API server calls ended stays so",
        ),
    ],
)
def test_what_is_said_of_it(made: PodStatus, expected: object) -> None:
    assert expected == (made.phase, made.reason, made.message)


def test_the_state_of_its_containers_is_told_as_it_is() -> None:
    assert isinstance(generated(60, ended=True).container_statuses[0].state, ContainerTerminated)
