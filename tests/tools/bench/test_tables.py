"""Figures become tables, and the tables are in the document."""

import pytest

from tools.bench import tables
from tools.bench.figures import TARGETS, Figure
from tools.differential import targets as differential


def figures(**values: float) -> dict[str, Figure]:
    return {name: Figure(name, value, "") for name, value in values.items()}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(0.0, "0", id="nothing is nothing"),
        pytest.param(0.5234, "0.52", id="a ratio has two digits"),
        pytest.param(9.994, "9.99", id="below ten two"),
        pytest.param(10.0, "10.0", id="from ten on one"),
        pytest.param(1465.2, "1,465", id="a thousand has its comma"),
    ],
)
def test_a_number_has_the_digits_that_mean_something(value: float, expected: str) -> None:
    assert expected == tables.number(value)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param({}, "<= 1", id="not measured: the target alone"),
        pytest.param({"stop_silent_s": 0.4}, "<= 1: met", id="met"),
        pytest.param({"stop_silent_s": 5.2}, "<= 1: missed", id="missed"),
    ],
)
def test_a_target_says_whether_it_is_met(found: dict[str, float], expected: str) -> None:
    assert expected == tables.wanted(figures(**found), ["stop_silent_s"])


def test_of_several_figures_with_one_target_all_must_meet_it() -> None:
    names = ["filter_100_cpu_ratio_to_null", "filter_420_cpu_ratio_to_null"]
    found = figures(filter_100_cpu_ratio_to_null=0.5, filter_420_cpu_ratio_to_null=0.6)
    assert "<= 0.55: missed" == tables.wanted(found, names)


def test_a_target_of_one_or_three_control_planes_alone_is_not_told_of_the_other() -> None:
    figures = {
        name: Figure(name, value, "s") for name, value in (("deploy_1_first_s", 54.0), ("deploy_3_first_s", 131.0))
    }
    assert "| first run, s | 54.0 | 131 | one: <= 90: met |" in tables.deploying(figures)
    assert "| longest time without any, s | - | - | three: <= 0 |" in tables.deploying(figures)


def test_what_was_not_measured_is_a_dash() -> None:
    found = figures(growth_1000_memory_mib=40.0, growth_1000_filter_812_p50_ms=1.0)
    assert "| 1,000 | - | 40.0 | 1.00 / - / - | - | - |" in tables.growth(found)


def test_a_place_is_filled_anew_and_the_text_around_it_stays() -> None:
    document = "before\n<!-- table: scheduler -->\nold\n<!-- end -->\nafter\n"
    once = tables.filled(document, figures(scheduler_1000_go_pods_s=251.0))
    assert once.startswith("before\n<!-- table: scheduler -->\n\n| extender |")
    assert once.endswith("|\n\n<!-- end -->\nafter\n")
    assert "| Go | 251 | - |" in once
    assert once == tables.filled(once, figures(scheduler_1000_go_pods_s=251.0))


def test_a_table_of_which_nothing_was_measured_stays_as_it_is() -> None:
    document = "<!-- table: scheduler -->\nold\n<!-- end -->\n<!-- table: agent -->\nold\n<!-- end -->\n"
    once = tables.filled(document, figures(agent_20_cpu_m=9.0))
    assert once.startswith("<!-- table: scheduler -->\nold\n<!-- end -->\n<!-- table: agent -->\n\n| |")
    assert "commands included | 9.00 | <= 10: met |" in once


def test_each_table_has_one_place_in_the_document() -> None:
    places = [place[2] for place in tables.PLACE.finditer(tables.DOCUMENT.read_text())]
    assert sorted(tables.TABLES) == sorted(places)


def test_each_target_is_in_a_table() -> None:
    everything = {name: Figure(name, 12345.0, "") for name in TARGETS}
    shown = "".join(make(everything) for make in tables.TABLES.values())
    assert [] == [
        name
        for name in TARGETS
        if shown == "".join(make({**everything, name: Figure(name, 1.0, "")}) for make in tables.TABLES.values())
    ]


def test_the_table_of_the_differential_test_names_each_of_its_targets() -> None:
    """One that is new is measured by `make bench-agent`, which writes no table by itself."""
    document = tables.DOCUMENT.read_text()
    table = next(place[0] for place in tables.PLACE.finditer(document) if place[2] == "differential")
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")][2:]
    assert [target.name for target in differential.TARGETS] == rows
