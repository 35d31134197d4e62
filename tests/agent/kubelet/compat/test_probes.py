"""Rows CM of the prober: what kubelet 1.16 did (`compat: v1.16`), beside what 1.36 does."""

import time

import pytest

from agent.kubelet.pods.probe_updates import ProbeUpdates
from agent.kubelet.prober.decide import Target
from agent.kubelet.prober.manager import ProberManager
from agent.kubelet.prober.results import Results
from agent.kubelet.prober.worker import Worker, WorkerContext
from agent.probe.exec import exec_command, timeouts_are_no_failures
from agent.probe.http import http_get
from agent.probe.result import HandlerError, HandlerResult
from agent.probe.targets import http_request
from agent.processes.command import Completed, ExecTimeout
from agent.wire.model import ContainerWaiting, HttpGetAction, Probe, ProbeUpdate, RestartPolicy, Result
from agent.wire.semantics import V1_16, Semantics
from tests.agent.kubelet.pods.test_probe_updates import SYNC, Recorder
from tests.agent.kubelet.pods.test_sync import DELETED, POD, Node
from tests.agent.kubelet.prober.builders import (
    ALL_TYPES,
    LIVENESS,
    NOW,
    READINESS,
    STARTUP,
    UID,
    Bench,
    F,
    S,
    U,
    exited,
    make_container,
    make_pod,
    make_status,
    running,
)
from tests.agent.kubelet.prober.test_manager_status import OLD, READY, Scene, pod_of, status_of
from tests.agent.probe.http_target import Target as Server

BOTH = pytest.mark.parametrize("semantics", [Semantics(), V1_16], ids=["current", "v1.16"])


def then(semantics: Semantics) -> bool:
    return semantics is V1_16


@BOTH
def test_cm1_the_first_probe_is_jittered_however_old_the_prober_is(semantics: Semantics) -> None:
    drawn = []
    context = WorkerContext(
        get_pod_status=lambda _uid: None,
        probe=lambda *_arguments: S,
        results=dict.fromkeys(ALL_TYPES, Results()),
        start_wall=NOW,
        start_monotonic=time.monotonic() - 3600,
        semantics=semantics,
        random=lambda: 1.0,
    )
    context.shutdown.set()
    container = make_container(READINESS, probe=Probe(None, period_s=10))
    worker = Worker(Target(make_pod(container), container, READINESS), context, lambda _worker: None)
    worker.stop()
    worker.do_probe = lambda: drawn.append("probed") or True  # type: ignore[method-assign]
    worker._run()
    # What pauses before its first probe is ended by the shutdown while it does; what does not, probes once.
    assert ([] if then(semantics) else ["probed"]) == drawn


@BOTH
def test_cm2_a_container_that_is_not_known_to_be_ready_is_probed_at_once(semantics: Semantics) -> None:
    scene = Scene(semantics)
    worker = scene.worker(READINESS)
    scene.update(pod_of(make_container(READINESS, name="c")), status_of(started=True))
    assert (0 if then(semantics) else 1) == worker.triggers


@BOTH
def test_cm3_a_startup_probe_that_has_passed_rests(semantics: Semantics) -> None:
    bench = Bench.ready(STARTUP, semantics=semantics)
    assert bench.once(S)
    assert (S, not then(semantics)) == (bench.result(), bench.on_hold)


@BOTH
def test_cm4_what_a_startup_probe_begins_with(semantics: Semantics) -> None:
    bench = Bench.ready(STARTUP, semantics=semantics, initial_delay_s=10)
    bench.once()
    assert (F if then(semantics) else U) == bench.result()


@BOTH
def test_cm5_liveness_of_a_pod_that_is_being_deleted(semantics: Semantics) -> None:
    container = make_container(LIVENESS)
    bench = Bench.ready(LIVENESS, pod=make_pod(container, deletion_timestamp=NOW), semantics=semantics)
    assert (then(semantics), 1 if then(semantics) else 0) == (bench.once(), bench.probes)


@BOTH
def test_cm5_the_loop_stops_probes_when_a_pod_ends(semantics: Semantics) -> None:
    node = Node(semantics=semantics)
    node.put(POD)
    node.put(DELETED)
    assert (not then(semantics)) == ("stop liveness and startup" in node.prober.calls)


@BOTH
def test_cm6_sidecars_are_looked_up(semantics: Semantics) -> None:
    container = make_container(READINESS, restart_policy=RestartPolicy.ALWAYS)
    bench = Bench(
        READINESS,
        container=container,
        pod=make_pod(container, sidecar=True),
        status=make_status(running(), sidecar=True),
        semantics=semantics,
    )
    bench.once()
    assert (0 if then(semantics) else 1) == bench.probes


@BOTH
def test_cm6_sidecars_have_workers(semantics: Semantics) -> None:
    manager = ProberManager(
        get_pod_status=lambda _uid: None,
        probe=lambda *_arguments: S,
        readiness=Results(),
        liveness=Results(),
        startup=Results(),
        semantics=semantics,
    )
    try:
        manager.add_pod(make_pod(make_container(READINESS, restart_policy=RestartPolicy.ALWAYS), sidecar=True))
        assert (0 if then(semantics) else 1) == len(manager.workers())
    finally:
        manager.stop()


@BOTH
def test_cm7_a_pod_that_is_added_again_gets_the_workers_behind_its_first(semantics: Semantics) -> None:
    scene = Scene(semantics)
    scene.worker(READINESS, "a")
    scene.manager.add_pod(pod_of(*(make_container(READINESS, name=name) for name in "ab")))
    assert ({"a"} if then(semantics) else {"a", "b"}) == {key[1] for key in scene.manager.workers()}


@BOTH
def test_cm8_a_container_older_than_the_agent_keeps_what_it_was(semantics: Semantics) -> None:
    scene = Scene(semantics)
    for kind in (READINESS, STARTUP):
        scene.worker(kind)
    container = make_container((READINESS, STARTUP), name="c")
    pod = pod_of(container, status=make_status(running(OLD), conditions=READY))
    expected = (False, False) if then(semantics) else (True, True)
    assert [expected] == scene.update(pod, status_of(running(OLD), started=True))


@BOTH
def test_cm9_the_containers_own_policy_keeps_its_worker(semantics: Semantics) -> None:
    container = make_container(READINESS, restart_policy=RestartPolicy.ALWAYS)
    pod = make_pod(container, restart_policy=RestartPolicy.NEVER)
    bench = Bench(READINESS, container=container, pod=pod, status=make_status(exited(1)), semantics=semantics)
    assert (not then(semantics)) == bench.once()


@BOTH
def test_cm9_a_container_that_waits_keeps_it(semantics: Semantics) -> None:
    assert Bench(READINESS, status=make_status(ContainerWaiting()), semantics=semantics).once()


@BOTH
def test_cm10_a_failed_readiness_decides_though_its_worker_has_gone(semantics: Semantics) -> None:
    scene = Scene(semantics)
    scene.readiness.set("test://c", F, UID)
    container = make_container(READINESS, name="c")
    assert [(True, not then(semantics))] == scene.update(pod_of(container), status_of(started=True))


@BOTH
def test_cm11_e7_a_command_that_takes_too_long(semantics: Semantics) -> None:
    def execute(*_asked: object) -> Completed:
        raise ExecTimeout(("cat",), 1.0)

    if then(semantics):
        with pytest.raises(HandlerError, match="timed out"):
            exec_command(timeouts_are_no_failures(execute), "test://id", ("cat",), 1.0)
    else:
        assert HandlerResult.FAILURE is exec_command(execute, "test://id", ("cat",), 1.0).result
    assert then(semantics) == (not semantics.exec_timeout_fails)


def test_cm12_a_redirect_to_another_host_is_not_followed() -> None:
    with Server(lambda call: call.redirect("http://other.example/")) as target:
        action = HttpGetAction(target.port, "/", "127.0.0.1")
        made = http_get(http_request(action, make_container(name="c"), ""), 20.0)
    assert HandlerResult.WARNING is made.result


@BOTH
def test_cm26_readiness_of_a_pod_that_is_being_deleted_is_probed(semantics: Semantics) -> None:
    container = make_container(READINESS)
    bench = Bench.ready(READINESS, pod=make_pod(container, deletion_timestamp=NOW), semantics=semantics)
    assert (True, 1) == (bench.once(), bench.probes)


@BOTH
def test_cm22_a_probe_result_has_the_pod_synced(semantics: Semantics) -> None:
    recorder = Recorder()
    updates = ProbeUpdates(recorder, recorder.sync, semantics)
    updates.readiness(ProbeUpdate("id", Result.SUCCESS, "uid"))
    updates.startup(ProbeUpdate("id", Result.SUCCESS, "uid"))
    updates.liveness(ProbeUpdate("id", Result.FAILURE, "uid"))
    assert (1 if then(semantics) else 3) == recorder.calls.count(SYNC)


@BOTH
@pytest.mark.parametrize("started", [True, False])
def test_cm28_ready_is_made_of_readiness_alone(semantics: Semantics, started: bool) -> None:
    scene = Scene(semantics)
    scene.startup.set("test://c", S if started else F, UID)
    expected = (started, started or then(semantics))
    assert [expected] == scene.update(pod_of(make_container(STARTUP, name="c")), status_of())


@BOTH
def test_cm28_init_containers_have_no_started(semantics: Semantics) -> None:
    scene, ended = Scene(semantics), status_of(exited(0))
    expected = (None if then(semantics) else False, True)
    assert [expected] == scene.update(pod_of(make_container(STARTUP, name="c"), init=True), ended, init=True)
