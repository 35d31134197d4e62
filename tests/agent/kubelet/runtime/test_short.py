"""The process runtime where descriptors have run out; the whole agent: tests/scripted/test_limits_of_modes.py."""

import errno
import queue
from pathlib import Path

import pytest

from agent.kubelet.runtime.process import ProcessRuntime
from agent.wire.containers import EventKind
from agent.wire.model import Container
from tests.agent.kubelet.status.builders import make_pod


def test_a_container_is_started_although_it_cannot_be_read_which_boot_this_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> str:
        raise OSError(errno.EMFILE, "Too many open files")

    ends: queue.SimpleQueue[str] = queue.SimpleQueue()
    runtime = ProcessRuntime(
        tmp_path,
        "127.21.9.0/24",
        on_event=lambda event: ends.put(event.uid) if event.kind is EventKind.STOPPED else None,
    )
    runtime.start()
    monkeypatch.setattr("agent.kubelet.runtime.process.boot_id", refused)
    runtime.start_container(make_pod("c"), Container("c", command=("true",)), 0)
    assert "uid-1" == ends.get(timeout=30)
    assert [0] == [container.exit_code for container in runtime.pod("uid-1").containers]
    runtime.stop()
