"""The states of the checks over a restart of the agent: what is kept, what is ignored, and what a full disk costs."""

import json
import logging
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from agent.checks.catalogue import CheckSpec
from agent.checks.engine import CheckEngine
from agent.checks.state import CheckState, Finding, Thresholds
from agent.store.check_states import StateFile
from tools.kit.clock import Clock

PASSED, FAILED = Finding(CheckState.PASSED), Finding(CheckState.FAILED, "gone")
UNKNOWN = Finding(CheckState.UNKNOWN, "no such tool")


class Node:
    """One check, found anew at each turn; `restart` is a SIGKILL and the next agent."""

    def __init__(self, path: Path, thresholds: Thresholds = Thresholds(1, 3)) -> None:  # noqa: B008 - frozen
        self.path, self.clock, self.finding = path, Clock(1_700_000_000.0), PASSED
        self.spec = CheckSpec("cni", lambda: self.finding, period_s=10.0, thresholds=thresholds, key="settings-1")
        self.boot, self.wall_s = "boot-1", 0.0
        self.restart()

    def wall(self) -> float:
        """What the clock on the wall says: steps of it are `wall_s`, of which the time since the boot knows nothing."""
        return self.clock() + self.wall_s

    def restart(self) -> None:
        state = StateFile(
            self.path,
            [self.spec],
            wall=self.wall,
            since_boot=self.clock,
            monotonic=self.clock,
            boot_id=lambda: self.boot,
        )
        self.engine = CheckEngine(
            [self.spec], wall=self.wall, monotonic=self.clock, restored=state.restored(), save=state.save
        )

    def run(self, finding: Finding | None = None) -> None:
        self.finding = finding or self.finding
        self.clock.time += 10.0
        self.engine._workers[0]._turn()
        self.engine._turn()

    @property
    def healthy(self) -> bool:
        return self.engine.node_health().healthy


@pytest.fixture
def node(tmp_path: Path) -> Node:
    made = Node(tmp_path / "state.json")
    made.run()
    return made


def test_a_hundred_restarts_with_a_failure_each_never_close_a_healthy_node(node: Node) -> None:
    seen = [node.healthy]
    for _ in range(100):
        node.restart()
        seen.append(node.healthy)
        node.run(FAILED)
        seen.append(node.healthy)
        node.run(PASSED)
    assert seen == [True] * 201


def test_failures_are_counted_over_restarts(node: Node) -> None:
    seen = []
    for _ in range(3):
        node.restart()
        node.run(FAILED)
        seen.append(node.healthy)
    assert seen == [True, True, False]


def test_a_node_that_was_closed_stays_so_and_since_then(node: Node) -> None:
    for _ in range(3):
        node.run(FAILED)
    since = node.engine.statuses()[0].since
    node.clock.time += 60
    node.restart()
    assert (False, since, "gone") == (node.healthy, node.engine.statuses()[0].since, node.engine.statuses()[0].output)


def test_a_check_whose_tool_has_gone_stays_open_as_before_the_restart(node: Node) -> None:
    for _ in range(5):
        node.run(UNKNOWN)
    assert node.healthy
    node.restart()
    node.run(UNKNOWN)
    assert (True, "CheckUnknown") == (node.healthy, node.engine.node_health().reason)


def test_what_is_kept_closes_at_its_limit_however_often_the_agent_restarts(tmp_path: Path) -> None:
    node = Node(tmp_path / "state.json", Thresholds(1, 3, keep_runs=100))
    node.run(PASSED)
    runs = 0
    while node.healthy:
        node.run(UNKNOWN)
        runs += 1
        if runs % 25 == 0:
            node.restart()
        assert runs < 200
    assert 100 < runs <= 100 + 4 * 11, "each restart forgets a tenth of the limit at most"


def test_an_hours_step_of_the_clock_neither_closes_what_is_kept_nor_ends_its_limit(node: Node) -> None:
    for step in (0.0, 3600.0, -7200.0):
        node.clock.time += step
        for _ in range(5):
            node.run(UNKNOWN)
        assert (True, "CheckUnknown") == (node.healthy, node.engine.node_health().reason)


def test_a_hundred_restarts_of_twenty_checks_under_load_never_flap_the_node(tmp_path: Path, seed: int) -> None:
    """Under load any check may fail or not be run now and then, below its threshold; the agent is killed anywhere."""
    path, clock, found = tmp_path / "state.json", Clock(1_700_000_000.0), [PASSED] * 20
    specs = [CheckSpec(f"check-{n}", lambda n=n: found[n], thresholds=Thresholds(1, 3), key="k") for n in range(20)]

    def started() -> CheckEngine:
        state = StateFile(path, specs, wall=clock, since_boot=clock, monotonic=clock, boot_id=lambda: "boot-1")
        return CheckEngine(specs, wall=clock, monotonic=clock, restored=state.restored(), save=state.save)

    seeded = Random(seed)
    engine, bad, seen = started(), [2] * 20, set()  # the first run of each passes
    for _ in range(100):
        for _ in range(seeded.randrange(1, 6)):
            clock.time += 10.0
            for n, worker in enumerate(engine._workers):
                wrong = bad[n] < 2 and seeded.random() < 0.3
                bad[n] = bad[n] + 1 if wrong else 0
                found[n] = seeded.choice((FAILED, UNKNOWN)) if wrong else PASSED
                worker._turn()
            engine._turn()
            seen.add(engine.node_health().healthy)
        engine = started()
        seen.add(engine.node_health().healthy)
    assert {True} == seen


def test_successes_up_to_a_threshold_are_counted_over_restarts(tmp_path: Path) -> None:
    node = Node(tmp_path / "state.json", Thresholds(3, 1))
    for _ in range(3):
        node.run(FAILED)
    seen = []
    for _ in range(3):
        node.run(PASSED)
        seen.append(node.healthy)
        node.restart()
    assert seen == [False, False, True]


@pytest.mark.parametrize("step_s", [3600.0, -3600.0], ids=["an hour forth", "an hour back"])
def test_a_step_of_the_clock_while_the_agent_is_away_loses_nothing(node: Node, step_s: float) -> None:
    for _ in range(2):
        node.run(FAILED)
    node.wall_s += step_s
    node.restart()
    assert node.healthy, "it passed before the step"
    node.run(FAILED)
    assert not node.healthy, "the third failure, with those from before the step"


@pytest.mark.parametrize("step_s", [3600.0, -3600.0], ids=["an hour forth", "an hour back"])
def test_a_step_of_the_clock_makes_a_fault_neither_older_nor_younger(node: Node, step_s: float) -> None:
    for _ in range(3):
        node.run(FAILED)
    node.clock.time += 60.0
    age_s = node.wall() - node.engine.statuses()[0].since
    node.wall_s += step_s
    node.restart()
    assert age_s == node.wall() - node.engine.statuses()[0].since


@pytest.mark.parametrize("step_s", [0.0, -600.0], ids=["a true clock", "a clock that was set back by as much"])
def test_what_was_left_behind_long_ago_is_not_revived(node: Node, step_s: float) -> None:
    node.clock.time += 601.0
    node.wall_s += step_s
    node.restart()
    assert node.engine.statuses()[0].state is CheckState.STARTING


@pytest.mark.parametrize(
    ("content", "line"),
    [
        pytest.param(b"", "does not parse", id="empty"),
        pytest.param(b'{"version": 1, "boot', "does not parse", id="cut"),
        pytest.param(b"\xff\x00", "does not parse", id="garbage"),
        pytest.param(b"[]", "does not parse", id="another document"),
        pytest.param(b'{"version": 3, "more": 1}', "is of version 3", id="of a later agent"),
        pytest.param({"boot_id": "boot-0"}, "is of another boot", id="of another boot"),
        pytest.param({"since_boot": 1_600_000_000.0}, "was written", id="too old"),
        pytest.param({"since_boot": 1_800_000_000.0}, "was written", id="of the future"),
        pytest.param({"stranger": 1}, "does not parse", id="unknown fields"),
        pytest.param({"written_at": 1e300}, "does not parse", id="of a year that is none"),
        pytest.param({"written_at": -1.0}, "does not parse", id="of before all times"),
        pytest.param({"since_boot": 1e300}, "was written", id="of the end of all times"),
    ],
)
def test_a_file_that_says_nothing_is_ignored_with_one_line(
    node: Node, caplog: pytest.LogCaptureFixture, content: object, line: str
) -> None:
    written = json.loads(node.path.read_bytes())
    node.path.write_bytes(content if isinstance(content, bytes) else json.dumps({**written, **content}).encode())
    with caplog.at_level(logging.INFO):
        node.restart()
    assert [("kept states ignored", True)] == [(r.message, line in r.error) for r in caplog.records]
    assert node.engine.statuses()[0].state is CheckState.STARTING


def test_a_check_with_other_settings_starts_anew(node: Node) -> None:
    node.spec = replace(node.spec, key="settings-2")
    node.restart()
    assert node.engine.statuses()[0].state is CheckState.STARTING


def test_a_full_disk_costs_the_memory_and_one_line(
    node: Node, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = node.path.read_bytes()

    def full(*_of: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk, caplog.at_level(logging.WARNING):
        disk.setattr(Path, "write_bytes", full)
        for finding in (FAILED, PASSED, FAILED, PASSED):
            node.run(finding)
    assert ["states not kept"] == [record.message for record in caplog.records]
    assert (before, True) == (node.path.read_bytes(), node.healthy), "the old file is whole"
    node.run(FAILED)
    assert node.path.read_bytes() != before


def test_a_node_that_has_been_fit_for_hours_stays_open_over_a_restart(node: Node) -> None:
    """What is kept counts for ten minutes from when the agent was last there, not from when something last changed."""
    for _ in range(1000):
        node.run()
    node.restart()
    assert node.healthy


def test_what_does_not_change_is_written_again_each_minute(node: Node) -> None:
    node.run()
    node.path.unlink()
    seen = []
    for _ in range(14):
        node.run()
        seen.append(node.path.exists())
        node.path.unlink(missing_ok=True)
    assert [4, 10] == [number for number, written in enumerate(seen) if written]
