"""What is on disk of a run of ring 3, and who owns the hosts."""

import json
import os

import pytest

from tools.kit.pid import ProcessId
from tools.testbed.hosts.errors import HostsError
from tools.testbed.hosts.state import RunFolder, State


def test_state_survives_being_written_and_read(tmp_path):
    run = RunFolder(tmp_path / "hosts")
    run.path.mkdir()
    state = State(phase="up", since="now", processes={"worker-1": ProcessId(1, 2, "boot")}, cgroups=["/x"])
    run.write(state)
    assert state == run.read()


def test_hosts_that_an_earlier_checkout_has_started_are_found(tmp_path):
    run = RunFolder(tmp_path / "hosts")
    run.path.mkdir()
    raw = {"phase": "up", "processes": {"worker-1": {"pid": 1, "start_ticks": 2, "boot": "boot"}}, "limits": {"x": 1}}
    (run.path / "state.json").write_text(json.dumps(raw))
    assert State(phase="up", processes={"worker-1": ProcessId(1, 2, "boot")}) == run.read()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param('{"phase": "up"', id="cut off"),
        pytest.param('{"phase": "up", "processes": {"a": {"pid": 1}}}', id="a process without a start time"),
        pytest.param("[]", id="a list"),
    ],
)
def test_a_broken_state_file_is_no_run(tmp_path, text):
    run = RunFolder(tmp_path / "hosts")
    run.path.mkdir()
    (run.path / "state.json").write_text(text)
    assert run.read() is None


def test_only_one_holds_the_hosts_and_the_other_is_told_who(tmp_path):
    first, second = RunFolder(tmp_path / "hosts"), RunFolder(tmp_path / "hosts")
    first.lock()
    with pytest.raises(HostsError, match=f"in use by process {os.getpid()}"):
        second.lock()
    first.unlock()
    second.lock()
    second.unlock()
