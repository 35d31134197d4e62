"""Who owns the hosts, and what a process id is worth."""

import os
import subprocess
import sys

import pytest

from tests.testbed.hosts_cache import HostsError, cached
from tests.testbed.hosts_machine import Process
from tests.testbed.hosts_state import RunFolder, State
from tests.testbed.hosts_wheels import locked

_LOCK = """\
alpha==1.0 \\
    --hash=sha256:aa \\
    --hash=sha256:ab
    # via readygate
beta-x==2.0 ; sys_platform == 'linux' \\
    --hash=sha256:bb
gamma==3 \\
    --hash=sha256:cc
"""


def test_a_process_is_alive_while_it_runs_and_never_after():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = Process.of(child.pid)
    assert process.alive()
    child.stdin.close()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not process.alive(), "a zombie"
    child.wait()
    assert not process.alive()


def test_a_process_id_used_again_is_another_process():
    mine = Process.of(os.getpid())
    assert not Process(mine.pid, mine.start - 1).alive()


def test_state_survives_being_written_and_read(tmp_path):
    run = RunFolder(tmp_path / "hosts")
    run.path.mkdir()
    state = State(phase="up", since="now", processes={"worker-1": Process(1, 2)}, cgroups=["/x"], limits={"fs/x": 128})
    run.write(state)
    assert state == run.read()


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


def test_a_build_that_failed_is_not_found_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def fails(folder):
        (folder / "half").touch()
        raise HostsError("cause")

    with pytest.raises(HostsError):
        cached("thing", "k", fails, print)
    whole = cached("thing", "k", lambda folder: (folder / "whole").touch(), print)
    assert [path.name for path in whole.iterdir()] == ["whole"]


def test_the_image_takes_only_its_own_part_of_the_lock_file():
    expected = "alpha==1.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:ab\n"
    assert expected == locked({"alpha"}, _LOCK)
    assert locked({"beta-x", "gamma"}, _LOCK).startswith("beta-x==2.0 ; sys_platform == 'linux' \\\n")


def test_a_dependency_outside_the_lock_file_stops_the_build():
    with pytest.raises(HostsError, match="lacks delta: run make lock"):
        locked({"delta"}, _LOCK)
