"""What is done for a pod's containers: computePodActions of pkg/kubelet/kuberuntime."""

from collections.abc import Mapping, Sequence

import pytest

from agent.model import Pod, PodStatus, RestartPolicy, Result
from agent.pods.actions import Inputs, pod_actions
from agent.runtime.base import ContainerPhase, RuntimeContainer, RuntimePod
from agent.semantics import Semantics
from tests.agent.status.builders import exited, make_pod, make_status, running, sidecar, waiting


def instance(name: str, exit_code: int | None = None, attempt: int = 0) -> RuntimeContainer:
    """It runs, or ended with that code."""
    phase = ContainerPhase.RUNNING if exit_code is None else ContainerPhase.EXITED
    return RuntimeContainer(
        id=f"test://{name}", name=name, phase=phase, created_at=1.0, exit_code=exit_code or 0, restart_count=attempt
    )


def decide(
    pod: Pod,
    *instances: RuntimeContainer,
    status: PodStatus | None = None,
    liveness: Mapping[str, Result] | None = None,
    startup: Mapping[str, Result] | None = None,
) -> tuple[list[tuple[str, int]], list[str]]:
    """(what is started, with its restart count; what is killed)."""
    inputs = Inputs(
        pod,
        RuntimePod(pod.uid, containers=instances),
        status or PodStatus(),
        (liveness or {}).get,
        (startup or {}).get,
        Semantics(),
    )
    actions = pod_actions(inputs)
    starts = [(start.container.name, start.restart_count) for start in actions.starts]
    return starts, [kill.instance.name for kill in actions.kills]


A = make_pod("a")
ON_FAILURE = make_pod("a", restart_policy=RestartPolicy.ON_FAILURE)
NEVER = make_pod("a", restart_policy=RestartPolicy.NEVER)
INIT = make_pod("app", init=("i", "j"))
INIT_NEVER = make_pod("app", init=("i",), restart_policy=RestartPolicy.NEVER)
WITH_SIDECAR = make_pod("app", init=(sidecar("s"),))
SIDECAR_STARTED, NOT_STARTED = (
    make_status(init_container_statuses=(running("s", started=started),)) for started in (True, False)
)
I_DONE = make_status(init_container_statuses=(exited("i"), waiting("j")))
A_DONE = make_status(container_statuses=(exited("a", 0),))
A_WAITS = make_status(container_statuses=(waiting("a", restart_count=3),))


def row(
    name: str,
    pod: Pod,
    instances: Sequence[RuntimeContainer],
    *starts: tuple[str, int],
    status: PodStatus | None = None,
) -> object:
    """Which containers are started, with their restart counts; nothing is killed."""
    return pytest.param(pod, instances, status, list(starts), id=name)


@pytest.mark.parametrize(
    ("pod", "instances", "status", "expected"),
    [
        row("all app containers at once", make_pod("a", "b"), [], ("a", 0), ("b", 0)),
        row("it runs", A, [instance("a")]),
        row("Always restarts after success", A, [instance("a", 0)], ("a", 1)),
        row("OnFailure, success", ON_FAILURE, [instance("a", 0)]),
        row("OnFailure, error", ON_FAILURE, [instance("a", 1, attempt=4)], ("a", 5)),
        row("Never", NEVER, [instance("a", 1)]),
        row("the first init container alone", INIT, [], ("i", 0)),
        row("the first init container runs", INIT, [instance("i")]),
        row("then the second", INIT, [instance("i", 0)], ("j", 0)),
        row("a failed one again", INIT, [instance("i", 1)], ("i", 1)),
        row("then the app", INIT, [instance("i", 0), instance("j", 0)], ("app", 0)),
        row("a failed one, Never", INIT_NEVER, [instance("i", 1)]),
        row("an init container that the API server knows as done", INIT, [], ("j", 0), status=I_DONE),
        row("no init container again once the app was created", INIT, [instance("app", 1)], ("app", 1)),
        row("a sidecar first", WITH_SIDECAR, [], ("s", 0)),
        row("the app waits for its start", WITH_SIDECAR, [instance("s")], status=NOT_STARTED),
        row("a started sidecar lets on", WITH_SIDECAR, [instance("s")], ("app", 0), status=SIDECAR_STARTED),
        row("a sidecar that ended, beside the app", WITH_SIDECAR, [instance("s", 0), instance("app")], ("s", 1)),
        row("records lost, but the API server knows it as done", ON_FAILURE, [], status=A_DONE),
        row("records lost, the count goes on", A, [], ("a", 3), status=A_WAITS),
    ],
)
def test_starts(
    pod: Pod, instances: Sequence[RuntimeContainer], status: PodStatus | None, expected: list[tuple[str, int]]
) -> None:
    assert (expected, []) == decide(pod, *instances, status=status)


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        pytest.param({"liveness": {"test://a": Result.FAILURE}}, ["a"], id="liveness failed"),
        pytest.param({"startup": {"test://a": Result.FAILURE}}, ["a"], id="startup failed"),
        pytest.param({"liveness": {"test://a": Result.SUCCESS}}, [], id="liveness passed"),
        pytest.param({"startup": {"test://a": Result.UNKNOWN}}, [], id="startup not known yet"),
    ],
)
def test_kills(results: dict[str, dict[str, Result]], expected: list[str]) -> None:
    assert ([], expected) == decide(make_pod("a"), instance("a"), **results)
