"""The exec handler: the rows E of kubelet's exec_test.go."""

import pytest

from agent.probe.exec import exec_command
from agent.probe.result import HandlerError, HandlerResult, Outcome
from agent.processes.command import Completed, ExecTimeout, RuntimeUnavailable

SUCCESS, FAILURE = HandlerResult.SUCCESS, HandlerResult.FAILURE
COMMAND = ("cat", "file")
TIMED_OUT = 'command timed out: "cat file" timed out after 1s'


def outcome(answer: tuple[int, bytes, bytes] | Exception) -> Outcome:
    def execute(*asked: object) -> Completed:
        assert asked == ("test://id", COMMAND, 1.0)
        if isinstance(answer, Exception):
            raise answer
        return Completed(*answer)

    return exec_command(execute, "test://id", COMMAND, 1.0)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param((0, b"OK", b""), Outcome(SUCCESS, "OK"), id="E1 no error"),
        pytest.param((0, b"OK", b"noise"), Outcome(SUCCESS, "OKnoise"), id="E2 status 0, whatever it printed"),
        pytest.param((0, b"x" * 11 * 1024, b""), Outcome(SUCCESS, "x" * 10 * 1024), id="E3 11 KiB of output are cut"),
        pytest.param((1, b"Fail", b""), Outcome(FAILURE, "Fail"), id="E5 status 1"),
        pytest.param(ExecTimeout(COMMAND, 1.0), Outcome(FAILURE, TIMED_OUT), id="E6 E8 timed out"),
        pytest.param((1, b"out", b"err"), Outcome(FAILURE, "outerr"), id="E9 stdout, then stderr"),
    ],
)
def test_results(answer: tuple[int, bytes, bytes] | Exception, expected: Outcome) -> None:
    assert expected == outcome(answer)


@pytest.mark.parametrize(
    "error",
    [RuntimeUnavailable("no such container"), OSError(5, "Input/output error")],
    ids=["E4 no runtime", "E4 any other error"],
)
def test_an_error_is_unknown(error: Exception) -> None:
    with pytest.raises(HandlerError) as caught:
        outcome(error)
    assert (HandlerResult.UNKNOWN, str(error)) == (caught.value.result, str(caught.value))
