"""What is done for a pod's containers: computePodActions of pkg/kubelet/kuberuntime."""

import pytest

from agent.model import PodStatus, RestartPolicy, Result
from agent.pods.actions import Inputs, pod_actions
from agent.runtime.base import ContainerPhase, RuntimeContainer, RuntimePod
from agent.semantics import Semantics
from tests.agent.status.builders import exited, make_pod, make_status, running, sidecar, waiting


def instance(name, exit_code=None, attempt=0):
    phase = ContainerPhase.RUNNING if exit_code is None else ContainerPhase.EXITED
    return RuntimeContainer(
        id=f"test://{name}", name=name, phase=phase, created_at=1.0, exit_code=exit_code or 0, restart_count=attempt
    )


def decide(pod, *instances, status=None, liveness=None, startup=None):
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


INIT = make_pod("app", init=("i", "j"))
WITH_SIDECAR = make_pod("app", init=(sidecar("s"),))


def sidecar_status(started):
    return make_status(init_container_statuses=(running("s", started=started),))


@pytest.mark.parametrize(
    ("pod", "instances", "status", "expected"),
    [
        pytest.param(make_pod("a", "b"), (), None, [("a", 0), ("b", 0)], id="all app containers at once"),
        pytest.param(make_pod("a"), (instance("a"),), None, [], id="it runs"),
        pytest.param(make_pod("a"), (instance("a", 0),), None, [("a", 1)], id="Always restarts after success"),
        pytest.param(
            make_pod("a", restart_policy=RestartPolicy.ON_FAILURE),
            (instance("a", 0),),
            None,
            [],
            id="OnFailure, success",
        ),
        pytest.param(
            make_pod("a", restart_policy=RestartPolicy.ON_FAILURE),
            (instance("a", 1, attempt=4),),
            None,
            [("a", 5)],
            id="OnFailure, error",
        ),
        pytest.param(make_pod("a", restart_policy=RestartPolicy.NEVER), (instance("a", 1),), None, [], id="Never"),
        pytest.param(INIT, (), None, [("i", 0)], id="the first init container alone"),
        pytest.param(INIT, (instance("i"),), None, [], id="the first init container runs"),
        pytest.param(INIT, (instance("i", 0),), None, [("j", 0)], id="then the second"),
        pytest.param(INIT, (instance("i", 1),), None, [("i", 1)], id="a failed one again"),
        pytest.param(INIT, (instance("i", 0), instance("j", 0)), None, [("app", 0)], id="then the app"),
        pytest.param(
            make_pod("app", init=("i",), restart_policy=RestartPolicy.NEVER),
            (instance("i", 1),),
            None,
            [],
            id="a failed one, Never",
        ),
        pytest.param(
            INIT,
            (),
            make_status(init_container_statuses=(exited("i"), waiting("j"))),
            [("j", 0)],
            id="an init container that the API server knows as done",
        ),
        pytest.param(
            INIT, (instance("app", 1),), None, [("app", 1)], id="no init container again once the app was created"
        ),
        pytest.param(WITH_SIDECAR, (), None, [("s", 0)], id="a sidecar first"),
        pytest.param(WITH_SIDECAR, (instance("s"),), sidecar_status(False), [], id="the app waits for its start"),
        pytest.param(
            WITH_SIDECAR, (instance("s"),), sidecar_status(True), [("app", 0)], id="a started sidecar lets on"
        ),
        pytest.param(
            WITH_SIDECAR,
            (instance("s", 0), instance("app")),
            None,
            [("s", 1)],
            id="a sidecar that ended, beside the app",
        ),
        pytest.param(
            make_pod("a", restart_policy=RestartPolicy.ON_FAILURE),
            (),
            make_status(container_statuses=(exited("a", 0),)),
            [],
            id="records lost, but the API server knows it as done",
        ),
        pytest.param(
            make_pod("a"),
            (),
            make_status(container_statuses=(waiting("a", restart_count=3),)),
            [("a", 3)],
            id="records lost, the count goes on",
        ),
    ],
)
def test_starts(pod, instances, status, expected):
    assert (expected, []) == decide(pod, *instances, status=status)


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        pytest.param({"liveness": {"test://a": Result.FAILURE}}, ["a"], id="liveness failed"),
        pytest.param({"startup": {"test://a": Result.FAILURE}}, ["a"], id="startup failed"),
        pytest.param({"liveness": {"test://a": Result.SUCCESS}}, [], id="liveness passed"),
        pytest.param({"startup": {"test://a": Result.UNKNOWN}}, [], id="startup not inputs yet"),
    ],
)
def test_kills(results, expected):
    assert ([], expected) == decide(make_pod("a"), instance("a"), **results)
