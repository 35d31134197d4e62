"""Checks in threads: first health, hangs, breaks, stops."""

import logging
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent import settings
from agent.checks.builtin import tcp_socket
from agent.checks.catalogue import CheckSpec, Kind, check_section, check_spec
from agent.checks.engine import LATE_S, LINE_S, LINES, TURN_S, CheckEngine, _says_the_same
from agent.checks.health import NodeHealth
from agent.checks.schedule import slot
from agent.checks.state import CheckState, CheckStatus, Finding, Severity, Thresholds
from agent.probe.streak import Streak
from agent.probe.ticker import Ticker
from agent.processes import command
from agent.processes.proc import start_ticks
from agent.wire.model import Result
from tools.kit.clock import Clock
from tools.kit.waiting import wait_until

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


def command_check(*words: str) -> CheckSpec:
    """The command has a minute."""
    return check_spec(
        msgspec.convert({"name": "command", "exec": {"command": words}, "timeoutSeconds": 60}, settings.Check)
    )


def test_starting_is_published_first_and_the_health_as_soon_as_all_have_run(start) -> None:
    published: list[NodeHealth] = []
    release = threading.Event()

    def wait() -> Finding:
        release.wait(30)
        return PASSED

    engine = start(
        CheckSpec("a", wait, period_s=60), CheckSpec("b", lambda: PASSED, period_s=60), publish=published.append
    )
    wait_until(lambda: states(engine) == ["starting", "passed"])
    assert engine.node_health().reason == "Starting"
    release.set()
    wait_until(lambda: published and published[-1].healthy, "no period, no jitter before the first run")
    assert published[0].reason == "Starting"


def test_where_every_check_has_run_all_of_it_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a probe finds no engine that is ready and not alive. The thread that starts it may be late."""
    seen: list[bool] = []
    begin = threading.Thread.start

    def start_and_be_late(thread: threading.Thread) -> None:
        begin(thread)
        if thread.name == "check-last":
            wait_until(lambda: engine.node_health().healthy)
            seen.append(engine.healthy(time.monotonic()))

    monkeypatch.setattr(threading.Thread, "start", start_and_be_late)
    engine = CheckEngine([CheckSpec(name, lambda: PASSED, period_s=60) for name in ("first", "last")])
    engine.start()
    engine.stop()
    assert [True] == seen


def test_a_run_that_does_not_come_back_is_hung_and_the_engine_stays_healthy(start) -> None:
    clock = Clock(1000.0)
    entered, release = threading.Event(), threading.Event()

    def hang() -> Finding:
        entered.set()
        release.wait(10)
        return PASSED

    engine = start(CheckSpec("nfs", hang, timeout_s=1), monotonic=clock)
    assert entered.wait(30)
    clock.time += 1 + LATE_S + 1
    assert (["hung"], "CheckFailed") == (states(engine), engine.node_health().reason)
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


def test_a_check_that_breaks_after_it_passed_is_not_left_passed(start) -> None:
    findings: list[object] = [PASSED, None, Finding(CheckState.STARTING), 1 / 3]
    engine = start(CheckSpec("odd", lambda: findings.pop(0) if findings else 1 / 0, period_s=0.01))
    wait_until(lambda: states(engine) == ["unknown"])
    assert (True, "CheckUnknown") == (engine.node_health().healthy, engine.node_health().reason)


def test_a_check_that_cannot_even_be_made_is_unknown_and_made_again(start) -> None:
    tries: list[int] = []

    class Odd:
        def __init__(self, *_: object) -> None:
            tries.append(1)
            if len(tries) < 3:
                raise OSError("no device")

        def __call__(self) -> Finding:
            return PASSED

    kinds = {"tcpSocket": Kind(tcp_socket.Settings, Odd, "")}
    check = msgspec.convert({"name": "odd", "tcpSocket": {"port": 1}}, check_section(kinds))
    engine = start(replace(check_spec(check, kinds), period_s=0.01), CheckSpec("other", lambda: PASSED))
    wait_until(lambda: states(engine) == ["passed", "passed"])
    assert ("odd", CheckState.UNKNOWN, 2) in engine.runs()
    assert len(tries) == 3, "made once"


def test_an_engine_whose_thread_is_gone_is_not_healthy() -> None:
    assert not CheckEngine([CheckSpec("a", lambda: PASSED)]).healthy(0.0)


def test_each_change_is_one_line_of_log_and_a_normal_start_is_no_warning(start, caplog) -> None:
    caplog.set_level(logging.INFO)
    ready = threading.Event()
    found = PASSED
    start(CheckSpec("cni", lambda: ready.wait(5) and found, period_s=0.01, thresholds=Thresholds(1, 1)))
    expected = [("INFO", "node is not healthy yet", "cni: starting", None)]
    for finding, line in [
        (PASSED, ("INFO", "node is healthy", None, None)),
        (Finding(CheckState.FAILED, "no config"), ("WARNING", "node is not healthy", "cni: failed: no config", None)),
        (PASSED, ("INFO", "node is healthy", None, None)),
        (
            Finding(CheckState.UNKNOWN, "no rights"),
            ("WARNING", "check unknown, last result kept", None, "cni: unknown: no rights"),
        ),
    ]:
        wait_until(lambda: len(caplog.records) == len(expected))
        found = finding
        ready.set()
        expected.append(line)
    wait_until(lambda: len(caplog.records) == len(expected))
    facts = [vars(record) for record in caplog.records]
    assert expected == [(f["levelname"], f["message"], f.get("problems"), f.get("notices")) for f in facts]


def test_checks_of_one_period_do_not_run_together_for_ever() -> None:
    """The first runs come at once, the second ones after a part of the period each, then a period apart."""
    clock = Clock(1000.0)
    engine = CheckEngine([CheckSpec(name, lambda: PASSED, period_s=12.0) for name in "abcd"], monotonic=clock)
    assert [3.0, 6.0, 9.0, 12.0] == [worker._turn() for worker in engine._workers]
    second = zip(engine._workers, (1003.0, 1006.0, 1009.0, 1012.0), strict=True)
    assert [12.0, 12.0, 12.0, 12.0] == [_turn_at(worker, clock, at) for worker, at in second]


@pytest.mark.parametrize(
    ("due", "period_s", "expected"),
    [
        pytest.param(1000.0, 1.0, 1000.0, id="one that begins a tenth of a second"),
        pytest.param(1000.04, 1.0, 1000.002, id="its neighbour, a little later"),
        pytest.param(1000.06, 60.0, 1000.003, id="one of another period, beside them"),
        pytest.param(1000.1, 1.0, 1000.1, id="one of the next tenth"),
        pytest.param(1000.06, 0.9, 1000.06, id="one of a short period, when it is due"),
    ],
)
def test_checks_that_are_due_within_a_tenth_of_a_second_begin_soon_after_each_other(
    due: float, period_s: float, expected: float
) -> None:
    assert expected == pytest.approx(slot(due, period_s), abs=1e-9)


def test_hundred_checks_of_a_second_begin_one_after_the_other() -> None:
    clock = Clock(1000.0)
    engine = CheckEngine([CheckSpec(f"c{n}", lambda: PASSED, period_s=1.0) for n in range(100)], monotonic=clock)
    begins = [worker._turn() for worker in engine._workers]
    assert (100, True) == (len({round(at, 6) for at in begins}), sorted(begins) == begins or begins[-1] == 1.0)
    assert all(0.0 < at <= 1.0 for at in begins)


def _turn_at(worker: object, clock: Clock, at: float) -> float:
    clock.time = at
    return worker._turn()


@pytest.mark.parametrize(
    ("period_s", "success", "expected"),
    [
        pytest.param(2.0, 1, [2, 4, 5, 6, 7, 8, 10], id="two failures are needed, then it runs each second"),
        pytest.param(10.0, 1, [10, 20, 21.1, 22.2, 23.3, 24.4, 30], id="whatever its period, each second or so"),
        pytest.param(1.0, 1, [1, 2, 3, 4, 5, 6, 7], id="but never more often than each second"),
        pytest.param(2.0, 2, [2, 4, 5, 6, 7, 8, 10], id="what is counted until it has passed comes by its period"),
    ],
)
def test_a_check_that_has_failed_runs_more_often_until_it_passes(
    period_s: float, success: int, expected: list[float]
) -> None:
    """It fails five times."""
    clock = Clock(0.0)
    findings = iter([Finding(CheckState.FAILED)] * 5 + [PASSED] * 9)
    spec = CheckSpec("a", lambda: next(findings), period_s=period_s, thresholds=Thresholds(success, 2))
    (worker,) = CheckEngine([replace(spec, initial_delay_s=0)], monotonic=clock, random=lambda: 0.0)._workers
    worker._status = CheckStatus("a", Severity.GATE, since=0.0, state=CheckState.PASSED)
    worker._turns._ticker = Ticker(period_s, 0.0)
    ran: list[float] = []
    while len(ran) < len(expected):
        before = sum(worker.runs.values())
        wait_s = worker._turn()
        ran += [clock()] * (sum(worker.runs.values()) - before)
        clock.time += wait_s
    assert expected == pytest.approx(ran)


def test_a_run_that_could_not_be_made_counts_once_in_its_period_however_often_news_make_it_run() -> None:
    """`keep_runs` of them stand for an hour, say: pods that come and go shall not make it ten minutes."""
    clock = Clock(0.0)
    findings = iter([PASSED])
    thresholds = Thresholds(1, 2, keep_runs=3)
    spec = CheckSpec("dns", lambda: next(findings, Finding(CheckState.UNKNOWN)), period_s=10.0, thresholds=thresholds)
    (worker,) = CheckEngine([replace(spec, doubts=True)], monotonic=clock)._workers
    good_until = 0.0
    while clock() < 60.0:
        worker._tell()
        worker._turn()
        good_until = clock() if worker._status.has_passed else good_until
        clock.time += 0.5
    assert (True, 39.5) == (sum(worker.runs.values()) > 20, good_until)


def test_a_check_that_flaps_does_not_fill_the_log(caplog) -> None:
    caplog.set_level(logging.INFO)
    clock = Clock(1000.0)
    findings = [Finding(CheckState.FAILED), PASSED]
    engine = CheckEngine(
        [CheckSpec("a", lambda: findings[int(clock()) % 2], thresholds=Thresholds(1, 1), period_s=1.0)], monotonic=clock
    )
    for _ in range(600):
        engine._workers[0]._turn()
        engine._turn()
        clock.time += 1.0
    assert len(caplog.records) <= LINES + 600 / LINE_S
    assert any(getattr(record, "looks_left_out", 0) > 0 for record in caplog.records), "and says that it left some out"


def check_threads() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("check"))


def test_stop_kills_commands_that_run(start, tmp_path: Path) -> None:
    running = tmp_path / "running"
    engine = start(command_check("sh", "-c", f"touch {running}; exec sleep 60"))
    wait_until(running.exists)
    begun = time.monotonic()
    engine.stop()
    assert time.monotonic() - begun < 2
    wait_until(lambda: check_threads() == [])
    assert states(engine) == ["starting"], "a command that we killed ourselves says nothing about the node"


def test_stop_kills_what_a_command_that_runs_has_detached(start, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    engine = start(command_check("sh", "-c", f"setsid sh -c 'echo $$ > {pid}; exec sleep 600' & exec sleep 60"))
    wait_until(lambda: pid.exists() and pid.read_text())
    detached = int(pid.read_text())
    engine.stop()
    wait_until(lambda: start_ticks(detached) is None, timeout_s=20)


def test_stop_kills_a_command_that_is_only_being_started(start, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, release = threading.Event(), threading.Event()
    spawn = command.spawn

    def late(*arguments: Any) -> object:
        entered.set()
        release.wait(30)
        return spawn(*arguments)

    monkeypatch.setattr(command, "spawn", late)
    engine = start(command_check("sleep", "60"))
    assert entered.wait(30)
    threading.Timer(0.1, release.set).start()
    engine.stop()
    wait_until(lambda: check_threads() == [], timeout_s=30)


def test_of_twenty_checks_one_that_hangs_holds_neither_the_others_nor_the_stop(start) -> None:
    entered, release = threading.Event(), threading.Event()
    published: list[NodeHealth] = []

    def hang() -> Finding:
        entered.set()
        release.wait(30)
        return PASSED

    others = [CheckSpec(f"check-{number}", lambda: PASSED, period_s=0.05) for number in range(19)]
    engine = start(CheckSpec("nfs", hang), *others, publish=published.append)
    assert entered.wait(30)
    wait_until(lambda: states(engine) == ["starting", *["passed"] * 19])
    begun = time.monotonic()
    engine.stop()
    assert time.monotonic() - begun < 2
    wait_until(lambda: check_threads() == ["check-nfs"])
    after_stop = len(published)
    release.set()
    wait_until(lambda: check_threads() == [])
    assert (after_stop, "starting") == (len(published), states(engine)[0]), "nothing is published after the stop"


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        pytest.param({"output": "1"}, {"output": "2"}, True, id="one that passes says something else"),
        pytest.param({"streak": Streak()}, {"streak": Streak(Result.SUCCESS, 9)}, True, id="it passes once more"),
        pytest.param({}, {"state": CheckState.FAILED}, False, id="it fails"),
        pytest.param({}, {"state": CheckState.WARNED}, False, id="it warns"),
        pytest.param({"state": CheckState.UNKNOWN, "kept": True}, {"kept": False}, False, id="it is kept no longer"),
        pytest.param({"state": CheckState.FAILED, "output": "1"}, {"output": "2"}, False, id="it fails in other words"),
        pytest.param({"state": CheckState.FAILED}, {"streak": Streak()}, True, id="it fails as before"),
        pytest.param({}, {"streak": Streak(Result.FAILURE, 1)}, False, id="a failure that is counted"),
        pytest.param(
            {"streak": Streak(Result.FAILURE, 3)},
            {"streak": Streak(Result.FAILURE, 4)},
            True,
            id="one that is not counted any more",
        ),
        pytest.param({}, {"unknowns": 1}, False, id="a run that could not be made is counted"),
    ],
)
def test_after_which_runs_the_engine_is_woken(before: dict[str, Any], now: dict[str, Any], expected: bool) -> None:
    status = replace(CheckStatus("a", Severity.GATE, 0.0, CheckState.PASSED), **before)
    assert expected == _says_the_same(status, replace(status, **now), 3)


@pytest.mark.parametrize("timeout_s", [1.0, 1.99, 2.0, 2.01, 5.0, 60.0])
@pytest.mark.parametrize("begun_at", [0.0, 0.01, 1.0, 1.99])
def test_a_run_that_does_not_come_back_is_said_to_hang_half_a_second_after_it_does_at_the_latest(
    timeout_s: float, begun_at: float
) -> None:
    clock = Clock(0.0)
    published: list[NodeHealth] = []
    spec = CheckSpec("a", lambda: PASSED, timeout_s=timeout_s, thresholds=Thresholds(1, 1))
    engine = CheckEngine([spec], published.append, monotonic=clock)
    (worker,) = engine._workers
    worker._turn()
    pauses = [engine._turn()]
    while published[-1].healthy and len(pauses) < 99:
        clock.time += pauses[-1]
        worker._running_since = begun_at
        pauses.append(engine._turn())
    late_s = clock() - begun_at - timeout_s
    assert (False, True) == (published[-1].healthy, late_s <= LATE_S + 2 * TURN_S), late_s
    assert len(pauses) <= timeout_s / 2 + 8, "and seldom before"
