"""A ticker keeps its phase, keeps one tick and drops the others."""

import pytest

from agent.probe.ticker import Ticker


def test_ticks_at_multiples_of_the_period() -> None:
    ticker = Ticker(10, monotonic=100)
    assert (ticker.take(100), ticker.wait_s(100)) == (False, 10.0)
    assert (ticker.take(109.9), ticker.take(110), ticker.take(110.1)) == (False, True, False)
    assert ticker.wait_s(110.1) == pytest.approx(9.9)


def test_a_slow_reader_gets_one_tick_and_the_phase_stays() -> None:
    ticker = Ticker(10, monotonic=100)
    assert (ticker.take(137), ticker.take(138)) == (True, False)
    assert ticker.wait_s(138) == 2


def test_w52_after_a_reset_the_next_tick_is_a_full_period_away() -> None:
    ticker = Ticker(10, monotonic=100)
    ticker.reset(115)
    assert (ticker.take(124), ticker.take(125)) == (False, True)
