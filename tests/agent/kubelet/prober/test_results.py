"""The rows R of kubelet's results_manager_test.go."""

import pytest

from agent.kubelet.prober.results import Results
from agent.wire.model import ProbeUpdate, Result

S, F = Result.SUCCESS, Result.FAILURE


def test_get_set_remove() -> None:
    results = Results()
    assert results.get("test://foo") is None, "R1"
    results.set("test://foo", S, "uid")
    assert results.get("test://foo") is S, "R2"
    results.remove("test://foo")
    assert results.get("test://foo") is None, "R3"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([("foo", S)], [("foo", S)], id="R4 a new value"),
        pytest.param([("foo", S), ("bar", F)], [("foo", S), ("bar", F)], id="R5 another new value"),
        pytest.param([("foo", S), ("foo", S)], [("foo", S)], id="R6 the same Success again"),
        pytest.param([("bar", F), ("bar", F)], [("bar", F)], id="R7 the same Failure again"),
        pytest.param([("foo", S), ("foo", F)], [("foo", S), ("foo", F)], id="R8 Success to Failure"),
        pytest.param([("bar", F), ("bar", S)], [("bar", F), ("bar", S)], id="R9 Failure to Success"),
        pytest.param([("foo", S), ("foo", None), ("foo", S)], [("foo", S), ("foo", S)], id="R10 removed in between"),
    ],
)
def test_updates(steps: list[tuple[str, Result | None]], expected: list[tuple[str, Result]]) -> None:
    updates: list[ProbeUpdate] = []
    results = Results(updates.append)
    for container_id, result in steps:
        if result is None:
            results.remove(container_id)
        else:
            results.set(container_id, result, "uid")
    assert expected == [(update.container_id, update.result) for update in updates]


def test_r11_results_are_the_numbers_that_the_kubelet_exports() -> None:
    assert {S: 0, F: 1, Result.UNKNOWN: -1} == {result: result.value for result in Result}
