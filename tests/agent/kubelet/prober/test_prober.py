"""From spec to result, with retries and events: the rows P of kubelet's prober_test.go, for every probe type."""

from collections.abc import Sequence

import pytest

from agent.kubelet.prober import prober
from agent.kubelet.prober.prober import Prober
from agent.probe.result import HandlerError, HandlerResult, Outcome, ProbeErrored
from agent.processes.command import Completed, ExecTimeout, RuntimeUnavailable
from agent.wire.model import EnvVar, ExecAction, PodStatus, ProbeType, Result
from tests.agent.kubelet.prober.builders import ALL_TYPES, ID, NAME, F, S, make_container, make_pod, make_probe

WHERE = f"testPod_default(pOd_UiD):{NAME}"


class Runtime:
    def __init__(self, answer: tuple[int, bytes, bytes] | Exception = (0, b"", b"")) -> None:
        self.answer = answer
        self.commands: list[Sequence[str]] = []

    def __call__(self, container_id: str, command: Sequence[str], timeout_s: float) -> Completed:
        assert (container_id, timeout_s) == (ID, 1.0)
        self.commands.append(command)
        if isinstance(self.answer, Exception):
            raise self.answer
        return Completed(*self.answer)


def probe_once(
    probe_type: ProbeType,
    runtime: Runtime,
    action: object = ExecAction(("sh",)),
    **container: object,
) -> tuple[Result | str, list[tuple[str, str]]]:
    """The result, or the text of the error, and the events (reason, message)."""
    events: list[tuple[str, str]] = []
    prober = Prober(runtime, lambda _pod, _container, _type, reason, message: events.append((reason, message)))
    made = make_container(probe_type, probe=make_probe(action), **container)
    try:
        return prober.probe(probe_type, make_pod(made), PodStatus(), made, ID), events
    except ProbeErrored as e:
        return str(e), events


@pytest.mark.parametrize(
    ("action", "answer", "result", "events", "attempts"),
    [
        pytest.param(
            None,
            None,
            f"missing probe handler for {WHERE}",
            [("Unhealthy", f"{{}} probe errored and resulted in unknown state: missing probe handler for {WHERE}")],
            0,
            id="P2 no handler",
        ),
        pytest.param(
            ExecAction(("sh",)), (1, b"out", b"err"), F, [("Unhealthy", "{} probe failed: outerr")], 1, id="P3 failure"
        ),
        pytest.param(ExecAction(("sh",)), (0, b"", b""), S, [], 1, id="P4 success"),
        pytest.param(
            ExecAction(("sh",)),
            RuntimeUnavailable("no such container"),
            "no such container",
            [("Unhealthy", "{} probe errored and resulted in unknown state: no such container")],
            3,
            id="P6 P29 an error, after three attempts",
        ),
        pytest.param(
            ExecAction(("sleep", "9")),
            ExecTimeout(["sleep", "9"], 1.0),
            F,
            [("Unhealthy", '{} probe failed: command timed out: "sleep 9" timed out after 1s')],
            1,
            id="E6 a timeout is a failure",
        ),
        pytest.param(
            ExecAction(("/bin/bash", "-c", "some script")), (0, b"", b""), S, [], 1, id="P24 passed on unchanged"
        ),
    ],
)
@pytest.mark.parametrize("probe_type", ALL_TYPES)
def test_probe(
    probe_type: ProbeType, action: object, answer: object, result: object, events: list[tuple[str, str]], attempts: int
) -> None:
    runtime = Runtime(answer)
    expected = (result, [(reason, text.format(probe_type)) for reason, text in events])
    assert expected == probe_once(probe_type, runtime, action)
    assert attempts == len(runtime.commands)


@pytest.mark.parametrize("probe_type", ALL_TYPES)
def test_p1_a_probe_that_is_not_there_succeeds(probe_type: ProbeType) -> None:
    assert Prober(Runtime()).probe(probe_type, make_pod(), PodStatus(), make_container(), ID) is S


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        pytest.param(Outcome(HandlerResult.UNKNOWN), (F, []), id="P5 unknown without an error is a failure"),
        pytest.param(
            Outcome(HandlerResult.WARNING, "w"),
            (S, [("ProbeWarning", "Readiness probe warning: w")]),
            id="P7 a warning is a success with an event",
        ),
    ],
)
def test_results_exec_never_gives(monkeypatch: pytest.MonkeyPatch, outcome: Outcome, expected: object) -> None:
    monkeypatch.setattr(prober, "exec_command", lambda *_arguments: outcome)
    assert expected == probe_once(ProbeType.READINESS, Runtime())


def test_an_attempt_that_recovers_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = [HandlerError("once"), HandlerError("twice"), Outcome(HandlerResult.SUCCESS)]

    def attempt(*_arguments: object) -> Outcome:
        outcome = outcomes.pop(0)
        if isinstance(outcome, HandlerError):
            raise outcome
        return outcome

    monkeypatch.setattr(prober, "exec_command", attempt)
    assert (S, []) == probe_once(ProbeType.READINESS, Runtime())


def test_p23_an_unknown_probe_type_errors() -> None:
    with pytest.raises(ProbeErrored, match="unknown probe type"):
        Prober(Runtime()).probe("666", make_pod(), PodStatus(), make_container(), ID)


def test_p25_the_literal_environment_is_put_into_the_command() -> None:
    runtime = Runtime()
    action = ExecAction(("/bin/bash", "-c", "some $(A) $(B)"))
    assert (S, []) == probe_once(ProbeType.LIVENESS, runtime, action, env=(EnvVar("A", "script"),))
    assert [("/bin/bash", "-c", "some script $(B)")] == runtime.commands


def test_e3_e9_output_is_stdout_then_stderr_and_cut() -> None:
    _, events = probe_once(ProbeType.READINESS, Runtime((1, b"o" * 9000, b"e" * 9000)))
    assert events[0][1].removeprefix("Readiness probe failed: ") == "o" * 9000 + "e" * 1240
