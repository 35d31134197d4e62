"""When a pod was bound, as far as it can be told by who hears of it late."""

import pytest

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
