"""Checks in threads: first verdict, hangs, ends."""

import threading
import time

import msgspec
import pytest

from agent import settings
from agent.checks.catalogue import CheckSpec, check_spec
from agent.checks.engine import LATE_S, CheckEngine
from agent.checks.health import CheckState, Finding, Severity, Thresholds, Verdict
from agent.processes import command
from tests.agent.probe.http_target import Target
from tests.kit.clock import Clock
from tests.kit.waiting import wait_until

PASSED = Finding(CheckState.PASSED)


def states(engine: CheckEngine) -> list[str]:
    return [str(status.state) for status in engine.statuses()]


@pytest.fixture
def start():
    engines: list[CheckEngine] = []

    def make(*specs: CheckSpec, **more: object) -> CheckEngine:
        engines.append(CheckEngine(specs, **more))
        engines[-1].start()
        return engines[-1]

    yield make
    for engine in engines:
        engine.stop()
        engine.stop()


def configured(**check: object) -> CheckSpec:
    return check_spec(msgspec.convert({"name": "x", **check}, settings.Check))


def test_the_first_verdict_comes_at_once_and_the_word_starting_before(start) -> None:
    told: list[Verdict] = []
    release = threading.Event()

    def wait() -> Finding:
        release.wait(5)
        return PASSED

    engine = start(
        CheckSpec("a", wait, period_s=60), CheckSpec("b", lambda: PASSED, period_s=60), on_verdict=told.append
    )
    wait_until(lambda: states(engine) == ["starting", "passed"])
    assert engine.verdict().reason == "Starting"
    release.set()
    wait_until(lambda: told and told[-1].healthy, "no period, no jitter before the first run")
    assert told[0].reason == "Starting"


def test_a_run_that_does_not_come_back_is_hung_and_the_engine_stays_healthy(start) -> None:
    clock = Clock(1000.0)
    entered, release = threading.Event(), threading.Event()

    def hang() -> Finding:
        entered.set()
        release.wait(10)
        return PASSED

    engine = start(CheckSpec("nfs", hang, timeout_s=1), monotonic=clock)
    assert entered.wait(5)
    clock.time += 1 + LATE_S + 1
    assert (["hung"], "CheckFailed") == (states(engine), engine.verdict().reason)
    clock.time += 10_000
    wait_until(lambda: engine.healthy(clock()), "liveness does not depend on what is measured")
    release.set()
    wait_until(lambda: states(engine) == ["passed"])


def test_a_run_that_comes_back_too_late_has_hung_whatever_it_found(start) -> None:
    clock = Clock(1000.0)
    runs: list[float] = []

    def slow() -> Finding:
        runs.append(clock())
        clock.time += 8.0 if len(runs) > 1 else 0.5
        return Finding(CheckState.PASSED, "fine")

    engine = start(CheckSpec("disk", slow, period_s=0.01, thresholds=Thresholds(1, 2)), monotonic=clock)
    wait_until(lambda: len(runs) > 3)
    assert states(engine) == ["hung"], "not open and closed with every run"
    assert engine.statuses()[0].output == "took 8 s of 1 s: fine"


def test_a_check_that_breaks_is_unknown(start) -> None:
    engine = start(CheckSpec("broken", lambda: 1 / 0, period_s=60))
    wait_until(lambda: states(engine) == ["unknown"])
    assert engine.statuses()[0].output == "ZeroDivisionError: division by zero"
    assert ("broken", CheckState.UNKNOWN, 1) in engine.runs()


def test_an_engine_whose_thread_is_gone_is_not_healthy() -> None:
    assert not CheckEngine([CheckSpec("a", lambda: PASSED)]).healthy(0.0)


def test_stop_kills_commands_that_run(start) -> None:
    engine = start(configured(exec={"command": ["sleep", "60"]}, timeoutSeconds=60))
    wait_until(lambda: engine._workers[0]._running_since is not None)
    begun = time.monotonic()
    engine.stop()
    assert time.monotonic() - begun < 2
    wait_until(lambda: not engine._workers[0].thread.is_alive())


def test_stop_kills_a_command_that_is_only_being_started(start, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, release = threading.Event(), threading.Event()
    popen = command.subprocess.Popen

    def late(*arguments: object, **more: object) -> object:
        entered.set()
        release.wait(5)
        return popen(*arguments, **more)

    monkeypatch.setattr(command.subprocess, "Popen", late)
    engine = start(configured(exec={"command": ["sleep", "60"]}, timeoutSeconds=60))
    assert entered.wait(5)
    threading.Timer(0.1, release.set).start()
    engine.stop()
    wait_until(lambda: not engine._workers[0].thread.is_alive(), timeout_s=2)


@pytest.mark.parametrize(
    ("command", "state", "output"),
    [
        pytest.param(["sh", "-c", "echo fine"], CheckState.PASSED, "fine\n", id="exit 0"),
        pytest.param(["sh", "-c", "echo bad >&2; exit 3"], CheckState.FAILED, "exit code 3: bad\n", id="exit 3"),
        pytest.param(["sh", "-c", "kill -9 $$"], CheckState.FAILED, "signal 9", id="ended by a signal"),
        pytest.param(
            ["/no/such"], CheckState.UNKNOWN, 'exec: "/no/such": executable file not found', id="could not run"
        ),
        pytest.param(["sh", "-c", "echo so far; sleep 9"], CheckState.HUNG, "killed after 1 s; so far", id="hung"),
    ],
)
def test_exec(command: list[str], state: CheckState, output: str) -> None:
    assert Finding(state, output) == configured(exec={"command": command}).run()


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(200, Finding(CheckState.PASSED, "body"), id="200"),
        pytest.param(503, Finding(CheckState.FAILED, "HTTP probe failed with statuscode: 503"), id="503"),
    ],
)
def test_http_get(status: int, expected: Finding) -> None:
    with Target(lambda call: call.reply(status, b"body")) as target:
        assert expected == configured(httpGet={"port": target.port, "httpHeaders": [{"name": "A", "value": "b"}]}).run()
    assert target.calls[0].header("A") == "b"


def test_a_body_that_breaks_off_fails_the_check() -> None:
    with Target(lambda call: call.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")) as target:
        assert Finding(CheckState.FAILED, "unexpected EOF") == configured(httpGet={"port": target.port}).run()


def test_tcp_socket_and_a_host_that_cannot_be() -> None:
    with Target(lambda _call: None) as target:
        assert PASSED == configured(tcpSocket={"port": target.port}).run()
    assert configured(httpGet={"port": 80, "host": "a b"}).run().state is CheckState.UNKNOWN


def test_zeros_are_the_defaults_of_a_probe() -> None:
    zeros = {"periodSeconds": 0, "timeoutSeconds": 0, "successThreshold": 0, "failureThreshold": 0}
    spec = configured(cni={}, severity="warn", **zeros)
    assert (0, 10, 1, Thresholds(1, 3), Severity.WARN) == (
        spec.initial_delay_s,
        spec.period_s,
        spec.timeout_s,
        spec.thresholds,
        spec.severity,
    )
