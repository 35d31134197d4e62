"""When an agent that starts with its host asks the API server first; 5,000 of them together: tests/agent/report."""

import pytest

from agent.modes.start_delay import SPREAD_S, YOUNG_S, first_pause_s


@pytest.mark.parametrize(
    ("up_s", "random", "is_first", "expected"),
    [
        pytest.param(30.0, 0.0, True, 0.0, id="one of those that start with their hosts is the first"),
        pytest.param(30.0, 1.0, True, SPREAD_S, id="and one the last"),
        pytest.param(YOUNG_S - 1, 0.5, True, SPREAD_S / 2, id="a boot that took long is one too"),
        pytest.param(YOUNG_S, 1.0, True, 0.0, id="on a host that has been up it asks at once"),
        pytest.param(30.0, 1.0, False, 0.0, id="one that replaces another after a boot goes on beating at once"),
    ],
)
def test_the_first_pause(up_s: float, random: float, is_first: bool, expected: float) -> None:
    assert expected == first_pause_s(up_s, random, is_first=is_first)
