"""A command with a deadline that holds, whatever the command does."""

import errno
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from agent.processes import command, proc
from agent.processes.command import Completed, ExecTimeout, RuntimeUnavailable, go_duration, run_command
from tools.kit.waiting import wait_until


def shell(script: str, timeout_s: float = 5.0) -> Completed:
    return run_command(["/bin/sh", "-c", script], timeout_s=timeout_s)


def children() -> list[str]:
    """State and command of every process whose parent we are."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().partition(" (")[2].rpartition(") ")
        except OSError:
            continue
        if rest.split()[1] == str(os.getpid()):
            found.append(f"{rest[0]} {name}")
    return found


@pytest.fixture(autouse=True)
def _nothing_is_left():
    before = sorted(children())
    yield
    assert sorted(children()) == before


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("echo hi; echo no >&2; exit 3", Completed(3, b"hi\n", b"no\n"), id="output and exit code"),
        pytest.param("kill -9 $$", Completed(-9, b"", b""), id="ended by a signal"),
        pytest.param("exec >&- 2>&-; exit 4", Completed(4, b"", b""), id="it closes its output first"),
        pytest.param(
            "sleep 60 & echo done", Completed(0, b"done\n", b""), id="a child that keeps the pipes is not waited for"
        ),
        pytest.param("cat", Completed(0, b"", b""), id="its input is empty"),
    ],
)
def test_completed(script: str, expected: Completed) -> None:
    assert expected == shell(script)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("trap '' TERM; sleep 60", id="ignores SIGTERM"),
        pytest.param("(sleep 60; :) & (sleep 60; :) & wait", id="forks grandchildren"),
        pytest.param("exec >&- 2>&-; sleep 60", id="closes its output and hangs"),
        pytest.param("while :; do echo y; done", id="prints without end"),
    ],
)
def test_a_hung_command_is_killed_with_its_group(script: str) -> None:
    begun = time.monotonic()
    with pytest.raises(ExecTimeout) as caught:
        shell(f"{script}; : mark-{os.getpid()}", timeout_s=0.3)
    assert caught.value.leftover is None
    assert len(caught.value.output) <= 2 * 10240
    assert time.monotonic() - begun < 10
    marked = subprocess.run(["pgrep", "-f", f"^/bin/sh.*mark-{os.getpid()}"], capture_output=True, check=False)
    assert marked.stdout == b""


def test_output_is_capped_while_the_rest_is_thrown_away() -> None:
    done = shell("head -c 50000000 /dev/zero; head -c 20000 /dev/zero >&2", timeout_s=10)
    assert (0, 10240, 10240) == (done.exit_code, len(done.stdout), len(done.stderr))


@pytest.mark.parametrize(
    ("command", "text"),
    [
        pytest.param(["/no/such"], 'exec: "/no/such": executable file not found', id="no such file"),
        pytest.param(["/etc/passwd"], 'exec: "/etc/passwd": permission denied', id="not executable"),
        pytest.param([], "exec: the command is empty", id="nothing"),
        pytest.param(["a\0b"], 'exec: "a\0b": embedded null byte', id="a null byte"),
    ],
)
def test_a_command_that_cannot_be_started(command: list[str], text: str) -> None:
    with pytest.raises(RuntimeUnavailable) as caught:
        run_command(command, timeout_s=1)
    assert text == str(caught.value)


def test_environment_and_folder(tmp_path: Path) -> None:
    done = run_command(["/bin/sh", "-c", "echo $A; pwd"], timeout_s=5, env={"A": "a"}, cwd=str(tmp_path))
    assert f"a\n{tmp_path}\n".encode() == done.stdout
    with pytest.raises(RuntimeUnavailable, match="working directory"):
        run_command(["/bin/sh"], timeout_s=5, cwd=str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("seconds", "expected"), [(1, "1s"), (90, "1m30s"), (1.5, "1.5s"), (3600, "1h0m0s"), (60, "1m0s")]
)
def test_go_duration(seconds: float, expected: str) -> None:
    assert expected == go_duration(seconds)


def test_a_command_whose_start_hangs_holds_nobody_else_up(tmp_path: Path) -> None:
    """As a file on a dead NFS server. A write lease keeps execve waiting until its holder gives it up."""
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexit 0\n")
    slow.chmod(0o755)
    script = textwrap.dedent("""
        import fcntl, signal, sys
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        file = open(sys.argv[1])
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        print("held", flush=True)
        sys.stdin.read()
    """)
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(slow)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout.readline() == "held\n"
        hanging = threading.Thread(target=lambda: run_command([str(slow)], timeout_s=30), daemon=True)
        begun = time.monotonic()
        hanging.start()
        time.sleep(0.2)
        assert hanging.is_alive()
        assert shell("echo other").stdout == b"other\n"
        command.reap_orphans()
        assert time.monotonic() - begun < 20, "neither the interpreter nor a lock waits for it"
        holder.stdin.close()
    hanging.join(40)
    assert not hanging.is_alive()


def test_while_a_start_hangs_orphans_are_reaped_all_the_same() -> None:
    """In a process of its own that adopts orphans; the start that hangs is only counted."""
    script = textwrap.dedent("""
        import ctypes, os, time
        from agent.processes import command
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
        if os.fork() == 0:
            for _ in range(3):
                if os.fork() == 0:
                    time.sleep(0.1)
                    os._exit(0)
            os._exit(0)
        os.wait()  # the first child: the three are ours now
        time.sleep(0.3)
        command._starting = 1
        assert command.reap_orphans() == 0, "the first look may see a command that is just being started"
        end, reaped = time.monotonic() + 15, 0
        while reaped < 3 and time.monotonic() < end:
            time.sleep(0.05)
            reaped += command.reap_orphans()
        print(reaped)
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout == "3\n"


@pytest.mark.parametrize("ends_by", ["itself", "its deadline"])
def test_what_a_command_of_a_check_detached_dies_with_it(ends_by: str, tmp_path: Path) -> None:
    started = tmp_path / "started"
    script = f"setsid sh -c 'echo $$ > {started}; exec sleep 600' >/dev/null 2>&1 & until [ -s {started} ]; do :; done"
    if ends_by == "itself":
        assert run_command(["/bin/sh", "-c", script], timeout_s=20, sweep=True).exit_code == 0
    else:
        with pytest.raises(ExecTimeout):
            run_command(["/bin/sh", "-c", f"{script}; sleep 600"], timeout_s=5, sweep=True)
    wait_until(lambda: not _lives(int(started.read_text())), timeout_s=20)  # killed it is; its end may take a moment


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def test_a_timeout_of_months_is_waited_for_in_parts() -> None:
    assert Completed(0, b"hi\n", b"") == shell("echo hi", timeout_s=2**31 - 1)


def test_a_pid_that_is_no_longer_ours_is_not_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that outlived SIGKILL ends later: its pid may be given to a stranger."""
    monkeypatch.setattr(command, "KILL_WAIT_S", 0.0)
    monkeypatch.setattr(command, "_has_ended", lambda _pid: False)
    with pytest.raises(ExecTimeout) as caught:
        shell("sleep 60", timeout_s=0.1)
    assert caught.value.leftover is not None
    caught.value.leftover.wait()
    killed: list[int] = []
    monkeypatch.setattr(command.os, "killpg", lambda pid, _number: killed.append(pid))
    command.kill_running()
    assert killed == []


def test_orphans_that_became_ours_are_reaped() -> None:
    """In a process of its own that adopts orphans, as process 1 of a container does."""
    script = textwrap.dedent("""
        import ctypes, os, tempfile, time
        from agent.processes.command import reap_orphans, run_command
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
        # It waits until the other session is there: before, the orphan would end with its group. The orphan lives until
        # the mark is gone: one that ended before its parent would be the parent's to reap.
        mark = tempfile.mktemp()
        leave = 'setsid sh -c "touch $0; while [ -e $0 ]; do sleep 0.01; done" & until [ -e $0 ]; do sleep 0.01; done'
        run_command(["/bin/sh", "-c", leave, mark], timeout_s=30)
        os.unlink(mark)
        end = time.monotonic() + 30
        while (reaped := reap_orphans()) == 0 and time.monotonic() < end:
            time.sleep(0.01)
        print(reaped, run_command(["/bin/sh", "-c", "exit 7"], timeout_s=30).exit_code)
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout == "1 7\n"


@pytest.mark.parametrize(
    ("sweep", "expected"),
    [
        pytest.param(True, "1000", id="of a check: it and what it starts go first"),
        pytest.param(False, Path("/proc/self/oom_score_adj").read_text().strip(), id="of a container: as we"),
    ],
)
def test_who_goes_where_memory_runs_out(sweep: bool, expected: str) -> None:
    script = f"until [ $(cat /proc/$$/oom_score_adj) = {expected} ]; do sleep 0.01; done; cat /proc/self/oom_score_adj"
    done = run_command(["/bin/sh", "-c", script], timeout_s=20, sweep=sweep)
    assert f"{expected}\n".encode() == done.stdout


def test_without_a_descriptor_to_look_for_what_a_command_left_it_could_not_be_run(monkeypatch) -> None:
    def no_descriptor(_begun_after: int | None) -> list[int]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), "/proc")

    monkeypatch.setattr(proc, "_candidates", no_descriptor)
    with pytest.raises(RuntimeUnavailable, match="what the command left cannot be looked for: too many open files"):
        run_command(["true"], timeout_s=20, sweep=True)
