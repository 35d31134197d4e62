"""A signal ends the waiting."""

import os
import signal
from collections.abc import Iterator

import pytest

from agent.signals import Signals


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        pytest.param([signal.SIGTERM], signal.SIGTERM, id="SIGTERM"),
        pytest.param([signal.SIGINT, signal.SIGTERM], signal.SIGINT, id="the first of two"),
    ],
)
def test_a_signal_ends_the_waiting_also_one_that_came_before_it(numbers: list[int], expected: int) -> None:
    signals = Signals()
    assert signals.first is None
    for number in numbers:
        os.kill(os.getpid(), number)
    signals.wait()
    assert expected == signals.first
