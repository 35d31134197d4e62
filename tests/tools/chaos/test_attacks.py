"""What the row of the attacks makes of kube-scheduler's histogram."""

import math

import pytest

from tools.chaos.attacks import quantile_s


@pytest.mark.parametrize(
    ("buckets", "expected"),
    [
        pytest.param({0.1: 0, 0.2: 100, math.inf: 100}, 0.199, id="within a bucket"),
        pytest.param({0.1: 99, 0.2: 100, math.inf: 100}, 0.1, id="at a bound"),
        pytest.param({0.1: 50, 0.2: 60, math.inf: 100}, 0.2, id="beyond the last bound"),
        pytest.param({}, 0.0, id="nothing was measured"),
        pytest.param({0.1: 0, math.inf: 0}, 0.0, id="no attempt"),
    ],
)
def test_quantile_of_a_histogram(buckets, expected):
    assert expected == pytest.approx(quantile_s(buckets, 0.99))
