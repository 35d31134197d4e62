"""How long a node must be healthy before it opens, by how often it was closed."""

import pytest

from extender.policy.damping import Damping

RULE = Damping(min_healthy_s=10.0, ceiling_s=300.0, window_s=3600.0)


@pytest.mark.parametrize(
    ("closures", "expected"),
    [
        pytest.param([], 0.0, id="never closed"),
        pytest.param([5000.0], 0.0, id="closed once: opens at once"),
        pytest.param([4000.0, 5000.0], 10.0, id="closed twice"),
        pytest.param([4000.0, 4500.0, 5000.0], 20.0, id="three times: twice as long"),
        pytest.param([float(at) for at in range(4993, 5000)], 300.0, id="seven times: the ceiling"),
        pytest.param([float(at) for at in range(4000, 5000)], 300.0, id="a thousand times: the ceiling"),
        pytest.param([1400.0, 5000.0], 0.0, id="a closure an hour ago is forgotten"),
        pytest.param([1401.0, 5000.0], 10.0, id="one less than an hour ago is not"),
    ],
)
def test_how_long_a_node_must_be_healthy(closures: list[float], expected: float) -> None:
    assert expected == RULE.healthy_s(tuple(closures), monotonic=5000.0)


def test_what_is_remembered_is_bounded() -> None:
    closures: tuple[float, ...] = ()
    for at in range(10_000):
        closures = RULE.closed(closures, float(at))
    assert (32, 9999.0) == (len(closures), closures[-1])
