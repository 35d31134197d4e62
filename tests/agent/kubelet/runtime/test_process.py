"""The process runtime with real processes: short ones, ended by their own ids."""

import os
import queue
import selectors
import shutil
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from agent.kubelet.runtime.base import StartError
from agent.kubelet.runtime.instances import launch
from agent.kubelet.runtime.output import Output
from agent.kubelet.runtime.process import ProcessRuntime
from agent.processes.command import RuntimeUnavailable
from agent.processes.proc import ENV_CONTAINER_ID, end_container, start_ticks
from agent.wire.containers import ContainerPhase, EventKind
from agent.wire.model import Container, EnvVar
from component.lifecycle import StartFailed
from tests.agent.kubelet.status.builders import make_pod
from tools.kit.pid import find_processes
from tools.kit.waiting import wait_until

POD = make_pod("c")
CIDR = "127.21.7.0/24"


class Ends(queue.SimpleQueue):
    """The pods of containers that have ended."""

    def take(self, event):
        if event.kind is EventKind.STOPPED:
            self.put(event.uid)

    def wait(self, uid="uid-1", timeout_s=30.0):
        assert self.get(timeout=timeout_s) == uid


@pytest.fixture
def ends():
    return Ends()


@pytest.fixture
def runtime(tmp_path, ends):
    runtime = ProcessRuntime(tmp_path, CIDR, on_event=ends.take, log_limit_bytes=1000)
    runtime.start()
    yield runtime
    runtime.stop()


def shell(script, **fields):
    return Container("c", command=("/bin/sh", "-c", script), **fields)


def only(runtime):
    containers = runtime.pod("uid-1").containers
    assert len(containers) == 1
    return containers[0]


def log_text(tmp_path: Path, attempt=0):
    return (tmp_path / "pods" / "uid-1" / "c" / f"{attempt}.log").read_text()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("exit 0", (0, "Completed"), id="exit 0"),
        pytest.param("exit 3", (3, "Error"), id="exit 3"),
        pytest.param("kill -9 $$$$", (137, "Error"), id="a signal"),
    ],
)
def test_how_a_container_ends(runtime, ends, script, expected):
    runtime.start_container(POD, shell(script), 0)
    ends.wait()
    ended = only(runtime)
    assert (ContainerPhase.EXITED, *expected) == (ended.phase, ended.exit_code, ended.reason)
    assert ended.started_at <= ended.finished_at


def test_output_goes_to_a_log(runtime, ends, tmp_path):
    runtime.start_container(POD, shell("echo out; echo err >&2; echo $READYGATE_POD_IP $X", env=(EnvVar("X", "1"),)), 0)
    ends.wait()
    assert "out\nerr\n127.21.7.2 1\n" == log_text(tmp_path)


def test_a_log_does_not_grow_beyond_its_limit(runtime, ends, tmp_path):
    runtime.start_container(POD, shell("i=0; while [ $i -lt 400 ]; do echo line $i; i=$((i+1)); done"), 0)
    ends.wait()
    folder = tmp_path / "pods" / "uid-1" / "c"
    assert {"0.json", "0.log", "0.log.1"} == {path.name for path in folder.iterdir()}
    assert all(path.stat().st_size <= max(1000, 65536) for path in folder.glob("0.log*"))


def test_a_container_without_a_command_pauses_until_it_is_stopped(runtime, ends):
    cid = runtime.start_container(POD, Container("c"), 0)
    assert only(runtime).phase is ContainerPhase.RUNNING
    runtime.stop_container(cid, 5)
    ends.wait()
    assert only(runtime).exit_code == 143


def test_a_container_that_ignores_sigterm_is_killed_after_its_grace(runtime, ends, tmp_path):
    cid = runtime.start_container(POD, shell("trap '' TERM; echo ready; while :; do sleep 0.05; done"), 0)
    wait_until(lambda: "ready" in log_text(tmp_path), timeout_s=30)
    started = time.monotonic()
    runtime.stop_container(cid, 0.3)
    ends.wait()
    assert time.monotonic() - started >= 0.25
    assert only(runtime).exit_code == 137


def test_a_shorter_grace_counts(runtime, ends, tmp_path):
    cid = runtime.start_container(POD, shell("trap '' TERM; echo ready; while :; do sleep 0.05; done"), 0)
    wait_until(lambda: "ready" in log_text(tmp_path), timeout_s=30)
    runtime.stop_container(cid, 60)
    runtime.stop_container(cid, 0)
    ends.wait()


def test_processes_it_started_end_with_it_also_those_in_sessions_of_their_own(runtime, ends, tmp_path):
    script = "setsid sleep 300 & sleep 300 & echo $! ; wait"
    cid = runtime.start_container(POD, shell(script), 0)
    wait_until(lambda: log_text(tmp_path).strip().isdigit() and len(marked(cid)) >= 3, timeout_s=30)
    runtime.stop_container(cid, 0)
    ends.wait()
    assert marked(cid) == []


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        pytest.param(
            Container("c", command=("/no/such/program",)),
            'exec: "/no/such/program": executable file not found',
            id="no such program",
        ),
        pytest.param(
            Container("c", command=("/etc/passwd",)), 'exec: "/etc/passwd": Permission denied', id="not executable"
        ),
        pytest.param(
            shell("true", working_dir="/no/such/folder"),
            "working directory /no/such/folder does not exist",
            id="no such folder",
        ),
        pytest.param(
            Container("c", command=("/bin/echo", "a\0b")), 'exec: "/bin/echo": embedded null byte', id="a NUL in it"
        ),
    ],
)
def test_a_container_that_cannot_start(runtime, container, expected):
    with pytest.raises(StartError) as caught:
        runtime.start_container(POD, container, 0)
    assert ("RunContainerError", expected) == (caught.value.reason, str(caught.value))
    ended = only(runtime)
    assert (ContainerPhase.EXITED, 128, "StartError") == (ended.phase, ended.exit_code, ended.reason)


def test_the_last_two_instances_are_kept(runtime, ends):
    for attempt in range(3):
        runtime.start_container(POD, shell(f"exit {attempt}"), attempt)
        ends.wait()
    assert [(1, 1), (2, 2)] == [(c.restart_count, c.exit_code) for c in runtime.pod("uid-1").containers]


def test_a_pod_keeps_its_address_and_gives_it_back(runtime, tmp_path):
    assert "127.21.7.2" == runtime.prepare_pod(POD) == runtime.prepare_pod(POD)
    other = make_pod(uid="uid-2")
    assert "127.21.7.3" == runtime.prepare_pod(other)
    runtime.remove_pod("uid-1")
    assert {"uid-2"} == runtime.known_pods()
    assert not (tmp_path / "pods" / "uid-1").exists()


def test_a_host_network_pod_has_the_nodes_address(runtime):
    pod = make_pod(host_network=True)
    assert runtime.prepare_pod(pod) == "127.21.7.1"
    assert [True] == [s.host_network and s.ip is None for s in runtime.pod("uid-1").sandboxes]


def test_a_command_runs_with_the_environment_of_its_container(runtime, ends):
    cid = runtime.start_container(POD, shell("sleep 60", env=(EnvVar("X", "1"),)), 0)
    done = runtime.exec(cid, ["/bin/sh", "-c", "echo $X; pwd; exit 3"], 5.0)
    assert (3, b"1\n/\n") == (done.exit_code, done.stdout)
    runtime.stop_container(cid, 0)
    ends.wait()
    with pytest.raises(RuntimeUnavailable, match=f"container {cid} does not run"):
        runtime.exec(cid, ["true"], 5.0)


def test_a_spec_cannot_hide_a_container_by_overwriting_its_mark(runtime, ends):
    cid = runtime.start_container(POD, shell("setsid sleep 300 & wait", env=(EnvVar(ENV_CONTAINER_ID, "other"),)), 0)
    wait_until(lambda: len(marked(cid)) >= 2)
    runtime.stop_container(cid, 0)
    ends.wait()
    assert marked(cid) == []


def test_stop_ends_everything_and_may_be_called_twice(tmp_path, ends):
    runtime = ProcessRuntime(tmp_path, CIDR, on_event=ends.take)
    runtime.start()
    cids = [
        runtime.start_container(make_pod("c", uid=f"uid-{i}"), shell("trap '' TERM; while :; do sleep 0.05; done"), 0)
        for i in range(3)
    ]
    runtime.stop()
    runtime.stop()
    assert [[], [], []] == [marked(cid) for cid in cids]


def test_many_stubborn_containers_are_ended_together(tmp_path, ends):
    runtime = ProcessRuntime(tmp_path, CIDR, on_event=ends.take)
    runtime.start()
    stubborn = shell("trap '' TERM; setsid sleep 300 & while :; do sleep 60; done")
    cids = [runtime.start_container(make_pod("c", uid=f"uid-{i}"), stubborn, 0) for i in range(100)]
    runtime.stop()
    assert [cid for cid in cids if marked(cid)] == []


def test_what_a_killed_agent_left_is_ended_and_only_that(tmp_path, ends):
    first = ProcessRuntime(tmp_path, CIDR, on_event=ends.take)
    first.start()
    cid = first.start_container(POD, shell("setsid sleep 300 & sleep 300; true"), 0)
    wait_until(lambda: len(marked(cid)) >= 3, timeout_s=30)
    bystander = subprocess.Popen(["sleep", "300"])
    try:
        first._loop.stop()  # as good as dead: nobody asks it, and it writes nothing
        second = ProcessRuntime(tmp_path, CIDR, on_event=ends.take)
        second.start()
        assert marked(cid) == []
        left = only(second)
        assert (ContainerPhase.EXITED, 137, "Error") == (left.phase, left.exit_code, left.reason)
        assert second.pod("uid-1").ip == "127.21.7.2"
        assert start_ticks(bystander.pid) is not None
        second.stop()
    finally:
        bystander.kill()
        bystander.wait()
        first.stop()


def test_what_an_agent_left_that_was_killed_before_it_kept_a_record_is_ended(tmp_path, ends, monkeypatch):
    class Killed(BaseException):
        pass

    def launch_and_die(*arguments):
        launch(*arguments)
        raise Killed

    first = ProcessRuntime(tmp_path, CIDR, on_event=ends.take)
    first.start()
    with monkeypatch.context() as dying:
        dying.setattr("agent.kubelet.runtime.process.launch", launch_and_die)
        with pytest.raises(Killed):
            first.start_container(POD, shell("sleep 300; true"), 0)
    cid = msgspec.json.decode((tmp_path / "pods" / "uid-1" / "c" / "0.json").read_bytes())["id"]
    assert len(marked(cid)) >= 1
    second = ProcessRuntime(tmp_path, CIDR, on_event=ends.take)
    second.start()
    assert marked(cid) == []
    assert only(second).exit_code == 137
    second.stop()
    first.stop()


def test_what_is_left_of_a_pod_without_its_own_file_is_ended_too(tmp_path, ends):
    first = ProcessRuntime(tmp_path / "first", CIDR, on_event=ends.take)
    first.start()
    cid = first.start_container(POD, shell("sleep 300; true"), 0)
    # In a copy: the first one is alive here, sees its container end and writes that down.
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    (tmp_path / "second" / "pods" / "uid-1" / "pod.json").write_text("{")
    second = ProcessRuntime(tmp_path / "second", CIDR, on_event=ends.take)
    second.start()
    assert (marked(cid), second.known_pods()) == ([], frozenset())
    assert not (tmp_path / "second" / "pods" / "uid-1").exists()
    second.stop()
    first.stop()


@pytest.mark.parametrize("cidr", ["127.21.9.0/24", "127.21.9.0/30"], ids=["another block", "a block without room"])
def test_a_changed_block_of_addresses_does_not_keep_the_agent_from_starting(tmp_path, ends, cidr):
    first = ProcessRuntime(tmp_path, CIDR, on_event=ends.take)
    first.start()
    for uid in ("uid-1", "uid-2"):
        first.prepare_pod(make_pod("c", uid=uid))
    first.stop()
    second = ProcessRuntime(tmp_path, cidr, on_event=ends.take)
    second.start()
    assert {"127.21.9.2"} <= {second.pod(uid).ip for uid in second.known_pods()} <= {"127.21.9.2", "127.21.9.3"}
    second.stop()


def test_nothing_is_started_after_the_end(tmp_path, ends):
    runtime = ProcessRuntime(tmp_path, CIDR, on_event=ends.take)
    runtime.start()
    runtime.stop()
    with pytest.raises(StartError, match="the agent is ending"):
        runtime.start_container(POD, shell("sleep 300"), 0)


def test_a_log_that_cannot_be_made_is_named(runtime, tmp_path):
    (tmp_path / "pods" / "uid-1").mkdir(parents=True)
    (tmp_path / "pods" / "uid-1" / "c").write_text("")
    with pytest.raises(StartError, match=r"0\.log cannot be written: "):
        runtime.start_container(POD, shell("true"), 0)


def test_a_process_that_took_over_the_pid_is_not_touched(tmp_path, ends):
    runtime = ProcessRuntime(tmp_path, CIDR, on_event=ends.take)
    runtime.start()
    runtime.start_container(POD, shell("exit 0"), 0)
    ends.wait()
    runtime.stop()
    path = tmp_path / "pods" / "uid-1" / "c" / "0.json"
    record = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode({**record, "exit_code": None, "pid": os.getpid(), "start_ticks": 1}))
    second = ProcessRuntime(tmp_path, CIDR, on_event=ends.take)
    second.start()
    assert only(second).exit_code == 137
    second.stop()


def test_a_state_file_that_cannot_be_read_is_passed_over(tmp_path, ends):
    folder = tmp_path / "pods" / "uid-1"
    folder.mkdir(parents=True)
    (folder / "pod.json").write_text("{")
    runtime = ProcessRuntime(tmp_path, CIDR, on_event=ends.take)
    runtime.start()
    assert runtime.known_pods() == frozenset()
    runtime.stop()


def test_a_folder_that_cannot_be_used_ends_the_start_in_one_line(tmp_path, ends):
    (tmp_path / "file").write_text("")
    with pytest.raises(StartFailed, match=r"kubelet\.rootDir is not usable: .*; give a folder the agent may write"):
        ProcessRuntime(tmp_path / "file", CIDR, on_event=ends.take).start()


def test_end_container_of_nobody_ends_nobody():
    assert end_container("no-such-container") == 0


def marked(cid):
    """Living processes that carry the container's mark."""
    mark = f"{ENV_CONTAINER_ID}={cid.removeprefix('process://')}".encode()
    return [process.pid for process in find_processes(lambda _, environ: mark in environ)]


def test_healthy_while_it_runs(runtime):
    assert runtime.healthy(time.monotonic())


class EndsFirst(selectors.DefaultSelector):
    """Gives the end of a container and its last output together, the end first."""

    def select(self, timeout=None):
        time.sleep(0.1)
        return sorted(super().select(timeout), key=lambda found: isinstance(found[0].data, Output))


def test_the_output_of_a_container_that_was_just_reaped_is_left_alone(tmp_path, ends, monkeypatch, caplog):
    """Its descriptor is closed, and another file may have the number by now."""
    monkeypatch.setattr("agent.kubelet.runtime.process.selectors.DefaultSelector", EndsFirst)
    runtime = ProcessRuntime(tmp_path, CIDR, on_event=ends.take)
    runtime.start()
    runtime.start_container(POD, shell("echo last words"), 0)
    ends.wait()
    runtime.stop()
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []
    assert (tmp_path / "pods" / "uid-1" / "c" / "0.log").read_text() == "last words\n"


def test_a_log_that_cannot_be_rotated_costs_output_and_is_rotated_when_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: first no new file can be made, then one can."""
    reader, writer = os.pipe()
    log = tmp_path / "c.log"
    output = Output(reader, log, limit_bytes=10)

    def full(*_of: object, **_more: object) -> object:
        raise OSError(28, "No space left on device")

    os.write(writer, b"12345678\n")
    assert output.pump()
    with monkeypatch.context() as disk:
        disk.setattr(Path, "open", full)
        for _ in range(3):
            os.write(writer, b"abcdefgh\n")
            assert output.pump(), "the container does not notice"
    os.write(writer, b"ABCDEFGH\n")
    assert output.pump()
    assert (b"ABCDEFGH\n", b"12345678\n") == (log.read_bytes(), (tmp_path / "c.log.1").read_bytes())
    output.close()
    os.close(writer)
