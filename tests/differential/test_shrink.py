"""What a difference is cut down to, and what a copied package of the kubelet becomes."""

from pathlib import Path
from random import Random

import pytest

from agent.node.pressure import CONTAINER_SIGNALS
from tests.differential.build import Copied, copy_package
from tests.differential.errors import ERRORS, Planted
from tests.differential.planted import plant
from tests.differential.shrink import candidates, shrunk
from tests.differential.targets.eviction import EvictionTarget


def test_a_history_is_cut_down_to_what_is_needed_for_the_difference():
    history = {"pods": [{"name": "a", "spec": {"delay": 7}}], "steps": [{"op": "add"}, {"op": "probe"}, {"op": "stop"}]}

    def differs(histories: list) -> list[bool]:
        return [{"op": "probe"} in history.get("steps", []) for history in histories]

    assert shrunk(history, differs) == {"steps": [{"op": "probe"}]}


def test_of_several_smaller_histories_the_smallest_comes_first():
    assert list(candidates([1, 2, 3, 4]))[:2] == [[3, 4], [1, 2]]


def test_of_pressures_nothing_is_drawn_that_a_kubelet_decides_by_chance(seed: int):
    """Of two hard thresholds for containerfs, one of them called soft, it forgets one: 35 of 300 times the other."""
    target, random = EvictionTarget(), Random(seed)
    for history in (target.draw(random) for _ in range(3000)):
        both = history["hard"].keys() & history["soft"].keys() & set(CONTAINER_SIGNALS)
        assert [] == [signal for signal in both if history["grace"].get(signal) in ("0", "0s")], seed


@pytest.mark.parametrize("value", [True, 1, 0, "name", None, [], {}])
def test_no_candidate_is_the_value_itself(value: object):
    assert value not in list(candidates(value))


def test_in_a_copied_package_the_clock_is_ours_and_tests_are_left_out(tmp_path: Path):
    (tmp_path / "worker.go").write_text('import (\n\t"time"\n)\nvar start = time.Now()\n')
    (tmp_path / "worker_test.go").write_text("package prober\n")
    copy_package(tmp_path, tmp_path / "copy", Copied("", {r"time\.Now\(\)": "wallNow()"}))
    assert [p.name for p in (tmp_path / "copy").iterdir()] == ["worker.go"]
    assert "var start = wallNow()" in (tmp_path / "copy" / "worker.go").read_text()


def test_a_change_that_finds_nothing_to_change_stops_the_build(tmp_path: Path):
    (tmp_path / "worker.go").write_text("package prober\n")
    with pytest.raises(ValueError, match="nothing there looks like gone"):
        copy_package(tmp_path, tmp_path / "copy", Copied("", {"gone": "here"}))


@pytest.mark.parametrize("error", ERRORS, ids=str)
def test_each_error_can_still_be_planted(error: Planted, tmp_path: Path):
    plant(error, tmp_path)
    assert error.becomes in (tmp_path / "agent" / error.file).read_text()
