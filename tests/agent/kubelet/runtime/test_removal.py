"""What the process runtime forgets when it is told to: one instance, nothing beside it, and never one that runs."""

import queue
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.kubelet.runtime.process import ProcessRuntime
from agent.kubelet.runtime.records import Records
from agent.wire.containers import ContainerPhase, EventKind
from agent.wire.model import Container
from tests.agent.kubelet.status.builders import make_pod

POD = make_pod("c", "d")


def shell(name: str, script: str) -> Container:
    return Container(name, command=("/bin/sh", "-c", script))


@pytest.fixture
def ends() -> "queue.SimpleQueue[str]":
    return queue.SimpleQueue()


@pytest.fixture
def runtime(tmp_path: Path, ends: "queue.SimpleQueue[str]") -> Iterator[ProcessRuntime]:
    runtime = ProcessRuntime(
        tmp_path,
        "127.21.8.0/24",
        on_event=lambda event: ends.put(event.uid) if event.kind is EventKind.STOPPED else None,
    )
    runtime.start()
    yield runtime
    runtime.stop()


def known(runtime: ProcessRuntime) -> set[tuple[str, int]]:
    return {(c.name, c.restart_count) for c in runtime.pod("uid-1").containers}


def saved(folder: Path) -> set[tuple[str, int]]:
    return {(record.name, record.attempt) for pod in Records(folder).load() for record in pod.instances}


def test_one_instance_is_forgotten_in_memory_and_on_disk(runtime, ends, tmp_path: Path) -> None:
    first = runtime.start_container(POD, shell("c", "exit 1"), 0)
    assert "uid-1" == ends.get(timeout=30)
    runtime.start_container(POD, shell("c", "sleep 600"), 1)
    runtime.start_container(POD, shell("d", "sleep 600"), 0)
    runtime.remove_container(first)
    assert {("c", 1), ("d", 0)} == known(runtime) == saved(tmp_path)


def test_its_log_goes_with_it(runtime, ends, tmp_path: Path) -> None:
    first = runtime.start_container(POD, shell("c", "echo said; exit 1"), 0)
    assert "uid-1" == ends.get(timeout=30)
    log = tmp_path / "pods" / "uid-1" / "c" / "0.log"
    assert "said" in log.read_text()
    runtime.remove_container(first)
    assert not log.exists()


def test_one_that_runs_is_not_forgotten(runtime, tmp_path: Path) -> None:
    running = runtime.start_container(POD, shell("c", "sleep 600"), 0)
    runtime.remove_container(running)
    assert [ContainerPhase.RUNNING] == [c.phase for c in runtime.pod("uid-1").containers]
    assert {("c", 0)} == saved(tmp_path)


@pytest.mark.parametrize("container_id", ["process://nobody", ""], ids=["one of nobody", "no id"])
def test_one_that_is_not_known_is_nothing(runtime, container_id: str) -> None:
    runtime.start_container(POD, shell("c", "sleep 600"), 0)
    runtime.remove_container(container_id)
    assert {("c", 0)} == known(runtime)


def test_twice_is_once(runtime, ends) -> None:
    first = runtime.start_container(POD, shell("c", "exit 1"), 0)
    assert "uid-1" == ends.get(timeout=30)
    runtime.remove_container(first)
    runtime.remove_container(first)
    assert set() == known(runtime)
