"""The rows W of kubelet's worker_test.go: what one look of a worker does, by conditions and by history."""

from dataclasses import replace

import pytest

from agent.kubelet.prober import worker as worker_module
from agent.wire.model import Condition, ContainerWaiting, PodPhase, PodStatus, ProbeType
from agent.wire.semantics import Semantics
from tests.agent.kubelet.prober.builders import (
    ALL_TYPES,
    ERROR,
    GATE_ON,
    LIVENESS,
    NAME,
    NOW,
    READINESS,
    STARTUP,
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

OLD, YOUNG = NOW - 300, NOW + 300


def by_type(cases: list[tuple[str, str, object, str, object]]) -> list[object]:
    """(row, sentence, status maker, goes on for L/R/S as y or n, result) for each probe type."""
    return [
        pytest.param(probe_type, status, letter == "y", expected, id=f"{row} {probe_type}: {sentence}")
        for row, sentence, status, letters, expected in cases
        for probe_type, letter in zip(ALL_TYPES, letters, strict=True)
    ]


DO_PROBE = by_type(
    [
        ("W1", "no status in the status manager", None, "yyy", None),
        ("W2", "the pod has failed", PodStatus(phase=PodPhase.FAILED), "nnn", None),
        ("W2", "the pod has succeeded", PodStatus(phase=PodPhase.SUCCEEDED), "nnn", None),
        ("W4", "a status only for another container", make_status(running(), name="other"), "yyy", None),
        ("W5", "the container waits", make_status(ContainerWaiting()), "yyy", F),
        ("W6", "the container has ended, policy Never", make_status(exited()), "nnn", F),
        ("W50", "the container id is empty", make_status(running(), container_id=""), "yyy", None),
    ],
)


@pytest.mark.parametrize(("probe_type", "status", "goes_on", "expected"), DO_PROBE)
def test_do_probe(probe_type: ProbeType, status: PodStatus | None, goes_on: bool, expected: object) -> None:
    bench = Bench(probe_type, status=status)
    assert goes_on == bench.once()
    assert expected == bench.result()


@pytest.mark.parametrize(
    ("probe_type", "goes_on"), [(LIVENESS, False), (READINESS, True), (STARTUP, False)], ids=lambda v: f"W3 {v}"
)
def test_deletion_ends_liveness_and_startup_with_success(probe_type: ProbeType, goes_on: bool) -> None:
    container = make_container(probe_type)
    bench = Bench.ready(probe_type, container=container, pod=make_pod(container, deletion_timestamp=NOW))
    assert goes_on == bench.once()
    assert bench.result() == S


@pytest.mark.parametrize("delay_s", [pytest.param(0, id="W7 plain"), pytest.param(-100, id="W8 delay -100")])
@pytest.mark.parametrize("probe_type", ALL_TYPES)
def test_a_probe_that_succeeds(probe_type: ProbeType, delay_s: int) -> None:
    bench = Bench.ready(probe_type, initial_delay_s=delay_s)
    assert bench.once()
    assert bench.result() == S


@pytest.mark.parametrize(
    ("probe_type", "expected"),
    [
        pytest.param(LIVENESS, S, id="W9 liveness"),
        pytest.param(READINESS, F, id="W10 readiness"),
        pytest.param(STARTUP, U, id="W11 startup"),
    ],
)
def test_initial_delay(probe_type: ProbeType, expected: object) -> None:
    bench = Bench.ready(probe_type, initial_delay_s=10)
    assert bench.once()
    assert expected == bench.result()
    bench.status = make_status(running(NOW - 100), started=probe_type is not STARTUP)
    assert bench.once()
    assert bench.result() == S, "W12: started 100 s ago"


@pytest.mark.parametrize(
    ("age_s", "delay_s", "probes"),
    [
        pytest.param(9.99, 10, 0, id="9.99 s of 10"),
        pytest.param(10, 10, 1, id="10 s of 10"),
        pytest.param(-2, 0, 0, id="a start 2 s in the future"),
        pytest.param(-0.5, 0, 1, id="a start half a second in the future"),
    ],
)
def test_the_delay_is_counted_in_whole_seconds(age_s: float, delay_s: int, probes: int) -> None:
    semantics = Semantics(fix_clock_that_is_set=False)
    status = make_status(running(NOW - age_s))
    bench = Bench(READINESS, status=status, semantics=semantics, initial_delay_s=delay_s)
    bench.once()
    assert probes == bench.probes


def test_failure_threshold() -> None:
    bench = Bench.ready(READINESS, failure_threshold=3)
    for _ in range(2):
        assert [(bench.once(S), bench.result())[1] for _ in range(3)] == [S, S, S], "W13"
        assert [(bench.once(F), bench.result())[1] for _ in range(2)] == [S, S], "W14"
        assert [(bench.once(F), bench.result())[1] for _ in range(3)] == [F, F, F], "W15"


def test_success_threshold() -> None:
    bench = Bench.ready(READINESS, success_threshold=3)
    bench.once(F)
    for _ in range(2):
        assert [(bench.once(S), bench.result())[1] for _ in range(2)] == [F, F], "W16"
        assert [(bench.once(S), bench.result())[1] for _ in range(3)] == [S, S, S], "W17"
        bench.once(F)
        assert bench.result() == F, "W18"


def test_a_startup_success_puts_the_worker_on_hold() -> None:
    bench = Bench.ready(STARTUP, failure_threshold=3)
    assert not bench.on_hold
    bench.once(S)
    assert (bench.result(), bench.on_hold, bench.run) == (S, True, 0), "W19"


def test_a_startup_failure_puts_the_worker_on_hold_at_its_threshold() -> None:
    bench = Bench.ready(STARTUP, failure_threshold=3)
    seen = [(bench.once(F), (bench.result(), bench.run, bench.on_hold))[1] for _ in range(3)]
    assert seen == [(U, 1, False), (U, 2, False), (F, 0, True)], "W20, W21, W31"


@pytest.mark.parametrize(
    ("probe_type", "held_again"),
    [pytest.param(LIVENESS, False, id="W23-W25"), pytest.param(STARTUP, True, id="W26-W27")],
)
def test_on_hold_until_a_new_container_comes(probe_type: ProbeType, held_again: bool) -> None:
    bench = Bench.ready(probe_type)
    bench.once(F)
    assert (bench.result(), bench.on_hold) == (F, True)
    bench.once(S)
    assert (bench.result(), bench.on_hold) == (F, True)
    bench.status = make_status(running(), container_id="test://newCont_ID", started=probe_type is not STARTUP)
    bench.once(S)
    assert (S, held_again) == (bench.result("test://newCont_ID"), bench.on_hold)


def test_result_run_of_liveness() -> None:
    bench = Bench.ready(LIVENESS, failure_threshold=3)
    seen = [(bench.once(result), (bench.result(), bench.run))[1] for result in (S, F, F, F)]
    assert seen == [(S, 1), (S, 1), (S, 2), (F, 0)], "W28, W29, W30"


def test_liveness_waits_until_the_container_has_started() -> None:
    bench = Bench.ready(LIVENESS, status=make_status(running(), started=False))
    bench.once(F)
    assert (bench.result(), bench.probes) == (S, 0), "W32"
    bench.status = make_status(running(), started=True)
    bench.once(F)
    assert bench.result() == F, "W33"


def test_startup_is_not_probed_once_the_container_has_started() -> None:
    bench = Bench.ready(STARTUP, failure_threshold=2)
    assert (bench.once(F), bench.result())[1] == U, "W34"
    assert (bench.once(S), bench.result())[1] == S, "W35"
    bench.status = make_status(running(), started=True)
    probes = bench.probes
    assert (bench.once(F), bench.result())[1] == S, "W36"
    assert probes == bench.probes


@pytest.mark.parametrize("probe_type", ALL_TYPES)
def test_w37_a_prober_that_breaks_does_not_end_the_worker(probe_type: ProbeType) -> None:
    bench = Bench.ready(probe_type)
    assert bench.once(RuntimeError("boom"))


@pytest.mark.parametrize(
    ("started_ago_s", "semantics", "expected"),
    [
        pytest.param(11, None, None, id="W44 older than the manager: no first Failure"),
        pytest.param(9, None, F, id="W45 not old enough"),
        pytest.param(11, GATE_ON, F, id="W46 with the gate on"),
    ],
)
def test_the_first_result_after_a_restart_of_the_agent(
    started_ago_s: float, semantics: object, expected: object
) -> None:
    bench = Bench(READINESS, status=make_status(running(NOW - started_ago_s)), semantics=semantics)
    bench.once(ERROR)
    assert expected == bench.result()
    bench.once(S)
    assert bench.result() == S


def test_w48_errors_change_nothing() -> None:
    bench = Bench.ready(READINESS)
    bench.once(S)
    for _ in range(5):
        assert bench.once(ERROR)
    assert (bench.result(), bench.run, bench.counted) == (S, 1, [S])


def test_w49_an_error_does_not_break_a_run() -> None:
    bench = Bench.ready(READINESS, failure_threshold=2)
    bench.once(S)
    assert [(bench.once(outcome), bench.result())[1] for outcome in (F, ERROR, F)] == [S, S, F]


def test_w54_a_new_container_takes_the_old_result_away() -> None:
    bench = Bench.ready(READINESS)
    bench.once(S)
    bench.updates.clear()
    bench.status = make_status(running(), container_id="test://new", started=False)
    bench.once()
    assert (bench.result(), bench.result("test://new")) == (None, F)
    assert bench.updates == [("test://new", F)]


RESTART = [
    pytest.param(row, semantics, age, sidecar, probe_type, expected, id=f"{row} {probe_type} {words}")
    for row, semantics, age, sidecar, expects, words in [
        ("W66-W68", GATE_ON, OLD, False, (S, F, U), "gate on, old app"),
        ("W69-W71", GATE_ON, YOUNG, False, (S, F, U), "gate on, young app"),
        ("W72-W74", None, OLD, False, (None, None, None), "old app"),
        ("W75-W77", None, YOUNG, False, (S, F, U), "young app"),
        ("W78-W80", None, OLD, True, (None, None, S), "old sidecar"),
    ]
    for probe_type, expected in zip(ALL_TYPES, expects, strict=True)
]


@pytest.mark.parametrize(("row", "semantics", "started_at", "sidecar", "probe_type", "expected"), RESTART)
def test_container_status_on_restart(
    row: str, semantics: object, started_at: float, sidecar: bool, probe_type: ProbeType, expected: object
) -> None:
    bench = (
        sidecar_bench(probe_type, started_at, semantics) if sidecar else app_bench(probe_type, started_at, semantics)
    )
    assert bench.once()
    assert (expected, 0) == (bench.result(), bench.probes), row


def app_bench(probe_type: ProbeType, started_at: float, semantics: object) -> Bench:
    return Bench(probe_type, status=make_status(running(started_at)), semantics=semantics, initial_delay_s=1000)


def sidecar_bench(probe_type: ProbeType, started_at: float, semantics: object = None) -> Bench:
    container = make_container(probe_type, restart_policy="Always")
    delayed = replace(getattr(container, f"{probe_type.lower()}_probe"), initial_delay_s=1000)
    container = replace(container, **{f"{probe_type.lower()}_probe": delayed})
    return Bench(
        probe_type,
        container=container,
        pod=make_pod(container, sidecar=True),
        status=make_status(running(started_at), sidecar=True),
        semantics=semantics,
    )


def test_w47_an_old_sidecar_that_has_started_is_a_success_without_a_probe() -> None:
    bench = sidecar_bench(STARTUP, OLD)
    bench.once()
    assert (bench.result(), bench.probes) == (S, 0)


def test_w81_a_young_sidecar_that_has_started_gives_two_updates() -> None:
    bench = sidecar_bench(STARTUP, YOUNG)
    bench.once()
    assert [result for _, result in bench.updates] == [S, U]


def test_w85_all_containers_restart_by_the_cached_condition() -> None:
    restarting = (Condition(type="AllContainersRestarting", status="True"),)
    bench = Bench(READINESS, status=make_status(exited(1), conditions=restarting))
    assert bench.once()


@pytest.mark.parametrize(
    ("period_s", "age_s", "expected"),
    [
        pytest.param(10, 3, 5.0, id="W51 manager younger than the period: a random part of it"),
        pytest.param(10, 11, 0.0, id="W51 manager older: none"),
    ],
)
def test_jitter(period_s: float, age_s: float, expected: float) -> None:
    assert expected == worker_module.jitter(period_s, age_s, 0.5)


def test_an_id_that_cannot_be_parsed_looks_new_every_time() -> None:
    bench = Bench(READINESS, status=make_status(running(), container_id="no-type"))
    bench.once()
    bench.once()
    assert bench.updates == [("", F), ("", S), ("", F), ("", S)]
    assert bench.container.name == NAME
