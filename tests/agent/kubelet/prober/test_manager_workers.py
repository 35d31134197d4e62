"""Which workers there are and how they live: rows M1-M10, M24, M25, M37 and W22, W52, W53, W82, with real threads."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from agent.kubelet.prober.manager import ProberManager
from agent.kubelet.prober.results import Results
from agent.wire.model import Container, ContainerStatus, Pod, PodStatus, ProbeType, ProbeUpdate, RestartPolicy, Result
from agent.wire.semantics import Semantics
from tests.agent.kubelet.prober.builders import (
    ALL_TYPES,
    ID,
    LIVENESS,
    NAME,
    READINESS,
    STARTUP,
    UID,
    F,
    S,
    make_container,
    make_pod,
    make_probe,
    make_status,
    running,
)
from tools.kit.waiting import wait_for, wait_until

ALWAYS = RestartPolicy.ALWAYS
SLOW = make_probe(period_s=3600)


class Scene:
    """A prober manager whose probes are answered by the test."""

    def __init__(self, random: float = 0.0, semantics: Semantics | None = None) -> None:
        self.statuses: dict[str, PodStatus] = {}
        self.outcome = S
        self.before_status: Callable[[], object] = lambda: None
        self.probed = threading.Semaphore(0)
        self.updates: list[ProbeUpdate] = []
        self.updated = threading.Condition()
        self.results = {probe_type: Results(self._update) for probe_type in ALL_TYPES}
        self.manager = ProberManager(
            get_pod_status=self._status,
            probe=self._probe,
            readiness=self.results[READINESS],
            liveness=self.results[LIVENESS],
            startup=self.results[STARTUP],
            semantics=semantics or Semantics(),
            random=lambda: random,
        )

    def _status(self, uid: str) -> PodStatus | None:
        self.before_status()
        return self.statuses.get(uid)

    def _probe(self, *_arguments: object) -> Result:
        self.probed.release()
        return self.outcome

    def _update(self, update: ProbeUpdate) -> None:
        with self.updated:
            self.updates.append(update)
            self.updated.notify_all()

    def keys(self) -> set[tuple[str, ProbeType]]:
        return {(name, probe_type) for _, name, probe_type in self.manager.workers()}

    def gone(self, count: int = 0) -> bool:
        return bool(wait_for(lambda: len(self.manager.workers()) == count, timeout_s=30))


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.manager.stop()


def slow(types: object, name: str = NAME, **fields: object) -> Container:
    return make_container(types, name=name, probe=SLOW, **fields)


def test_workers_follow_pods(scene: Scene) -> None:
    scene.manager.add_pod(make_pod(Container("a"), uid="bare"))
    assert scene.keys() == set(), "M1"
    probed = make_pod(
        Container("none"), slow(READINESS, "r"), Container("x"), slow(LIVENESS, "l"), Container("y"), slow(STARTUP, "s")
    )
    scene.manager.add_pod(probed)
    expected = {("r", READINESS), ("l", LIVENESS), ("s", STARTUP)}
    assert expected == scene.keys(), "M2"
    scene.manager.remove_pod(make_pod(Container("a"), uid="bare"))
    assert expected == scene.keys(), "M3"
    scene.manager.remove_pod(probed)
    assert scene.gone(), "M4"
    scene.manager.remove_pod(probed)
    assert scene.gone(), "M5"


def test_only_sidecars_among_init_containers_have_workers(scene: Scene) -> None:
    scene.manager.add_pod(make_pod(slow(ALL_TYPES), sidecar=True, uid="plain"))
    assert scene.keys() == set(), "M6"
    pod = make_pod(slow(ALL_TYPES, restart_policy=ALWAYS), sidecar=True)
    scene.manager.add_pod(pod)
    assert {(NAME, probe_type) for probe_type in ALL_TYPES} == scene.keys(), "M7"
    scene.manager.remove_pod(pod)
    assert scene.gone(), "M7"


@pytest.mark.parametrize(
    ("semantics", "expected"),
    [
        pytest.param(Semantics(), {"a", "b"}, id="M8 the call goes on behind a worker that exists"),
        pytest.param(
            Semantics(fix_add_pod_ends_at_first_worker=False), {"a"}, id="M8 without its fix the call ends there"
        ),
    ],
)
def test_a_pod_that_is_added_again(semantics: Semantics, expected: set[str]) -> None:
    scene = Scene(semantics=semantics)
    pod = make_pod(slow(READINESS, "a"), slow(READINESS, "b"))
    scene.manager.add_pod(pod)
    scene.manager.remove_pod(make_pod(slow(READINESS, "b")))
    assert scene.gone(1)
    scene.manager.add_pod(pod)
    assert {(name, READINESS) for name in expected} == scene.keys()
    scene.manager.stop()


def test_m9_cleanup_keeps_the_desired_pods(scene: Scene) -> None:
    for uid in ("keep", "drop"):
        scene.manager.add_pod(make_pod(slow(ALL_TYPES), uid=uid))
    scene.manager.cleanup_pods({"keep"})
    assert scene.gone(3)
    assert {"keep"} == {uid for uid, _, _ in scene.manager.workers()}


def test_m10_cleanup_of_a_hundred_pods_may_be_repeated_while_their_probes_run(scene: Scene) -> None:
    """Each of 300 workers is asked to end again and again, also while it ends; one that is wanted is never asked."""
    scene.manager.add_pod(make_pod(slow(ALL_TYPES), uid="wanted"))
    kept = dict(scene.manager._workers)
    for number in range(100):
        uid = f"pod-{number}"
        scene.statuses[uid] = make_status(running(time.time()))
        scene.manager.add_pod(make_pod(slow(ALL_TYPES), uid=uid))
    ended = [worker for key, worker in scene.manager._workers.items() if key not in kept]
    assert 300 == len(ended)
    for _ in range(10):
        scene.manager.cleanup_pods({"wanted"})
    wait_until(lambda: scene.manager._workers == kept, timeout_s=30)
    assert [] == [worker for worker in ended if worker.alive() and not worker._stopped]
    assert 3 == sum(worker.alive() for worker in kept.values())
    for _ in range(10):
        scene.manager.cleanup_pods(set())
    wait_until(lambda: scene.manager._workers == {}, timeout_s=30)
    scene.manager.cleanup_pods(set())


def test_m37_the_end_of_a_pod_stops_liveness_and_startup_of_app_containers_only(scene: Scene) -> None:
    pod = Pod(
        uid=UID,
        name="p",
        namespace="n",
        containers=(slow(ALL_TYPES, "app"),),
        init_containers=(slow(ALL_TYPES, "sidecar", restart_policy=ALWAYS),),
    )
    scene.manager.add_pod(pod)
    scene.manager.stop_liveness_and_startup(pod)
    assert scene.gone(4)
    assert {("app", READINESS), *(("sidecar", probe_type) for probe_type in ALL_TYPES)} == scene.keys()


@pytest.mark.parametrize(
    ("outcome", "expected"), [pytest.param(S, True, id="M24 success"), pytest.param(F, False, id="M25 failure")]
)
def test_readiness_reaches_whoever_listens(scene: Scene, outcome: Result, expected: bool) -> None:
    scene.statuses[UID] = make_status(running(time.time()))
    scene.outcome = outcome
    scene.manager.add_pod(make_pod(slow(READINESS)))
    assert scene.probed.acquire(timeout=30)
    wait_until(lambda: (scene.results[READINESS].get(ID) is S) is expected, timeout_s=30)
    assert expected == (scene.updates[-1].result is S)
    assert (scene.updates[-1].container_id, scene.updates[-1].pod_uid) == (ID, UID)


@pytest.mark.parametrize("probe_type", ALL_TYPES)
def test_w22_a_stopped_worker_takes_itself_and_its_result_away(scene: Scene, probe_type: ProbeType) -> None:
    scene.statuses[UID] = make_status(running(time.time()), started=probe_type is not STARTUP)
    pod = make_pod(slow(probe_type))
    scene.manager.add_pod(pod)
    wait_until(lambda: scene.results[probe_type].get(ID) is S, timeout_s=30)
    wait_until(lambda: scene.manager.durations() != {}, timeout_s=30)
    (labels,) = scene.manager.durations()
    assert {*labels} <= {*next(iter(scene.manager.totals()))}, "M42"
    for _ in range(10):
        scene.manager.remove_pod(pod)
    assert scene.gone()
    assert scene.results[probe_type].get(ID) is None
    assert ({}, {}) == (scene.manager.totals(), scene.manager.durations())


def test_w52_w53_triggers_probe_at_once_and_do_not_pile_up(scene: Scene) -> None:
    scene.statuses[UID] = make_status(running(time.time()))
    blocked = threading.Event()
    scene.manager.add_pod(make_pod(slow(READINESS)))
    assert scene.probed.acquire(timeout=30)
    worker = next(iter(scene.manager._workers.values()))
    assert worker.trigger()
    assert scene.probed.acquire(timeout=30), "probed at once, an hour before the tick"
    entered = threading.Event()

    def wait() -> None:
        entered.set()
        blocked.wait(30)

    scene.before_status = wait
    worker.trigger()
    assert entered.wait(30)
    assert [worker.trigger(), worker.trigger()] == [True, False], "one wish is kept while a probe runs"
    blocked.set()
    assert scene.probed.acquire(timeout=30)
    assert scene.probed.acquire(timeout=30)
    assert not scene.probed.acquire(timeout=0.05)


def test_w82_a_stop_during_the_jitter_is_seen_after_one_probe() -> None:
    scene = Scene(random=0.2)
    scene.statuses[UID] = make_status(running(time.time()))
    pod = make_pod(make_container(READINESS))
    scene.manager.add_pod(pod)
    scene.manager.remove_pod(pod)
    assert scene.gone()
    assert scene.probed.acquire(blocking=False)
    assert not scene.probed.acquire(blocking=False)


def test_stop_does_not_wait_for_a_jitter() -> None:
    scene = Scene(random=0.9)
    scene.manager.add_pod(make_pod(slow(ALL_TYPES)))
    assert scene.manager.healthy(0.0)
    scene.manager.stop()
    scene.manager.stop()
    assert scene.gone()


def test_m44_without_a_thread_for_it_a_probe_is_one_that_has_no_result(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    start = threading.Thread.start

    def full(thread: threading.Thread) -> None:
        if thread.name.startswith("probe-"):
            raise RuntimeError("can't start new thread")
        start(thread)

    pod = make_pod(slow(READINESS, "r"), slow(STARTUP, "s"))
    statuses = tuple(
        ContainerStatus(name=name, state=running(time.time()), container_id=f"test://{name}") for name in ("r", "s")
    )
    said = PodStatus(container_statuses=statuses)
    with monkeypatch.context() as machine:
        machine.setattr(threading.Thread, "start", full)
        added = [scene.manager.add_pod(pod) for _ in range(3)]
    shown = scene.manager.update_pod_status(pod, said).container_statuses or ()
    assert ([False] * 3, set(), True) == (added, scene.keys(), scene.manager.healthy(0.0))
    assert [(True, False), (False, False)] == [(c.started, c.ready) for c in shown]
    assert [("no thread for probes", None)] == [(r.getMessage(), r.exc_info) for r in caplog.records]
    assert (True, {("r", READINESS), ("s", STARTUP)}) == (scene.manager.add_pod(pod), scene.keys())
    scene.manager.remove_pod(pod)
    assert scene.gone()
