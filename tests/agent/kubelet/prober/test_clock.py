"""The clock of the node is set while containers are probed: rows W86 to W88 of docs/kubelet-parity.md."""

from dataclasses import replace

import pytest

from agent.wire.semantics import Semantics
from tests.agent.kubelet.prober.builders import LIVENESS, NOW, READINESS, Bench, F, S, make_status, running

HOUR_S = 3600.0
STEPS = pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S], ids=["an hour forth", "an hour back"])


def set_clock(bench: Bench, step_s: float) -> None:
    bench.now += step_s
    bench.ahead += step_s


@STEPS
def test_w86_a_container_is_probed_on(step_s: float) -> None:
    bench = Bench.ready(LIVENESS, failure_threshold=1)
    bench.once(S)
    set_clock(bench, step_s)
    bench.once(F)
    assert (2, F) == (bench.probes, bench.result())


@STEPS
def test_w86_its_initial_delay_is_what_it_was(step_s: float) -> None:
    bench = Bench.ready(READINESS, initial_delay_s=60)
    bench.now += 1
    bench.once()
    set_clock(bench, step_s)
    made = []
    for _ in range(2):
        bench.now += 29.5
        bench.once()
        made.append(bench.probes)
    assert [0, 1] == made


@STEPS
@pytest.mark.parametrize(
    ("probe_type", "first"), [pytest.param(LIVENESS, S, id="liveness"), pytest.param(READINESS, F, id="readiness")]
)
def test_w87_one_that_is_new_is_no_older_than_the_agent(step_s: float, probe_type: object, first: object) -> None:
    bench = Bench.ready(probe_type, initial_delay_s=60)
    bench.once()
    set_clock(bench, step_s)
    bench.now += 10
    bench.status = make_status(running(bench.now), container_id="test://new")
    bench.once()
    assert (first, 0) == (bench.result("test://new"), bench.probes)


def test_w88_one_that_begins_before_the_step_and_is_seen_after_it_begins_when_it_is_seen() -> None:
    bench = Bench.ready(READINESS, initial_delay_s=30)
    set_clock(bench, -HOUR_S)
    made = []
    for _ in range(3):
        bench.once()
        made.append(bench.probes)
        bench.now += 15.0
    assert [0, 0, 1] == made


def test_w86_a_kubelet_waits_until_its_clock_says_that_they_have_begun() -> None:
    bench = Bench.ready(LIVENESS, semantics=replace(Semantics(), fix_clock_that_is_set=False))
    set_clock(bench, -HOUR_S)
    made = []
    for _ in range(2):
        bench.once()
        made.append(bench.probes)
        bench.now += HOUR_S
    assert (NOW + HOUR_S, [0, 1]) == (bench.now, made)
