"""The arithmetic behind the benchmark's figures."""

import json
from pathlib import Path

import pytest

from tools.bench.figures import Figure, Target, median, median_ratio, quantile, save, spread, table

ONE_TO_HUNDRED = [float(value) for value in range(100, 0, -1)]


@pytest.mark.parametrize(
    ("values", "fraction", "expected"),
    [
        pytest.param([7.0], 0.5, 7.0, id="one value is every quantile"),
        pytest.param([7.0], 0.99, 7.0, id="one value is its own p99"),
        pytest.param(ONE_TO_HUNDRED, 0.5, 50.0, id="half of a hundred values do not exceed the fiftieth"),
        pytest.param(ONE_TO_HUNDRED, 0.99, 99.0, id="one in a hundred may exceed p99"),
        pytest.param(ONE_TO_HUNDRED, 1.0, 100.0, id="all: the greatest"),
        pytest.param([1.0, 2.0, 3.0], 0.34, 2.0, id="a fraction between two ranks takes the upper one"),
        pytest.param([1.0, 2.0, 3.0, 4.0], 0.001, 1.0, id="a tiny fraction takes the smallest"),
    ],
)
def test_a_quantile_is_a_value_that_was_measured(values: list[float], fraction: float, expected: float) -> None:
    assert expected == quantile(values, fraction)


@pytest.mark.parametrize(
    ("values", "fraction"),
    [
        pytest.param([], 0.5, id="no values"),
        pytest.param([1.0], 0.0, id="fraction nought"),
        pytest.param([1.0], 1.1, id="fraction above one"),
    ],
)
def test_a_quantile_of_nothing_is_an_error(values: list[float], fraction: float) -> None:
    with pytest.raises(ValueError, match="quantile"):
        quantile(values, fraction)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([3.0, 1.0, 2.0], 2.0, id="odd: the middle one"),
        pytest.param([4.0, 1.0, 2.0, 3.0], 2.5, id="even: between the middle two"),
    ],
)
def test_the_median_ignores_order(values: list[float], expected: float) -> None:
    assert expected == median(values)


def test_a_slow_round_does_not_move_the_ratio() -> None:
    assert median_ratio([1.0, 10.0, 1.1], [2.0, 20.0, 2.2]) == pytest.approx(0.5)


def test_rounds_of_two_arms_must_pair_up() -> None:
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        median_ratio([1.0, 2.0], [1.0])


def test_the_spread_names_lowest_and_highest() -> None:
    assert spread([3.0, 1.254, 2.0]) == "1.25..3.00"


@pytest.mark.parametrize(
    ("target", "value", "expected"),
    [
        pytest.param(Target(1.0), 1.0, True, id="at most: the limit itself is met"),
        pytest.param(Target(1.0), 1.01, False, id="at most: above is missed"),
        pytest.param(Target(0.9, at_least=True), 0.89, False, id="at least: below is missed"),
        pytest.param(Target(0.9, at_least=True), 1.2, True, id="at least: above is met"),
    ],
)
def test_a_target_is_a_bound_on_one_side(target: Target, value: float, expected: bool) -> None:
    assert expected == target.met(value)


def test_the_table_says_beside_a_figure_whether_its_target_is_met() -> None:
    lines = table([Figure("filter_812_p50_ms", 0.5, "ms", "quiet"), Figure("other", 12.0, "s")]).splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["filter_812_p50_ms", "0.5", "ms", "<=", "1", "met", "quiet"],
        ["other", "12", "s"],
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("status_api_4_filter_p99_ratio", 1.11, id="more than a tenth beside readers"),
        pytest.param("killed_worker_served_s", 1.01, id="more than a second after the worker"),
        pytest.param("killed_master_free_s", 1.01, id="a port held for more than a second"),
        pytest.param("killed_master_served_s", 1.01, id="more than a second after the master"),
    ],
)
def test_what_tests_allow_on_a_busy_machine_the_table_marks_as_missed(name: str, value: float) -> None:
    assert " MISSED" in table([Figure(name, value, "")])


def test_the_file_is_a_list_of_name_value_unit_note(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "bench.json"
    save([Figure("filter_812_p99_ms", 1.23456, "ms", "five rounds")], path)
    assert json.loads(path.read_text()) == [
        {"name": "filter_812_p99_ms", "value": 1.235, "unit": "ms", "note": "five rounds"}
    ]
