"""Started and Ready of every container: the rows M11 to M41 of kubelet's prober_manager_test.go."""

from dataclasses import replace

import pytest

from agent.kubelet.prober.decide import WorkerState
from agent.kubelet.prober.manager import ProberManager
from agent.kubelet.prober.results import Results
from agent.wire.model import Condition, Container, ContainerStatus, Pod, PodStatus, RestartPolicy
from agent.wire.semantics import Semantics
from tests.agent.kubelet.prober.builders import GATE_ON, NOW, READINESS, UID, F, S, exited, make_container, running

ALWAYS = RestartPolicy.ALWAYS
READY = (Condition(type="Ready", status="True"),)
OLD, YOUNG = NOW - 300, NOW + 300


class FakeWorker:
    def __init__(self) -> None:
        self.triggers = 0
        self.state = WorkerState()

    def trigger(self) -> bool:
        self.triggers += 1
        return self.triggers == 1


class Scene:
    def __init__(self, semantics: Semantics | None = None) -> None:
        self.readiness, self.startup = Results(), Results()
        self.manager = ProberManager(
            get_pod_status=lambda _uid: None,
            probe=lambda *_arguments: S,
            readiness=self.readiness,
            liveness=Results(),
            startup=self.startup,
            semantics=semantics or Semantics(),
            wall=lambda: NOW,
        )

    def worker(self, probe_type: str, name: str = "c") -> FakeWorker:
        made = FakeWorker()
        self.manager._workers[(UID, name, probe_type)] = made
        return made

    def update(self, pod: Pod, *containers: ContainerStatus, init: bool = False) -> list[tuple[bool | None, bool]]:
        where = "init_container_statuses" if init else "container_statuses"
        status = self.manager.update_pod_status(pod, PodStatus(**{where: containers}))
        return [(c.started, c.ready) for c in getattr(status, where)]


def pod_of(*containers: Container, init: bool = False, **fields: object) -> Pod:
    return Pod(uid=UID, name="p", namespace="n", **{"init_containers" if init else "containers": containers}, **fields)


def status_of(state: object = None, started: bool | None = None, name: str = "c") -> ContainerStatus:
    return ContainerStatus(name=name, state=state or running(YOUNG), started=started, container_id=f"test://{name}")


@pytest.mark.parametrize(
    ("readiness", "readiness_worker", "startup", "startup_worker", "state", "expected"),
    [
        pytest.param(None, False, None, False, None, (True, True), id="M11 no readiness probe"),
        pytest.param(S, True, None, False, None, (True, True), id="M12 readiness succeeded"),
        pytest.param(None, True, None, False, None, (True, False), id="M13 readiness pending"),
        pytest.param(F, True, None, False, None, (True, False), id="M14 readiness failed"),
        pytest.param(None, False, None, True, None, (False, False), id="M15 startup pending"),
        pytest.param(None, False, S, True, None, (True, True), id="M16 startup succeeded"),
        pytest.param(S, True, None, False, exited(), (False, False), id="M17 ended"),
    ],
)
def test_app_containers(
    readiness: object, readiness_worker: bool, startup: object, startup_worker: bool, state: object, expected: object
) -> None:
    scene = Scene()
    if readiness:
        scene.readiness.set("test://c", readiness, UID)
    if startup:
        scene.startup.set("test://c", startup, UID)
    if readiness_worker:
        scene.worker("Readiness")
    if startup_worker:
        scene.worker("Startup")
    assert [expected] == scene.update(pod_of(Container("c")), status_of(state))


@pytest.mark.parametrize(
    ("policy", "startup", "worker", "state", "expected"),
    [
        pytest.param(None, None, True, None, (False, False), id="M18 regular, startup pending"),
        pytest.param(None, S, True, None, (True, False), id="M19 regular, started"),
        pytest.param(None, None, False, exited(0), (False, True), id="M20 regular, done"),
        pytest.param(ALWAYS, None, True, None, (False, False), id="M21 sidecar, startup pending"),
        pytest.param(ALWAYS, S, True, None, (True, True), id="M22 sidecar, started"),
        pytest.param(ALWAYS, None, False, exited(0), (False, False), id="M23 sidecar, ended"),
        pytest.param(None, None, False, exited(1), (False, False), id="regular, failed"),
    ],
)
def test_init_containers(policy: object, startup: object, worker: bool, state: object, expected: object) -> None:
    scene = Scene()
    if startup:
        scene.startup.set("test://c", startup, UID)
    if worker:
        scene.worker("Startup")
    pod = pod_of(Container("c", restart_policy=policy), init=True)
    assert [expected] == scene.update(pod, status_of(state), init=True)


@pytest.mark.parametrize(
    ("started_at", "cached", "worker", "probe", "pod_ready", "ready", "triggers"),
    [
        pytest.param(YOUNG, S, True, True, False, True, 0, id="M26 young, Success"),
        pytest.param(YOUNG, F, True, True, True, False, 1, id="M27 young, Failure"),
        pytest.param(YOUNG, None, True, True, True, False, 1, id="M28 young, no result"),
        pytest.param(YOUNG, None, False, True, False, True, 0, id="M29 young, no worker"),
        pytest.param(OLD, S, True, True, False, True, 0, id="M30 old, Success"),
        pytest.param(OLD, F, True, True, True, False, 1, id="M31 old, Failure"),
        pytest.param(OLD, None, True, True, True, True, 1, id="M32 old, no result, pod was ready"),
        pytest.param(OLD, None, True, True, False, False, 1, id="M33 old, no result, pod was not ready"),
        pytest.param(OLD, None, False, True, True, True, 0, id="M34 old, no worker, pod was ready"),
        pytest.param(OLD, None, False, True, False, False, 0, id="M35 old, no worker, pod was not ready"),
        pytest.param(OLD, None, False, False, False, True, 0, id="M36 old, no probe"),
        pytest.param(YOUNG, F, False, True, False, True, 0, id="M38 young, Failure cached, worker gone"),
    ],
)
@pytest.mark.parametrize("sidecar", [False, True], ids=["app", "sidecar"])
def test_ready_after_a_restart_of_the_agent(
    sidecar: bool,
    started_at: float,
    cached: object,
    worker: bool,
    probe: bool,
    pod_ready: bool,
    ready: bool,
    triggers: int,
) -> None:
    scene = Scene()
    if cached:
        scene.readiness.set("test://c", cached, UID)
    fake = scene.worker("Readiness") if worker else FakeWorker()
    container = make_container(READINESS if probe else (), name="c")
    container = replace(container, restart_policy=ALWAYS if sidecar else None)
    pod = pod_of(container, init=sidecar, status=PodStatus(conditions=READY if pod_ready else ()))
    assert [(True, ready)] == scene.update(pod, status_of(running(started_at)), init=sidecar)
    assert triggers == fake.triggers


@pytest.mark.parametrize(
    ("semantics", "started"),
    [pytest.param(None, True, id="M39 gate off"), pytest.param(GATE_ON, False, id="M39 gate on")],
)
def test_what_has_started_stays_started(semantics: Semantics | None, started: bool) -> None:
    scene = Scene(semantics)
    scene.worker("Startup")
    assert [(started, started)] == scene.update(pod_of(Container("c")), status_of(started=True))


def test_m40_an_init_status_of_another_name_is_only_said_to_be_started() -> None:
    pod = pod_of(Container("other", restart_policy=ALWAYS), init=True)
    assert Scene().update(pod, status_of(), init=True) == [(True, False)]


def test_m41_two_generations_leave_one_trigger() -> None:
    scene = Scene()
    worker = scene.worker("Readiness")
    for _ in range(2):
        assert scene.update(pod_of(Container("c")), status_of()) == [(True, False)]
    assert worker.triggers == 2, "asked twice; the worker keeps one wish (see W53)"


def test_statuses_that_are_not_known_stay_unknown() -> None:
    status = Scene().manager.update_pod_status(pod_of(Container("c")), PodStatus())
    assert (status.container_statuses, status.init_container_statuses) == (None, None)


@pytest.mark.parametrize(
    ("started_at", "was_ready", "results", "expected"),
    [
        pytest.param(OLD, True, [None, S], [True, True], id="ready, and passes: never another word"),
        pytest.param(OLD, True, [None, F], [True, False], id="ready, and fails: by its whole threshold"),
        pytest.param(OLD, False, [None, F], [False, False], id="not ready, and fails: never another word"),
        pytest.param(OLD, False, [None, S], [False, True], id="not ready, and passes"),
        pytest.param(
            YOUNG, True, [None, S], [False, True], id="younger than ten seconds: begins anew, as in a kubelet"
        ),
    ],
)
def test_m43_readiness_after_a_restart_of_the_agent(
    started_at: float, was_ready: bool, results: list, expected: list[bool]
) -> None:
    scene = Scene()
    for kind in ("Readiness", "Startup"):
        scene.worker(kind)
    pod = pod_of(make_container(READINESS, name="c"), status=PodStatus(conditions=READY if was_ready else ()))
    told = []
    for result in results:
        if result is not None:
            scene.readiness.set("test://c", result, UID)
        told += scene.update(pod, status_of(running(started_at), started=True))
    assert [(True, ready) for ready in expected] == told
