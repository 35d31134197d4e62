"""What is done for a pod's containers: computePodActions of pkg/kubelet/kuberuntime."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agent.kubelet.pods.actions import Actions, Inputs, pod_actions, waits_for
from agent.wire.containers import ContainerPhase, RuntimeContainer, RuntimePod, Sandbox
from agent.wire.model import Container, Pod, PodStatus, Probe, RestartPolicy, Result
from agent.wire.semantics import Semantics
from tests.agent.kubelet.status.builders import exited, make_pod, make_status, sidecar, waiting


def instance(name: str, exit_code: int | None = None, attempt: int = 0) -> RuntimeContainer:
    """It runs, or ended with that code."""
    phase = ContainerPhase.RUNNING if exit_code is None else ContainerPhase.EXITED
    return RuntimeContainer(
        id=f"test://{name}", name=name, phase=phase, created_at=1.0, exit_code=exit_code or 0, restart_count=attempt
    )


def actions_of(
    pod: Pod,
    *instances: RuntimeContainer,
    status: PodStatus | None = None,
    liveness: Mapping[str, Result] | None = None,
    startup: Mapping[str, Result] | None = None,
) -> Actions:
    return pod_actions(
        Inputs(
            pod,
            RuntimePod(pod.uid, (Sandbox(True, "10.0.0.1"),), instances),
            status or PodStatus(),
            (liveness or {}).get,
            (startup or {}).get,
            Semantics(),
        )
    )


def decide(pod: Pod, *instances: RuntimeContainer, **given: Any) -> tuple[list[tuple[str, int]], list[str]]:
    """(what is started, with its restart count; what is killed)."""
    made = actions_of(pod, *instances, **given)
    starts = [(start.container.name, start.restart_count) for start in (*made.init_starts, *made.starts)]
    return starts, [kill.instance.name for kill in made.kills]


A = make_pod("a")
ON_FAILURE = make_pod("a", restart_policy=RestartPolicy.ON_FAILURE)
NEVER = make_pod("a", restart_policy=RestartPolicy.NEVER)
INIT = make_pod("app", init=("i", "j"))
INIT_NEVER = make_pod("app", init=("i",), restart_policy=RestartPolicy.NEVER)
WITH_SIDECAR = make_pod("app", init=(sidecar("s"),))
PROBED = replace(sidecar("s"), startup_probe=Probe(None), liveness_probe=Probe(None))
WITH_PROBED = make_pod("app", init=(PROBED,))
LATE_SIDECARS = make_pod("a", "b", init=(sidecar("i"), "j", "k"))
INIT_DONE = make_status(init_container_statuses=(exited("i"), exited("j")))
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
        row("records of init containers lost", INIT, [instance("app", 1)], ("app", 1), status=INIT_DONE),
        row("a sidecar first", WITH_SIDECAR, [], ("s", 0)),
        row("a sidecar without a startup probe lets on as soon as it runs", WITH_SIDECAR, [instance("s")], ("app", 0)),
        row("the app waits for the start of one that has such a probe", WITH_PROBED, [instance("s")]),
        row("an app that ended waits for its sidecar", WITH_PROBED, [instance("s", 1), instance("app", 1)], ("s", 1)),
        row(
            "a sidecar that ended does not hold up what is behind it",
            LATE_SIDECARS,
            [instance("i", 1), instance("j", 0), instance("k", 0)],
            ("i", 1),
            ("a", 0),
            ("b", 0),
        ),
        row(
            "it starts beside the next init container",
            LATE_SIDECARS,
            [instance("i", 1), instance("j", 0)],
            ("i", 1),
            ("k", 0),
        ),
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
        pytest.param({"liveness": {"test://a": Result.FAILURE}}, ([("a", 1)], ["a"]), id="liveness failed"),
        pytest.param({"startup": {"test://a": Result.FAILURE}}, ([("a", 1)], ["a"]), id="startup failed"),
        pytest.param({"liveness": {"test://a": Result.SUCCESS}}, ([], []), id="liveness passed"),
        pytest.param({"startup": {"test://a": Result.UNKNOWN}}, ([], []), id="startup not known yet"),
    ],
)
def test_kills(results: dict[str, dict[str, Result]], expected: object) -> None:
    assert expected == decide(make_pod("a"), instance("a"), **results)


def test_a_pod_whose_policy_is_never_does_not_start_again_what_its_probe_failed_for() -> None:
    assert ([], ["a"]) == decide(NEVER, instance("a"), liveness={"test://a": Result.FAILURE})


@pytest.mark.parametrize(
    ("pod", "instances", "expected"),
    [
        pytest.param(
            replace(WITH_SIDECAR, restart_policy=RestartPolicy.NEVER),
            (instance("s"), instance("app", 0)),
            True,
            id="the app is done, its sidecar runs",
        ),
        pytest.param(
            replace(WITH_SIDECAR, restart_policy=RestartPolicy.NEVER),
            (instance("s"), instance("app")),
            False,
            id="the app runs",
        ),
        pytest.param(WITH_SIDECAR, (instance("s"), instance("app", 0)), False, id="the app starts again"),
        pytest.param(INIT_NEVER, (instance("i", 1),), True, id="an init container failed for good"),
    ],
)
def test_whether_all_is_ended(pod: Pod, instances: tuple, expected: bool) -> None:
    assert expected is actions_of(pod, *instances).kill_pod


def test_a_sidecar_that_is_to_end_with_its_pod_is_not_started_once_more() -> None:
    pod = replace(WITH_SIDECAR, restart_policy=RestartPolicy.NEVER)
    made = actions_of(pod, instance("s", 1), instance("app"), liveness={"test://app": Result.FAILURE})
    assert (True, []) == (made.kill_pod, made.init_starts)


@pytest.mark.parametrize(
    ("grace", "pod_fields", "expected"),
    [
        pytest.param(1, {}, 1, id="the probe's, however short"),
        pytest.param(5, {}, 5, id="the probe's"),
        pytest.param(60, {}, 60, id="longer than the pod's"),
        pytest.param(None, {}, 20, id="the pod's"),
        pytest.param(5, {"deletion_grace_period_s": 9}, 9, id="of a deletion"),
    ],
)
def test_how_long_a_container_has_whose_liveness_failed(grace: int | None, pod_fields: dict, expected: float) -> None:
    container = Container("a", liveness_probe=Probe(None, termination_grace_period_s=grace))
    pod = make_pod(container, termination_grace_period_s=20, **pod_fields)
    (kill,) = actions_of(pod, instance("a"), liveness={"test://a": Result.FAILURE}).kills
    assert expected == kill.grace_s


def test_without_a_sandbox_all_begins_anew() -> None:
    made = pod_actions(Inputs(INIT, RuntimePod(INIT.uid), PodStatus(), {}.get, {}.get, Semantics()))
    assert (True, True, ["i"], []) == (
        made.kill_pod,
        made.create_sandbox,
        [start.container.name for start in made.init_starts],
        made.starts,
    )


def test_without_restart_rules_a_failed_init_container_starts_again_even_in_a_pod_being_deleted() -> None:
    pod = replace(INIT, deletion_timestamp=1.0)
    gates = (Semantics(), Semantics(container_restart_rules=False))
    runtime = RuntimePod(pod.uid, (Sandbox(True, "10.0.0.1"),), (instance("i", 1),))
    made = [pod_actions(Inputs(pod, runtime, PodStatus(), {}.get, {}.get, semantics)) for semantics in gates]
    assert [(True, []), (False, ["i"])] == [(m.kill_pod, [s.container.name for s in m.init_starts]) for m in made]


THREE = make_pod("a", "b", init=(sidecar("s"), "i", sidecar("t"), sidecar("u")))


@pytest.mark.parametrize(
    ("running", "expected"),
    [
        pytest.param("abstu", {"a": "", "b": "", "s": "abt", "t": "abu", "u": "ab"}, id="all run"),
        pytest.param("bst", {"b": "", "s": "bt", "t": "b"}, id="some have ended"),
        pytest.param("su", {"s": "", "u": ""}, id="the one behind has ended, the next but one has not"),
    ],
)
def test_sidecars_wait_for_the_app_and_for_the_next_sidecar(running: str, expected: dict[str, str]) -> None:
    made = waits_for(THREE, list(running))
    assert expected == {name: "".join(sorted(others)) for name, others in made.items()}
