"""A signal ends the waiting."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from agent.modes.signals import Signals


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    signal.set_wakeup_fd(-1)
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


ANOTHER_THREAD = """
import os, signal, threading
from agent.modes.signals import Signals
signals = Signals()
threading.Thread(target=threading.Event().wait, daemon=True).start()  # takes what the main thread does not
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGTERM]).start()
signals.wait()
print(signals.first)
"""


def test_a_signal_that_the_kernel_gives_to_another_thread_ends_the_waiting() -> None:
    said = subprocess.run(
        [sys.executable, "-c", ANOTHER_THREAD], capture_output=True, text=True, timeout=60, check=False
    )
    assert ("15\n", 0) == (said.stdout, said.returncode)
