"""The kernel's news make a check run at once, and not more often than is good."""

import os
import time
from collections.abc import Iterator

import pytest

from agent.checks.catalogue import CheckSpec
from agent.checks.engine import CheckEngine
from agent.checks.schedule import SELDOM_S
from agent.checks.state import CheckState, Finding
from tools.kit.waiting import wait_until

HOUR_S = 3600.0


class Reading:
    """A check that reads a pipe. Its first run opens it."""

    def __init__(self) -> None:
        self.ours, self.theirs = os.pipe2(os.O_NONBLOCK)
        self.opened: int | None = None
        self.read: list[bytes] = []

    def __call__(self) -> Finding:
        self.opened = self.ours
        try:
            self.read.append(os.read(self.ours, 100))
        except BlockingIOError:
            self.read.append(b"")
        return Finding(CheckState.FAILED if self.read[-1] == b"bad" else CheckState.PASSED)

    def descriptor(self) -> int | None:
        return self.opened

    def anew(self) -> None:
        """Another pipe in the place of the old one, under the same number."""
        ours, theirs = os.pipe2(os.O_NONBLOCK)
        os.dup2(ours, self.ours)
        os.dup2(theirs, self.theirs)
        os.close(ours)
        os.close(theirs)

    def close(self) -> None:
        os.close(self.ours)
        os.close(self.theirs)


@pytest.fixture
def check() -> Iterator[Reading]:
    made = Reading()
    yield made
    made.close()


@pytest.fixture
def engine(check: Reading) -> Iterator[CheckEngine]:
    specs = [
        CheckSpec("kernel", check, period_s=HOUR_S, descriptor=check.descriptor),
        CheckSpec("other", lambda: Finding(CheckState.PASSED), period_s=HOUR_S),
    ]
    made = CheckEngine(specs)
    made.start()
    wait_until(lambda: made.node_health().healthy)
    # The second check runs again after half of its period or a whole one, which no test waits for.
    yield made
    made.stop()


def runs(engine: CheckEngine) -> dict[str, int]:
    counted: dict[str, int] = {}
    for name, _, count in engine.runs():
        counted[name] = counted.get(name, 0) + count
    return counted


def test_news_make_that_check_run_and_no_other(engine: CheckEngine, check: Reading) -> None:
    for text in (b"one", b"two", b"three"):
        os.write(check.theirs, text)
        wait_until(lambda text=text: check.read[-1] == text)
    assert {"other": 1} == {name: count for name, count in runs(engine).items() if name == "other"}
    assert [b"", b"one", b"two", b"three"] == [read for read in check.read if read or read is check.read[0]]


def test_what_it_finds_then_counts_as_any_run(engine: CheckEngine, check: Reading) -> None:
    for _ in range(3):
        os.write(check.theirs, b"bad")
        wait_until(lambda: check.read[-1] == b"bad")
        check.read.append(b"")
    wait_until(lambda: not engine.node_health().healthy)


def test_where_news_may_be_of_something_half_done_they_are_one_failure_at_most(check: Reading) -> None:
    """As long as they come its own runs, an hour apart here, count on; so nobody closes a node by replacing files."""
    engine = CheckEngine([CheckSpec("files", check, period_s=HOUR_S, descriptor=check.descriptor, doubts=True)])
    engine.start()
    try:
        wait_until(lambda: engine.node_health().healthy)
        os.write(check.theirs, b"bad")
        wait_until(lambda: check.read[-1] == b"bad")
        for _ in range(30):
            os.write(check.theirs, b"bad")
            time.sleep(0.05)
        assert (1, True) == (check.read.count(b"bad"), engine.node_health().healthy)
    finally:
        engine.stop()


def test_whoever_replaces_files_again_and_again_costs_few_runs(check: Reading) -> None:
    engine = CheckEngine([CheckSpec("files", check, period_s=HOUR_S, descriptor=check.descriptor, doubts=True)])
    engine.start()
    try:
        wait_until(lambda: engine.node_health().healthy)
        began = time.monotonic()
        for _ in range(20):
            os.write(check.theirs, b"x")
            time.sleep(0.05)
        took_s = time.monotonic() - began
        assert 2 <= runs(engine)["files"] <= 3 + took_s // SELDOM_S
    finally:
        engine.stop()


def test_what_was_there_before_it_was_followed_is_told() -> None:
    """Between its read and the moment at which it is followed."""

    class Late(Reading):
        def __call__(self) -> Finding:
            found = super().__call__()
            if len(self.read) == 1:
                os.write(self.theirs, b"meanwhile")
            return found

    late = Late()
    engine = CheckEngine([CheckSpec("kernel", late, period_s=HOUR_S, descriptor=late.descriptor)])
    engine.start()
    try:
        wait_until(lambda: b"meanwhile" in late.read)
    finally:
        engine.stop()
        late.close()


def test_a_descriptor_that_was_opened_anew_is_followed(engine: CheckEngine, check: Reading) -> None:
    os.write(check.theirs, b"one")
    wait_until(lambda: b"one" in check.read)
    check.anew()
    engine._workers[0]._tell()  # its next run
    wait_until(lambda: check.read[-1] == b"")
    os.write(check.theirs, b"two")
    wait_until(lambda: b"two" in check.read)


def test_a_regular_file_leaves_the_check_with_its_period(tmp_path) -> None:
    with (tmp_path / "log").open("w+") as file:
        spec = CheckSpec("kernel", lambda: Finding(CheckState.PASSED), period_s=HOUR_S, descriptor=file.fileno)
        engine = CheckEngine([spec])
        engine.start()
        try:
            wait_until(lambda: engine.node_health().healthy)
        finally:
            engine.stop()


def test_the_engine_stops_while_it_waits_for_news(engine: CheckEngine) -> None:
    engine.stop()
    wait_until(lambda: not any(loop._thread.is_alive() for loop in engine._loops))


def test_a_check_that_a_reload_adds_is_woken_by_the_kernel_too(check: Reading) -> None:
    """The engine began with no check that the kernel wakes."""
    other = CheckSpec("other", lambda: Finding(CheckState.PASSED), period_s=HOUR_S)
    engine = CheckEngine([other])
    engine.start()
    try:
        engine.replace([other, CheckSpec("kernel", check, period_s=HOUR_S, descriptor=check.descriptor)])
        wait_until(lambda: check.opened is not None and runs(engine).get("kernel") == 1)
        os.write(check.theirs, b"news")
        wait_until(lambda: check.read[-1] == b"news")
    finally:
        engine.stop()
