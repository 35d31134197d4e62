"""`python -m tools.bench.pods`: what is made of a watch, and of rounds."""

from typing import Any

import pytest

from tools.bench.pods.__main__ import _sizes
from tools.bench.pods.results import figures
from tools.bench.pods.rounds import Round, Seen


def pod(name: str, ready: str) -> Any:
    return {"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": ready}]}}


def test_all_are_ready_when_the_last_one_is_for_the_first_time() -> None:
    seen = Seen()
    for at, (name, ready) in enumerate([("a", "False"), ("a", "True"), ("b", "True"), ("a", "False"), ("a", "True")]):
        assert seen.all_ready_at(["a", "b"]) is None or at > 2
        seen.take("MODIFIED", pod(name, ready), float(at))
    assert seen.all_ready_at(["a", "b"]) == 2.0
    assert seen.all_ready_at(["a", "b", "c"]) is None


def test_all_are_gone_when_the_last_one_is_deleted() -> None:
    seen = Seen()
    seen.take("DELETED", pod("a", "False"), 1.0)
    assert seen.all_gone_at(["a", "b"]) is None
    seen.take("DELETED", pod("b", "True"), 3.0)
    assert seen.all_gone_at(["a", "b"]) == 3.0
    assert seen.all_ready_at(["b"]) is None


def test_the_figures_are_medians_of_each_arm_and_their_ratio() -> None:
    rounds = [
        *(Round("agent", 10, 0.0, ready_s, 1.0, 0.0) for ready_s in (2.0, 4.0, 3.0)),
        *(Round("kubelet", 10, 0.0, ready_s, 2.0, 0.0) for ready_s in (6.0, 5.0, 7.0)),
        Round("agent", 200, 0.0, 9.0, 9.0, 0.0),  # the other arm has not played it yet
    ]
    found = {one.name: one.value for one in figures(rounds)}
    assert found == {
        "pods_10_ready_agent_s": 3.0,
        "pods_10_ready_kubelet_s": 6.0,
        "pods_10_ready_ratio": 0.5,
        "pods_10_gone_agent_s": 1.0,
        "pods_10_gone_kubelet_s": 2.0,
        "pods_10_gone_ratio": 0.5,
    }


@pytest.mark.parametrize("text", ["", "0", "201", "1,x", "1,,2", "-1"])
def test_other_numbers_of_pods_are_refused(text: str) -> None:
    with pytest.raises(Exception, match="give numbers of 1 to 200"):
        _sizes(text)
