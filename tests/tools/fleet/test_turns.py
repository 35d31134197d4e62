"""Turns of many nodes in few threads."""

import threading
import time
from collections.abc import Iterator

import pytest

from tools.fleet.turns import Turns
from tools.kit.waiting import wait_until


@pytest.fixture
def turns() -> Iterator[Turns]:
    made = Turns(3)
    made.start()
    yield made
    made.stop(wait_s=5.0)


def test_a_turn_comes_again_after_the_seconds_that_it_returned(turns: Turns) -> None:
    times: list[float] = []

    def turn() -> float:
        times.append(time.monotonic())
        return 0.05 if len(times) < 3 else 1000.0

    turns.add(turn, time.monotonic())
    wait_until(lambda: len(times) == 3, "three turns")
    assert times[2] - times[0] >= 0.1


def test_a_turn_that_is_due_earlier_does_not_wait_for_the_one_before_it(turns: Turns) -> None:
    done = threading.Event()

    def turn() -> float:
        done.set()
        return 1000.0

    turns.add(lambda: 1000.0, time.monotonic() + 1000)
    turns.add(turn, time.monotonic())
    assert done.wait(30)


def test_turns_that_wait_do_not_keep_others_from_running(turns: Turns) -> None:
    """As many as there are threads run at once."""
    together = threading.Barrier(3)

    def turn() -> float:
        together.wait(30)
        return 1000.0

    for _ in range(3):
        turns.add(turn, time.monotonic())
    wait_until(lambda: together.n_waiting == 0 and not together.broken, "all three ran")


def test_turns_that_were_never_started_can_be_stopped() -> None:
    Turns(2).stop(wait_s=1.0)


def test_a_turn_that_fails_comes_again_and_ends_no_other() -> None:
    failures: list[Exception] = []
    turns = Turns(1, failed=failures.append)
    done = threading.Event()

    def broken() -> float:
        raise ValueError("no")

    def sound() -> float:
        done.set()
        return 1000.0

    turns.add(broken, time.monotonic())
    turns.add(sound, time.monotonic())
    turns.start()
    assert done.wait(30)
    turns.stop(wait_s=5.0)
    assert isinstance(failures[0], ValueError)
