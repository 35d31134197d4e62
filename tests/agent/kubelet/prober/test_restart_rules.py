"""Does the worker of a container that has ended live on? Rows W38-W43, W55-W65, W83 and W84 of kubelet's tests."""

import pytest

from agent.wire.model import (
    Container,
    ContainerStatus,
    ContainerWaiting,
    PodPhase,
    ProbeType,
    RestartPolicy,
    RestartRule,
)
from tests.agent.kubelet.prober.builders import (
    ALL_TYPES,
    ID,
    NAME,
    READINESS,
    RESTART_ALL_OFF,
    RULES_OFF,
    Bench,
    F,
    exited,
    make_container,
    make_pod,
    make_status,
)

NEVER, ALWAYS, ON_FAILURE = RestartPolicy.NEVER, RestartPolicy.ALWAYS, RestartPolicy.ON_FAILURE


def on_exit(code: int, action: str = "Restart", operator: str | None = "In") -> RestartRule:
    return RestartRule(action, operator, (code,) if operator else ())


ALL_ON_1 = on_exit(1, "RestartAllContainers")


@pytest.mark.parametrize("probe_type", ALL_TYPES)
def test_w38_a_sidecar_is_restarted_whatever_the_pod_says(probe_type: ProbeType) -> None:
    container = make_container(probe_type, restart_policy=ALWAYS)
    bench = Bench(
        probe_type,
        container=container,
        pod=make_pod(container, sidecar=True),
        status=make_status(exited(), sidecar=True),
    )
    assert bench.once()
    assert bench.result() == F


@pytest.mark.parametrize(
    ("pod_policy", "container", "code", "semantics", "goes_on"),
    [
        pytest.param(NEVER, {}, 0, None, False, id="W39 no policy, Never"),
        pytest.param(ON_FAILURE, {}, 1, None, True, id="W40 OnFailure, exit 1"),
        pytest.param(ON_FAILURE, {}, 0, None, False, id="W41 OnFailure, exit 0"),
        pytest.param(ON_FAILURE, {}, 0, RULES_OFF, True, id="W41 rules gate off: policy is not Never"),
        pytest.param(ALWAYS, {"restart_policy": NEVER}, 1, None, False, id="W42 own Never beats Always"),
        pytest.param(NEVER, {"restart_policy": NEVER, "restart_rules": (on_exit(42),)}, 42, None, True, id="W43 42"),
        pytest.param(NEVER, {"restart_policy": NEVER, "restart_rules": (on_exit(42),)}, 1, None, False, id="W43 1"),
        pytest.param(NEVER, {"restart_policy": ON_FAILURE}, 1, None, True, id="W55"),
        pytest.param(NEVER, {"restart_policy": ON_FAILURE}, 0, None, False, id="W56"),
        pytest.param(NEVER, {"restart_policy": ALWAYS}, 1, None, True, id="W57"),
        pytest.param(NEVER, {"restart_policy": ALWAYS}, 0, None, True, id="W58"),
        pytest.param(NEVER, {"restart_policy": NEVER}, 1, None, False, id="W59"),
        pytest.param(NEVER, {"restart_policy": NEVER}, 0, None, False, id="W60"),
        pytest.param(NEVER, {"restart_policy": NEVER, "restart_rules": (on_exit(1),)}, 1, None, True, id="W61"),
        pytest.param(NEVER, {"restart_policy": NEVER, "restart_rules": (on_exit(99),)}, 1, None, False, id="W62"),
        pytest.param(NEVER, {"restart_policy": NEVER, "restart_rules": (ALL_ON_1,)}, 1, None, True, id="W63"),
        pytest.param(
            NEVER,
            {"restart_policy": NEVER, "restart_rules": (on_exit(1, "RestartAllContainers", None), on_exit(1))},
            1,
            RESTART_ALL_OFF,
            True,
            id="W83 a rule without exit codes is skipped, the second decides",
        ),
        pytest.param(
            NEVER,
            {"restart_policy": NEVER, "restart_rules": (ALL_ON_1,)},
            1,
            RESTART_ALL_OFF,
            False,
            id="W84 RestartAllContainers with its gate off",
        ),
        pytest.param("Sometimes", {}, 0, None, True, id="an unknown pod policy is Always"),
        pytest.param(
            NEVER,
            {"restart_policy": NEVER, "restart_rules": (on_exit(2, operator="NotIn"),)},
            1,
            None,
            True,
            id="a rule NotIn another code matches",
        ),
    ],
)
@pytest.mark.parametrize("probe_type", ALL_TYPES)
def test_a_container_that_has_ended(
    probe_type: ProbeType, pod_policy: str, container: dict[str, object], code: int, semantics: object, goes_on: bool
) -> None:
    made = make_container(probe_type, **container)
    pod = make_pod(made, restart_policy=pod_policy)
    bench = Bench(probe_type, container=made, pod=pod, status=make_status(exited(code)), semantics=semantics)
    assert goes_on == bench.once()
    assert bench.result() == F


def test_w64_another_container_restarts_the_whole_pod() -> None:
    own = make_container(READINESS, restart_policy=NEVER)
    trigger = Container(name="trigger", restart_policy=NEVER, restart_rules=(ALL_ON_1,))
    states = (
        ContainerStatus(name=NAME, state=exited(1), container_id=ID),
        ContainerStatus(name="trigger", state=exited(1), container_id="test://t"),
    )
    status = make_status(None, container_statuses=states)
    assert Bench(READINESS, container=own, pod=make_pod(own, trigger), status=status).once()
    assert not Bench(
        READINESS, container=own, pod=make_pod(own, trigger), status=status, semantics=RESTART_ALL_OFF
    ).once()


@pytest.mark.parametrize("probe_type", ALL_TYPES)
def test_w65_waiting_after_the_clean_up(probe_type: ProbeType) -> None:
    container = make_container(probe_type, restart_policy=NEVER, restart_rules=(ALL_ON_1,))
    status = make_status(ContainerWaiting(), phase=PodPhase.PENDING)
    assert Bench(probe_type, container=container, pod=make_pod(container), status=status).once()


@pytest.mark.parametrize(
    ("policy", "sidecar", "goes_on"),
    [
        pytest.param(NEVER, False, False, id="Never"),
        pytest.param(ALWAYS, False, True, id="Always"),
        pytest.param(NEVER, True, True, id="Never, but a sidecar"),
    ],
)
def test_with_the_rules_gate_off_the_pod_policy_alone_decides(policy: str, sidecar: bool, goes_on: bool) -> None:
    container = make_container(READINESS, restart_policy=ALWAYS if sidecar else None)
    pod = make_pod(container, sidecar=sidecar, restart_policy=policy)
    status = make_status(exited(0), sidecar=sidecar)
    assert goes_on == Bench(READINESS, container=container, pod=pod, status=status, semantics=RULES_OFF).once()
