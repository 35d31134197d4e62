"""What the command lines do alike."""

import os
import signal
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError

import pytest

from component import command
from component.command import Signals


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_an_error_is_one_line_with_the_programs_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.complain("readygate", OSError("a\nb\x1b"), command.EXIT_USAGE) == 2
    assert capsys.readouterr().err == "readygate: a b\n"


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


def test_the_products_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert command.product_version()[0].isdigit()

    def missing(_name: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(command, "version", missing)
    assert command.product_version() == "unknown"
