"""What waiting gives back, and what it says when it was in vain."""

import pytest

from tools.kit.clock import Clock
from tools.kit.waiting import wait_for, wait_until


def test_waiting_gives_what_was_found_as_soon_as_it_is_there() -> None:
    answers = iter([None, "", "found"])
    assert wait_for(lambda: next(answers), timeout_s=5, every_s=0) == "found"


def test_a_last_look_is_taken_when_the_time_is_over() -> None:
    assert wait_for(lambda: "there", timeout_s=0) == "there"
    assert wait_for(lambda: None, timeout_s=0) is None


@pytest.mark.parametrize("what", ["the end", lambda: "the end"], ids=["a text", "told only then"])
def test_in_vain_says_for_what(what) -> None:
    with pytest.raises(AssertionError, match=r"^waited 0 s in vain: the end$"):
        wait_until(lambda: False, what, timeout_s=0)


def test_a_clock_stands_still_until_it_is_moved() -> None:
    clock = Clock(5.0)
    clock.time += 2
    assert (clock(), clock()) == (7.0, 7.0)


def test_the_longer_it_waits_the_less_often_it_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, looks = Clock(0.0), []

    def sleep(seconds: float) -> None:
        clock.time += seconds

    monkeypatch.setattr("time.monotonic", clock)
    monkeypatch.setattr("time.sleep", sleep)
    assert wait_for(lambda: looks.append(clock()), timeout_s=30, every_s=0.005) is None
    assert len([at for at in looks if at < 0.1]) == 20
    assert len([at for at in looks if 10 <= at < 30]) == 80
