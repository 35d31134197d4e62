"""The arithmetic of the measurements: what they make of what was seen."""

import itertools
import json
import math
from collections import Counter

import pytest

from tests.plane.healing import Healed
from tools.bench import (
    cold_start,
    filter_latency,
    growth,
    kick,
    peak_memory,
    rate,
    reload,
    scheduler_rate,
    stalled,
    status_api,
    stop,
    updates,
)
from tools.bench.asking import request_for
from tools.bench.cold_start import Start
from tools.bench.figures import Figure
from tools.bench.filter_latency import Load, Round
from tools.bench.helpers import Calls
from tools.bench.processes import MeasurementError, Memory
from tools.bench.reload import replaced

GOOD = Calls([1.0] * 99 + [7.0], {})
HALF_FAILED = Calls([1.0] * 50, {"timeout": 40, "refused": 10})


def values(figures: list[Figure]) -> dict[str, float]:
    return {figure.name: round(figure.value, 6) for figure in figures}


def start(seconds: float, pss_mib: float) -> Start:
    return Start(seconds, cpu_s=0.5, memory=[Memory(rss_mib=pss_mib, pss_mib=pss_mib, peak_mib=2 * pss_mib)] * 2)


def test_ratios_of_a_load_pair_up_round_by_round() -> None:
    rounds = [
        {"go": Round(2.0, 8.0, 4.0), "go400": Round(2.0, 4.0, 3.0), "readygate": Round(1.0, 2.0, 1.0)},
        {"go": Round(20.0, 80.0, 4.0), "go400": Round(20.0, 40.0, 3.0), "readygate": Round(10.0, 20.0, 1.0)},
    ]
    assert {
        "filter_812_p50_ms": 5.5,
        "filter_812_p50_ratio_to_go": 0.5,
        "filter_812_p99_ms": 11.0,
        "filter_812_p99_ratio_to_go": 0.25,
        "filter_812_p99_ratio_to_go400": 0.5,
        "filter_812_cpu_ms": 1.0,
        "filter_812_cpu_ratio_to_go": 0.25,
    } == values(filter_latency.summarise(Load(812), rounds))


def test_a_load_with_updates_has_a_name_of_its_own() -> None:
    assert "filter_812_busy" == Load(812, "_busy", 500).prefix


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param(GOOD, 1.0 * 99 + 7.0, id="good answers held the caller up as long as they took"),
        pytest.param(HALF_FAILED, 50 * 1.0 + 50 * 1000.0, id="each that failed counts as the whole timeout"),
    ],
)
def test_a_call_that_failed_is_no_fast_one(calls: Calls, expected: float) -> None:
    assert expected == sum(calls.waited_ms(1000.0))


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param(GOOD, "none", id="none"),
        pytest.param(HALF_FAILED, "10 refused, 40 timeout", id="by cause"),
    ],
)
def test_failures_are_told_by_cause(calls: Calls, expected: str) -> None:
    assert expected == calls.causes


def test_the_worst_kind_of_slow_client_is_the_figure() -> None:
    found = {"nobody": HALF_FAILED, "silent": GOOD, "header": Calls([2.0], {}), "body": HALF_FAILED}
    assert {"stalled_200_filter_p99_ms": 1000.0, "stalled_200_failed": 50} == values(stalled.figures(found))


def test_what_fails_beside_nobody_is_not_the_slow_clients_doing() -> None:
    found = {"nobody": HALF_FAILED, "silent": GOOD}
    assert {"stalled_200_filter_p99_ms": 1.0, "stalled_200_failed": 0} == values(stalled.figures(found))


def test_people_are_measured_against_the_same_minute_without_them() -> None:
    alone, beside = [Calls([1.0], {}), Calls([10.0], {})], [Calls([2.0], {}), Calls([20.0], {})]
    read = [status_api.Read(pages=100, failed=0), status_api.Read(pages=60, failed=0)]
    assert {"status_api_4_filter_p99_ratio": 2.0, "status_api_4_failed": 0, "status_api_4_pages_s": 20.0} == values(
        status_api.figures(alone, beside, read, seconds=4.0)
    )


@pytest.mark.parametrize(
    ("read", "cause"),
    [
        pytest.param(status_api.Read(pages=0, failed=0), "4 readers got 0 pages in 4 s", id="nothing was read"),
        pytest.param(
            status_api.Read(pages=15, failed=0), "4 readers got 15 pages in 4 s", id="less than a page a second each"
        ),
        pytest.param(status_api.Read(pages=100, failed=1), "1 of the readers' requests failed", id="a refusal"),
    ],
)
def test_people_who_read_nothing_are_no_measurement(read: status_api.Read, cause: str) -> None:
    with pytest.raises(MeasurementError, match=cause):
        status_api.figures([GOOD, GOOD], [GOOD, GOOD], [status_api.Read(pages=100, failed=0), read], seconds=4.0)


def test_of_many_connections_each_call_and_each_page_counts() -> None:
    found = rate.figures(Calls([1.0] * 20, {}), [GOOD, HALF_FAILED], [200, 200, 503], seconds=2.0)
    assert {
        "rate_5000_p50_ms": 1.0,
        "rate_5000_p99_ms": 1.0,
        "rate_5000_calls_s": 10.0,
        "rate_5000_many_p99_ms": 1000.0,
        "rate_5000_many_failed": 51,
    } == values(found)


def test_a_call_that_failed_has_taken_its_timeout_at_once_and_with_the_most_names_too() -> None:
    found = rate.short_figures(Calls([1.0] * 99, {}), HALF_FAILED)
    assert {"rate_812_at_once_p99_ms": 1.0, "rate_16000_p99_ms": 1000.0} == values(found)


def test_beside_nobody_who_looks_the_many_are_no_measurement() -> None:
    with pytest.raises(MeasurementError, match="only 1 pages"):
        rate.figures(GOOD, [GOOD], [200], seconds=2.0)


def test_pods_that_wait_for_a_heal_are_bound_when_the_last_one_is() -> None:
    healed = Healed(patches=2, bound_s=0.7, writes_s=0.4)
    assert {"kick_300_patches": 3, "kick_300_bound_s": 0.7} == values(kick.figures(3, healed))


def test_a_pod_that_is_never_bound_is_no_figure() -> None:
    with pytest.raises(MeasurementError, match="not all pods"):
        kick.figures(2, Healed(patches=2, bound_s=math.inf, writes_s=0.4))


def test_of_kills_and_stops_the_slowest_is_the_figure() -> None:
    killed = [stop.Killed(0.3, 0.1, 0.9), stop.Killed(0.5, 0.2, 0.8)]
    assert {
        "stop_silent_s": 0.6,
        "killed_worker_served_s": 0.5,
        "killed_master_free_s": 0.2,
        "killed_master_served_s": 0.9,
    } == values(stop.figures([0.6, 0.5], killed))


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        pytest.param([1], [1], False, id="nothing has happened"),
        pytest.param([1], [1, 2], False, id="the new one is there, the old one still answers"),
        pytest.param([1], [2], True, id="the new one alone"),
        pytest.param([1], [], False, id="the old one is gone, nobody took its place"),
    ],
)
def test_a_worker_is_replaced_when_the_new_one_is_alone(before: list[int], now: list[int], *, expected: bool) -> None:
    assert expected == replaced(before, now)


def test_reloads_count_every_call_that_failed() -> None:
    assert {"reload_2_failed": 50} == values(reload.figures(HALF_FAILED, [0.5, 1.5]))


def test_the_scheduler_is_as_fast_as_the_middle_one_of_the_rounds() -> None:
    rates = {"none": [300.0, 30.0, 280.0], "null": [200.0, 20.0, 210.0], "go": [160.0, 20.0, 200.0]}
    rounds = {name: [scheduler_rate.Round((rate,), 0.5) for rate in of_arm] for name, of_arm in rates.items()}
    rounds["readygate"] = [scheduler_rate.Round((rate,), 0.25) for rate in (180.0, 24.0, 210.0)]
    assert {
        "scheduler_1000_none_pods_s": 280.0,
        "scheduler_1000_null_pods_s": 200.0,
        "scheduler_1000_go_pods_s": 160.0,
        "scheduler_1000_readygate_pods_s": 180.0,
        "scheduler_1000_ratio_to_null": 1.0,
        "scheduler_1000_ratio_to_go": 1.125,
        "scheduler_1000_ratio_to_none": 0.75,
        "scheduler_1000_cpu_ms": 0.25,
        "scheduler_1000_cpu_ratio_to_null": 0.5,
        "scheduler_1000_cpu_ratio_to_go": 0.5,
    } == values(scheduler_rate._figures(rounds))


def test_the_scheduler_is_compared_square_by_square_of_turns() -> None:
    rounds = {name: [scheduler_rate.Round((100.0, 200.0, 50.0), 0.5)] for name in scheduler_rate.ARMS}
    rounds["readygate"] = [scheduler_rate.Round((110.0, 240.0, 10.0), 0.5)]
    figures = {figure.name: figure for figure in scheduler_rate._figures(rounds)}
    assert 1.1 == figures["scheduler_1000_ratio_to_null"].value
    assert "3 squares of turns, half of them 0.20 to 1.20" == figures["scheduler_1000_ratio_to_null"].note


def test_squares_have_equally_many_pods_so_their_times_are_added() -> None:
    assert 80.0 == scheduler_rate.Round((60.0, 120.0), 0.5).pods_s


def test_each_turn_has_all_arms_and_begins_with_another() -> None:
    assert ["a", "b", "c", "b", "c", "a", "c", "a", "b"] == scheduler_rate.order(["a", "b", "c"], 3)


def test_each_arm_comes_equally_often_after_each_other_one() -> None:
    names = scheduler_rate.ARMS
    batches = scheduler_rate.order(names, len(names))
    turns = [batches[begin : begin + len(names)] for begin in range(0, len(batches), len(names))]
    after = Counter(pair for turn in turns for pair in itertools.pairwise(turn))
    assert dict.fromkeys(itertools.permutations(names, 2), 1) == dict(after)


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        pytest.param([float(place) for place in range(30)], [10.0], id="a pod a second"),
        pytest.param(
            [*range(9), 9.9, 8.9, *range(11, 20), *(20.0 + 2 * place for place in range(10))],
            [10.1],
            id="two that overtake one another, and twice as slow after the second",
        ),
        pytest.param(
            [*range(10), *reversed(range(10, 20)), *(20.0 + 2 * place for place in range(10))],
            [10.0],
            id="the second one backwards",
        ),
    ],
)
def test_a_batch_lasts_from_edge_to_edge(times: list[float], expected: list[float]) -> None:
    assert expected == scheduler_rate.durations_s(times, batch=10)


def test_batches_that_are_mixed_are_not_measured() -> None:
    times = [float(place * 37 % 90) for place in range(90)]
    with pytest.raises(MeasurementError, match="bound in another order"):
        scheduler_rate.durations_s(times, batch=30)


def test_the_first_turn_is_not_counted() -> None:
    batches = [*scheduler_rate.order(["a", "b"], 3), "a"]  # a b, b a, a b, and one more
    assert {"a": [3.0, 4.0], "b": [2.0, 5.0]} == scheduler_rate._by_arm(batches, [1.0, 2.0, 3.0, 4.0, 5.0])


def test_who_asks_beside_a_crowd_is_told_by_its_slowest_call() -> None:
    crowd = Calls([500.0] * rate.CROWD, {})
    assert {"rate_5000_beside_crowd_ms": 90.0} == values([rate.crowd_figure(Calls([3.0, 90.0, 4.0], {}), crowd)])


@pytest.mark.parametrize(
    ("beside", "crowd"),
    [
        pytest.param(Calls([3.0], {"timeout": 1}), Calls([500.0] * 120, {}), id="one call failed"),
        pytest.param(Calls([3.0], {}), Calls([500.0] * 120, {"refused": 1}), id="one of the crowd's did"),
        pytest.param(Calls([3.0], {}), Calls([500.0] * 119, {}), id="a crowd of which not all were answered"),
    ],
)
def test_what_is_no_crowd_is_not_measured(beside: Calls, crowd: Calls) -> None:
    with pytest.raises(MeasurementError):
        rate.crowd_figure(beside, crowd)


def test_a_peak_is_what_all_processes_took_beyond_what_they_held() -> None:
    idle = [Memory(rss_mib=20, pss_mib=0, peak_mib=30), Memory(rss_mib=80, pss_mib=0, peak_mib=90)]
    after = [Memory(rss_mib=20, pss_mib=0, peak_mib=21), Memory(rss_mib=90, pss_mib=0, peak_mib=200)]
    assert 121 == peak_memory.above_idle_mib(idle, after)


def test_the_worst_body_is_named() -> None:
    found = peak_memory.figures({"different names": 10.0, "labels": 90.0})
    assert {"peak_8mib_names_mib": 10.0, "peak_worst_body_mib": 90.0} == values(found)
    assert found[1].note.startswith("labels;")


def test_a_body_is_filled_up_to_its_limit() -> None:
    assert b'{"NodeNames":["a","b"]}' == peak_memory.filled(b'{"NodeNames":[', peak_memory.short_texts(), b"]}", 26)


def test_short_texts_never_come_twice() -> None:
    some = list(itertools.islice(peak_memory.short_texts(), 2000))
    assert 2000 == len(set(some))


@pytest.mark.parametrize("name", peak_memory.bodies())
def test_every_worst_body_is_as_large_as_it_may_be(name: str) -> None:
    limit = peak_memory.NODES_BODY_BYTES if name == "whole nodes" else peak_memory.BODY_BYTES
    assert 0.99 * limit <= len(peak_memory.bodies()[name]()) <= limit


def test_a_cold_start_is_the_middle_one_of_the_rounds() -> None:
    ours = [start(1.0, 40), start(9.0, 50), start(2.0, 45)]
    theirs = [start(2.0, 60), start(18.0, 60), start(4.0, 60)]
    assert {"cold_start_5000_s": 2.0, "cold_start_5000_ratio_to_go": 0.5, "cold_start_5000_rss_mib": 90.0} == values(
        cold_start.figures(ours, theirs)
    )


def test_growth_has_the_same_figures_at_each_size() -> None:
    rounds = [{"null": Round(2.0, 4.0, 8.0), "readygate": Round(1.0, 3.0, 2.0)}]
    assert {
        "growth_1000_cold_start_s": 1.0,
        "growth_1000_memory_mib": 80.0,
        "growth_1000_filter_812_p50_ms": 1.0,
        "growth_1000_filter_812_p99_ms": 3.0,
        "growth_1000_filter_812_cpu_ms": 2.0,
        "growth_1000_pod_update_cpu_us": 90.0,
        "growth_1000_lease_update_cpu_us": 20.0,
    } == values(growth.figures_of(1000, [start(1.0, 40)], rounds, {"pod": [90.0], "lease": [20.0]}))


def test_leases_that_all_come_within_a_second_are_a_figure_of_their_own() -> None:
    spent = {"lease": {"readygate": [30.0, 20.0, 25.0], "go": [60.0, 40.0, 50.0]}}
    assert {"lease_update_cpu_us": 25.0, "lease_update_cpu_ratio_to_go": 0.5, "lease_return_cpu_us": 18.0} == values(
        updates.figures_of(spent, {"readygate": [18.0], "go": [40.0]})
    )


def test_a_single_call_asks_in_the_schedulers_words() -> None:
    assert {"Pod", "Nodes", "NodeNames"} == set(json.loads(request_for(["a"])))
