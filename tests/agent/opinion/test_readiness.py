"""What we say of a pod: container by container, by the runtime's states where they are known, else by those told."""

import math
from dataclasses import replace

import pytest

from agent.opinion.readiness import Opinion, Word, opinion_of, told
from agent.opinion.selection import budget_s, probed
from agent.wire.containers import ContainerPhase, RuntimeContainer, RuntimePod
from agent.wire.model import Container, ContainerStatus, ExecAction, HttpGetAction, Pod, PodStatus, Probe, Result
from agent.wire.semantics import Semantics
from tests.agent.kubelet.status.builders import NOW, condition, exited, make_pod, running, sidecar, waiting

HTTP = Probe(HttpGetAction(80), period_s=5, failure_threshold=2, timeout_s=1)
EXEC = Probe(ExecAction(("true",)), period_s=10)
READY, NOT, UNKNOWN = Word.READY, Word.NOT_READY, Word.UNKNOWN
GATE = "readygate.dev/NodeHealthy"


def web(name: str = "web", probe: Probe | None = HTTP) -> Container:
    return Container(name=name, readiness_probe=probe)


def words(
    pod: Pod,
    results: dict[str, Result] | None = None,
    runtime: RuntimePod | None = None,
    *,
    start_wall: float = math.inf,
) -> Opinion:
    """results: by container name."""
    by_id = {f"test://{name}": result for name, result in (results or {}).items()}
    return opinion_of(pod, runtime, by_id.get, semantics=Semantics(), start_wall=start_wall)


def of(*containers: Container, told: tuple[ContainerStatus, ...], **fields: object) -> Pod:
    status = PodStatus(phase="Running", container_statuses=told, conditions=fields.pop("conditions", ()))
    return make_pod(*containers, status=status, **fields)


UP = running("web", started=True, ready=True)


@pytest.mark.parametrize(
    ("pod", "results", "expected"),
    [
        pytest.param(of(web(), told=(UP,)), {"web": Result.SUCCESS}, READY, id="its probe passes"),
        pytest.param(of(web(), told=(UP,)), {"web": Result.FAILURE}, NOT, id="its probe fails"),
        pytest.param(of(web(), told=(UP,)), {}, UNKNOWN, id="its probe has given no result yet"),
        pytest.param(of(web(probe=None), told=(UP,)), {}, READY, id="without a probe it is ready when it runs"),
        pytest.param(of(web(probe=EXEC), told=(UP,)), {}, UNKNOWN, id="a command is not run: unknown, not failed"),
        pytest.param(of(web(), told=(exited("web"),)), {}, NOT, id="it has ended"),
        pytest.param(of(web(), told=(waiting("web"),)), {}, NOT, id="it waits to start"),
        pytest.param(of(web(), told=()), {}, UNKNOWN, id="nothing is told of it"),
        pytest.param(
            of(web(), told=(replace(UP, started=False),)), {"web": Result.FAILURE}, UNKNOWN, id="it is still starting"
        ),
        pytest.param(
            of(web(), web("db", EXEC), told=(UP, running("db", started=True))),
            {"web": Result.FAILURE},
            NOT,
            id="one that fails is enough, whatever else is unknown",
        ),
        pytest.param(
            of(web(), web("db", EXEC), told=(UP, running("db", started=True))),
            {"web": Result.SUCCESS},
            UNKNOWN,
            id="one that is unknown speaks for nobody",
        ),
    ],
)
def test_what_we_say_of_the_containers(pod: Pod, results: dict[str, Result], expected: Word) -> None:
    assert expected == words(pod, results).containers


@pytest.mark.parametrize(
    ("start_wall", "expected"),
    [
        pytest.param(NOW + 60, UNKNOWN, id="it ran when we began to look: as told"),
        pytest.param(NOW - 60, NOT, id="it was started since: not ready before its first result"),
    ],
)
def test_before_the_first_result_of_its_probe(start_wall: float, expected: Word) -> None:
    assert expected == words(of(web(), told=(UP,)), start_wall=start_wall).containers


def test_a_sidecar_counts_and_an_init_container_does_not() -> None:
    proxy = replace(sidecar("proxy"), readiness_probe=HTTP)
    pod = make_pod(web(), init=[proxy, "setup"])
    told_init = (running("proxy", started=True), exited("setup"))
    status = PodStatus(phase="Running", container_statuses=(UP,), init_container_statuses=told_init)
    found = words(replace(pod, status=status), {"web": Result.SUCCESS, "proxy": Result.FAILURE})
    assert (NOT, ("proxy",)) == (found.containers, found.unready)


def test_ready_needs_the_readiness_gates_and_containers_ready_does_not() -> None:
    """So our own condition, which is such a gate, does not make us say that the pod is not ready."""
    pod = of(web(), told=(UP,), readiness_gates=(GATE,), conditions=(condition(GATE, "False"),))
    found = words(pod, {"web": Result.SUCCESS})
    assert (READY, NOT) == (found.containers, found.pod)


def instance(phase: ContainerPhase) -> RuntimePod:
    return RuntimePod("uid-1", containers=(RuntimeContainer("test://web", "web", phase, 1.0, started_at=1.0),))


@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        pytest.param(instance(ContainerPhase.RUNNING), READY, id="it runs, as told"),
        pytest.param(instance(ContainerPhase.EXITED), NOT, id="it has ended, and nobody has told"),
        pytest.param(RuntimePod("uid-1"), READY, id="the runtime knows nothing of it: as told"),
        pytest.param(None, READY, id="the runtime is not asked: as told"),
    ],
)
def test_the_states_of_the_runtime_go_before_what_is_told(runtime: RuntimePod | None, expected: Word) -> None:
    found = words(of(web(), told=(UP,)), {"web": Result.SUCCESS}, runtime)
    assert expected == found.containers


def started(container: Container, told_id: str, *, told_started: bool) -> bool | None:
    """As it is seen, of a container that the runtime calls test://web."""
    before = replace(UP, container_id=told_id, started=told_started)
    seen = words(of(container, told=(before,)), {}, instance(ContainerPhase.RUNNING)).status
    return next(c.started for c in seen.container_statuses or ())


@pytest.mark.parametrize(
    ("container", "told_id", "told_started", "expected"),
    [
        pytest.param(web(), "test://old", True, True, id="without a startup probe it has when it runs"),
        pytest.param(replace(web(), startup_probe=HTTP), "test://web", True, True, id="its kubelet says so"),
        pytest.param(replace(web(), startup_probe=HTTP), "test://web", False, False, id="its kubelet does not yet"),
        pytest.param(replace(web(), startup_probe=HTTP), "test://old", True, False, id="it was another instance"),
    ],
)
def test_whether_a_container_has_started(
    container: Container, told_id: str, told_started: bool, expected: bool
) -> None:
    assert expected is started(container, told_id, told_started=told_started)


@pytest.mark.parametrize(
    ("told_id", "told_started", "expected"),
    [
        pytest.param("test://web", False, UNKNOWN, id="it is the one told: its kubelet makes that probe"),
        pytest.param("test://old", True, NOT, id="it is newer than what was told: not ready, as its kubelet will say"),
    ],
)
def test_a_container_that_has_not_started(told_id: str, told_started: bool, expected: Word) -> None:
    before = replace(UP, container_id=told_id, started=told_started)
    pod = of(replace(web(), startup_probe=HTTP), told=(before,))
    assert expected == words(pod, {}, instance(ContainerPhase.RUNNING)).containers


def test_the_address_stays_where_the_runtime_has_none() -> None:
    """Of a pod on the host's network."""
    pod = of(web(), told=(UP,))
    pod = replace(pod, status=replace(pod.status, pod_ip="192.0.2.1", host_ip="192.0.2.1"))
    assert "192.0.2.1" == words(pod, {}, instance(ContainerPhase.RUNNING)).status.pod_ip


@pytest.mark.parametrize(
    ("status", "expected"),
    [("True", READY), ("False", NOT), ("Unknown", UNKNOWN)],
)
def test_what_the_kubelet_says(status: str, expected: Word) -> None:
    assert (expected, UNKNOWN) == told(PodStatus(conditions=(condition("ContainersReady", status),)))


def test_liveness_startup_and_commands_are_not_probed_from_outside() -> None:
    whole = Container("web", readiness_probe=HTTP, liveness_probe=HTTP, startup_probe=HTTP)
    pod = probed(make_pod(whole, web("db", EXEC)), with_exec=False)
    assert [(HTTP, None, None), (None, None, None)] == [
        (c.readiness_probe, c.liveness_probe, c.startup_probe) for c in pod.containers
    ]


def test_the_budget_is_that_of_the_slowest_probe() -> None:
    assert (31.0, 0.0) == (budget_s(make_pod(web(), web("db", EXEC))), budget_s(make_pod(web(probe=None))))
