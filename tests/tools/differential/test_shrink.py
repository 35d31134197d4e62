"""What a difference is cut down to, and what a copied package of the kubelet becomes."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent.kubelet.node.pressure import CONTAINER_SIGNALS
from tools.differential.build import Copied, copy_package
from tools.differential.compare import _cut_down, agents_answer, semantics_of
from tools.differential.errors import ERRORS
from tools.differential.kubelet import GATES
from tools.differential.planted import plant
from tools.differential.planted_error import Planted
from tools.differential.shrink import candidates, shrunk
from tools.differential.target import Answers, History
from tools.differential.targets.eviction import EvictionTarget
from tools.differential.targets.grpc import GrpcTarget
from tools.differential.targets.handlers import LATE_S, SOON_S, HandlersTarget, hurried


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


class Kubelet:
    """Says what the agent does, but of one that has this word in its history, where it always says the same."""

    def __init__(self, target: Any, word: str) -> None:
        self._target, self._word = target, word
        self._answers: list[Answers] = []
        self.asked: list[History] = []

    def ask(self, _name: str, gates: dict[str, bool], histories: list[History], _mended: Sequence[str] = ()) -> None:
        self.asked += histories
        semantics = semantics_of(gates)
        self._answers = [
            {"errored": True} if self._word in json.dumps(history) else agents_answer(self._target, history, semantics)
            for history in histories
        ]

    def answers(self) -> list[Answers]:
        return self._answers


SERVED = {"grpc": {"port": 1, "service": "readiness"}}


@pytest.mark.parametrize(
    ("target", "probe", "word"),
    [
        pytest.param(HandlersTarget(), {"exec": {"command": ["true", "odd", "more"]}}, "odd", id="handlers"),
        pytest.param(GrpcTarget(), {"timeoutSeconds": LATE_S, "periodSeconds": 1, **SERVED}, "readiness", id="grpc"),
    ],
)
def test_what_differs_over_a_network_is_cut_down_too(target: Any, probe: Any, word: str) -> None:
    """Nobody listens there, so each try takes all of a probe's time, which is short then."""
    container = {"name": "a", "livenessProbe": probe, "env": [{"name": "A", "value": "v"}]}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [container]}, "status": {"podIP": "127.0.0.1"}}
    run = {"code": 0, "stdout": "so", "stderr": "", "fault": ""}
    script = {"greeting": "", "reply": ["x" * 40]}
    history = {"pod": pod, "type": "Liveness", "runs": [run], "script": script}
    kubelet: Any = Kubelet(target, word)
    found = _cut_down(target, kubelet, dict(GATES[0]), history, lambda some: [word in json.dumps(one) for one in some])
    assert (True, True) == (word in json.dumps(found), len(json.dumps(found)) < len(json.dumps(history)) / 2), found
    assert [] == [one for one in kubelet.asked[3:] if f'"timeoutSeconds": {LATE_S}' in json.dumps(one)]
    assert f'"timeoutSeconds": {SOON_S}' in json.dumps(hurried({"timeoutSeconds": LATE_S}))


def test_a_history_is_cut_down_no_longer_than_it_is_worth() -> None:
    left = iter([False] * 3)

    def differs(histories: list[History]) -> list[bool]:
        return [True] * len(histories)

    found = shrunk([1, 2, 3, 4, 5, 6, 7, 8], differs, at_once=1, enough=lambda: next(left, True))
    assert [8] == found
