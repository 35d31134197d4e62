"""How long the next try waits."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from component.backoff import Backoff


def delays(backoff: Backoff, count: int, chance: float = 0.0, at_least_s: float | None = None) -> list[float]:
    found = []
    for _ in range(count):
        delay_s, backoff = backoff.next(lambda: chance, at_least_s)
        found.append(delay_s)
    return found


@pytest.mark.parametrize(
    ("backoff", "chance", "at_least_s", "expected"),
    [
        pytest.param(Backoff(0.5, 3), 0.0, None, [0.5, 1, 2, 3, 3], id="doubled up to the limit"),
        pytest.param(Backoff(1, 4, jitter=1.0), 0.5, None, [1.5, 3, 6, 6, 6], id="jitter comes on top of the limit"),
        pytest.param(Backoff(1, 4, jitter=0.25), 1.0, None, [1.25, 2.5, 5, 5, 5], id="a quarter of jitter at most"),
        pytest.param(Backoff(1, 8), 0.0, 3.0, [3, 3, 4, 8, 8], id="not sooner than the server asks"),
        pytest.param(Backoff(1, 1), 0.0, 3600.0, [300] * 5, id="a server that asks for an hour gets five minutes"),
        pytest.param(Backoff(1, 1, at_least_limit_s=60), 0.0, 61.0, [60] * 5, id="or what is set"),
        pytest.param(Backoff(5, 2), 0.0, None, [2] * 5, id="a limit below the first"),
    ],
)
def test_delays(backoff: Backoff, chance: float, at_least_s: float | None, expected: list[float]) -> None:
    assert expected == delays(backoff, 5, chance, at_least_s)


def test_a_thousand_failures_do_not_overflow() -> None:
    assert delays(Backoff(0.1, 7), 2000)[-1] == 7


def test_a_reset_begins_anew() -> None:
    _, backoff = Backoff(1, 8).next(lambda: 0.0)
    assert (1, 0) == (backoff.failures, backoff.reset().failures)
    assert [1, 2] == delays(backoff.reset(), 2)


@given(
    st.floats(0.001, 10), st.floats(0.001, 100), st.floats(0, 1), st.lists(st.none() | st.floats(0, 1e6), max_size=40)
)
def test_no_delay_is_negative_or_beyond_what_is_promised(
    first_s: float, limit_s: float, jitter: float, asked: list[float | None]
) -> None:
    backoff = Backoff(first_s, limit_s, jitter=jitter)
    for at_least_s in asked:
        delay_s, backoff = backoff.next(lambda: 1.0, at_least_s)
        assert 0 < delay_s <= max(limit_s * (1 + jitter) * (1 + 1e-9), min(at_least_s or 0.0, 300.0))
        assert math.isfinite(delay_s)
