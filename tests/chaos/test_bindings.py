"""When a pod was bound, as far as it can be told by who hears of it late."""

import math

import pytest

from tests.chaos import outages
from tests.plane.load import bound_by

NOW_WALL, NOW = 1_767_225_610.5, 500.0  # 2026-01-01T00:00:10.5Z


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("2026-01-01T00:00:10Z", 500.0, id="within this second: now"),
        pytest.param("2026-01-01T00:00:09Z", 499.5, id="within the last one: at its end"),
        pytest.param("2026-01-01T00:00:03Z", 493.5, id="told late"),
        pytest.param("2026-01-01T00:01:00Z", 500.0, id="by a clock that is ahead: now"),
        pytest.param("", 500.0, id="nothing is written: now"),
    ],
)
def test_a_pod_was_bound_at_the_latest(written, expected):
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": written}] if written else []
    assert expected == bound_by({"status": {"conditions": conditions}}, NOW_WALL, NOW)


@pytest.mark.parametrize(
    ("bound", "others", "expected"),
    [
        pytest.param(12.0, [9.0, 10.5], 1.5, id="counted from the first binding of another one after it opened"),
        pytest.param(12.0, [9.0], 2.0, id="from its opening, where there is none"),
        pytest.param(10.2, [9.0, 10.5], 0.0, id="it was the first itself"),
        pytest.param(math.inf, [10.5], math.inf, id="it was never bound"),
    ],
)
def test_a_pod_has_waited_for_its_node(bound, others, expected):
    assert expected == outages.waits_s(10.0, bound, others)
