"""What a node does to its agent: a disk that is full at each write, a clock that jumps by an hour."""

import errno
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.kubelet.node.lease import LeaseKeeper
from agent.kubelet.node.registration import NodeReporter
from agent.kubelet.runtime.base import StartError
from agent.kubelet.runtime.process import ProcessRuntime
from agent.wire.containers import ContainerPhase
from component.lifecycle import StartFailed
from kube.client import Client
from tests.agent.kubelet.node.test_facts import FACTS
from tests.agent.kubelet.runtime.test_process import CIDR, POD, shell
from tools.fakes.api_server import FakeApiServer
from tools.kit.clock import Clock
from tools.kit.waiting import wait_until

HOUR_S = 3600.0
WALL = 1_700_000_000.0


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[ProcessRuntime]:
    made = ProcessRuntime(tmp_path, CIDR, on_event=lambda _event: None)
    yield made
    made.stop()


def full(*_of: object, **_more: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, bool]]:
    """Of each line its text, and whether it names the cause without a traceback."""
    return [
        (record.message, "No space left on device" in record.error and record.exc_info is None)
        for record in caplog.records
    ]


def test_a_disk_that_is_full_at_the_start_ends_it_with_one_line(
    runtime: ProcessRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StartFailed, match=r"^kubelet.rootDir is not usable: .*No space left.*; give a folder"):
        runtime.start()


def test_a_record_that_cannot_be_written_is_told_and_its_container_runs(
    runtime: ProcessRuntime, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    runtime.start()
    with monkeypatch.context() as disk, caplog.at_level(logging.WARNING):
        disk.setattr(Path, "write_bytes", full)
        runtime.start_container(POD, shell("exit 3"), 0)
        wait_until(lambda: runtime.pod(POD.uid).containers[0].phase is ContainerPhase.EXITED, timeout_s=30)
    assert 3 == runtime.pod(POD.uid).containers[0].exit_code, "nothing is lost that was known"
    assert [("container state not saved", True)] == told(caplog), "of three writes"


@pytest.mark.parametrize("failing", range(4))
def test_what_is_known_of_a_pod_outlives_a_write_of_its_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """Of the sandbox, of an instance before it starts, once it has, and when it has ended."""
    writes, write = iter(range(99)), Path.write_bytes

    def sometimes(path: Path, data: bytes) -> int:
        return full() if next(writes) == failing and path.name != ".writable" else write(path, data)

    first = ProcessRuntime(tmp_path, CIDR, on_event=lambda _event: None)
    first.start()
    monkeypatch.setattr(Path, "write_bytes", sometimes)
    for attempt in range(2):
        first.start_container(POD, shell("exit 3"), attempt)
        wait_until(lambda: not first.pod(POD.uid).running, timeout_s=30)
    first.stop()
    following = ProcessRuntime(tmp_path, CIDR, on_event=lambda _event: None)
    following.start()
    found = following.pod(POD.uid).containers
    following.stop()
    assert [(0, 3), (1, 3)] == sorted((one.restart_count, one.exit_code) for one in found)


def test_a_container_whose_output_has_no_file_says_why_it_was_not_started(
    runtime: ProcessRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime.start()
    opened = Path.open
    monkeypatch.setattr(Path, "open", lambda *of, **more: full() if "ab" in of else opened(*of, **more))
    with pytest.raises(StartError, match=r"(?i)no space left on device"):
        runtime.start_container(POD, shell("exit 0"), 0)


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer() as api:
        yield api


@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S], ids=["an hour forth", "an hour back"])
def test_a_step_of_the_clock_neither_changes_the_node_nor_stops_its_lease(api: FakeApiServer, step_s: float) -> None:
    client, wall, monotonic = Client(api.connection(), user_agent="test", attempts=1), Clock(WALL), Clock(100.0)
    try:
        reporter = NodeReporter(client, FACTS, list, update_s=10, wall=wall, monotonic=monotonic, random=lambda: 0.5)
        lease = LeaseKeeper(client, FACTS.name, duration_s=40, wall=wall, monotonic=monotonic, random=lambda: 0.5)
        reporter.turn()
        lease.turn()
        since = [c["lastTransitionTime"] for c in (api.get("Node", FACTS.name) or {})["status"]["conditions"]]
        wall.time += step_s
        assert reporter.report() is False, "it is as it was"
        assert lease.turn() == pytest.approx(10.2), "one renewal, and the next after a period"
        monotonic.time += 300
        assert reporter.report() is True, "five minutes are those that have gone by"
        assert since == [c["lastTransitionTime"] for c in (api.get("Node", FACTS.name) or {})["status"]["conditions"]]
    finally:
        client.close()
