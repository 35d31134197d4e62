"""Checks that are replaced while the engine runs: what is the same goes on, nothing is closed or opened by it."""

import threading
from collections.abc import Callable, Iterator

import pytest

from agent.checks.catalogue import CheckSpec
from agent.checks.engine import LATE_S, CheckEngine
from agent.checks.state import CheckState, Finding, Thresholds
from tools.kit.clock import Clock
from tools.kit.waiting import wait_until

PASSED, FAILED = Finding(CheckState.PASSED), Finding(CheckState.FAILED, "broken")
HOUR_S = 3600.0
AMPLE_S = 30.0


class Look:
    """One check's runs: counted, and held back while `go` is not set."""

    def __init__(self, finding: Finding = PASSED, *, held: bool = False) -> None:
        self.finding = finding
        self.runs = 0
        self.closed = 0
        self.entered = threading.Event()
        self.go = threading.Event()
        if not held:
            self.go.set()

    def __call__(self) -> Finding:
        self.runs += 1
        self.entered.set()
        self.go.wait(AMPLE_S)
        return self.finding

    def close(self) -> None:
        self.closed += 1

    def spec(self, name: str, key: str = "1", **more: object) -> CheckSpec:
        given = {"period_s": HOUR_S, "timeout_s": HOUR_S, "thresholds": Thresholds(1, 1), **more}
        return CheckSpec(name, self, key=key, close=self.close, **given)  # type: ignore[arg-type]


@pytest.fixture
def start() -> Iterator[Callable[..., CheckEngine]]:
    engines: list[CheckEngine] = []
    looks: list[Look] = []

    def make(*specs: CheckSpec, **more: object) -> CheckEngine:
        looks.extend(spec.run for spec in specs if isinstance(spec.run, Look))
        engines.append(CheckEngine(specs, **more))  # type: ignore[arg-type]
        engines[-1].start()
        return engines[-1]

    yield make
    for look in looks:
        look.go.set()
    for engine in engines:
        engine.stop()


def states(engine: CheckEngine) -> dict[str, str]:
    return {status.name: str(status.state) for status in engine.statuses()}


def wait_for_states(engine: CheckEngine, **expected: str) -> None:
    wait_until(lambda: states(engine) == expected, lambda: str(states(engine)), timeout_s=AMPLE_S)


def test_what_is_the_same_goes_on_what_is_gone_goes_what_is_new_starts(start: Callable[..., CheckEngine]) -> None:
    same, gone, new = Look(), Look(), Look()
    engine = start(same.spec("same"), gone.spec("gone"))
    wait_for_states(engine, same="passed", gone="passed")
    since = engine.statuses()[0]
    engine.replace([new.spec("new"), same.spec("same")])
    wait_for_states(engine, new="passed", same="passed")
    assert (1, 1, 0) == (same.runs, new.runs, same.closed)
    assert since is engine.statuses()[1]
    wait_until(lambda: gone.closed == 1, timeout_s=AMPLE_S)
    assert ["new", "same"] == [name for name, state, _ in engine.runs() if state is CheckState.PASSED]


def test_a_new_check_closes_nothing_before_its_first_verdict_and_then_at_once(
    start: Callable[..., CheckEngine],
) -> None:
    new = Look(FAILED, held=True)
    engine = start(Look().spec("old"))
    wait_for_states(engine, old="passed")
    engine.replace([Look().spec("old"), new.spec("new")])
    assert new.entered.wait(AMPLE_S)
    wait_for_states(engine, old="passed", new="starting")
    assert engine.node_health().healthy
    new.go.set()
    wait_for_states(engine, old="passed", new="failed")
    assert not engine.node_health().healthy


def test_a_new_check_that_hangs_closes(start: Callable[..., CheckEngine]) -> None:
    clock, new = Clock(1000.0), Look(held=True)
    engine = start(Look().spec("old"), monotonic=clock)
    wait_for_states(engine, old="passed")
    engine.replace([Look().spec("old"), new.spec("new", timeout_s=1.0)])
    assert new.entered.wait(AMPLE_S)
    clock.time += 1 + LATE_S + 1
    wait_for_states(engine, old="passed", new="hung")
    assert not engine.node_health().healthy
    new.go.set()


@pytest.mark.parametrize(
    ("before", "after", "healthy"), [(PASSED, FAILED, True), (FAILED, PASSED, False)], ids=["open", "closed"]
)
def test_a_check_with_other_settings_has_the_word_of_the_one_before_it_until_it_has_its_own(
    start: Callable[..., CheckEngine], before: Finding, after: Finding, healthy: bool
) -> None:
    changed = Look(after, held=True)
    engine = start(Look(before).spec("disk"))
    wait_for_states(engine, disk=str(before.state))
    engine.replace([changed.spec("disk", "2")])
    assert changed.entered.wait(AMPLE_S)
    wait_until(lambda: engine._workers[0].spec.run is changed, timeout_s=AMPLE_S)
    assert (str(before.state), healthy) == (states(engine)["disk"], engine.node_health().healthy)
    changed.go.set()
    wait_for_states(engine, disk=str(after.state))
    assert healthy is not engine.node_health().healthy


def test_no_second_run_beside_one_that_hangs_however_often_it_is_changed(start: Callable[..., CheckEngine]) -> None:
    clock, stuck, second, third = Clock(1000.0), Look(held=True), Look(), Look()
    engine = start(stuck.spec("disk", timeout_s=1.0), monotonic=clock)
    assert stuck.entered.wait(AMPLE_S)
    clock.time += 1 + LATE_S + 1
    for number, look in enumerate((second, third), start=2):
        engine.replace([look.spec("disk", str(number))])
        wait_until(lambda look=look: engine._workers[0].spec.run is look, timeout_s=AMPLE_S)  # type: ignore[misc]
        assert ({"disk": "hung"}, False) == (states(engine), engine.node_health().healthy)
    assert (0, 0) == (second.runs, third.runs)
    stuck.go.set()
    wait_for_states(engine, disk="passed")
    assert (0, 1) == (second.runs, third.runs)
    assert engine.healthy(clock())


def test_a_check_that_closed_the_node_and_is_renamed_does_not_open_it(start: Callable[..., CheckEngine]) -> None:
    renamed = Look(held=True)
    engine = start(Look(FAILED).spec("disk"))
    wait_for_states(engine, disk="failed")
    engine.replace([renamed.spec("root-disk")])
    assert renamed.entered.wait(AMPLE_S)
    wait_for_states(engine, **{"root-disk": "starting"})
    assert not engine.node_health().healthy
    renamed.go.set()
    wait_until(lambda: engine.node_health().healthy, timeout_s=AMPLE_S)


def test_a_check_that_closed_the_node_and_is_taken_out_opens_it(start: Callable[..., CheckEngine]) -> None:
    fine = Look()
    engine = start(fine.spec("cni"), Look(FAILED).spec("disk"))
    wait_for_states(engine, cni="passed", disk="failed")
    engine.replace([fine.spec("cni")])
    wait_for_states(engine, cni="passed")
    assert engine.node_health().healthy


def test_without_threads_the_old_checks_go_on(
    start: Callable[..., CheckEngine], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begin = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if thread.name == "check-second":
            raise RuntimeError("can't start new thread")
        begin(thread)

    old = Look()
    engine = start(old.spec("old"))
    wait_for_states(engine, old="passed")
    monkeypatch.setattr(threading.Thread, "start", refused)
    engine.replace([Look().spec("first"), Look().spec("second")])
    wait_until(lambda: "checks not replaced, the old ones go on" in caplog.text, timeout_s=AMPLE_S)
    assert {"old": "passed"} == states(engine)


def test_the_first_check_that_the_kernel_tells_and_the_states_that_are_kept(start: Callable[..., CheckEngine]) -> None:
    followed: list[list[str]] = []
    saved: list[set[str]] = []
    engine = start(
        Look().spec("old"),
        follow=lambda specs: followed.append([spec.name for spec in specs]),
        save=lambda statuses: saved.append({status.name for status in statuses}),
    )
    wait_for_states(engine, old="passed")
    engine.replace([Look().spec("kernel", descriptor=lambda: None)])
    wait_for_states(engine, kernel="passed")
    wait_until(lambda: saved[-1] == {"kernel"}, timeout_s=AMPLE_S)
    assert [["kernel"]] == followed
    assert "check-events" in {thread.name for thread in threading.enumerate()}
