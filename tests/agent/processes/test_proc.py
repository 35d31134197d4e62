"""Who is looked for among the processes of a machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.processes import proc
from agent.processes.proc import end_marked, is_younger

MARK = "READYGATE_TEST_PROC"


@pytest.mark.parametrize(
    ("pid", "than", "newest", "expected"),
    [
        pytest.param(101, 100, 105, True, id="the next one"),
        pytest.param(105, 100, 105, True, id="the newest"),
        pytest.param(100, 100, 105, False, id="itself"),
        pytest.param(99, 100, 105, False, id="an older one"),
        pytest.param(200, 100, 105, False, id="one of the round before"),
        pytest.param(101, 100, 100, False, id="none has come since"),
        pytest.param(32760, 32750, 301, True, id="one before the numbers began anew"),
        pytest.param(301, 32750, 301, True, id="the newest after they began anew"),
        pytest.param(302, 32750, 301, False, id="one of the round before, after they began anew"),
    ],
)
def test_who_has_come_later_is_told_by_the_numbers(pid: int, than: int, newest: int, expected: bool) -> None:
    assert expected == is_younger(pid, than, newest)


def test_only_what_came_later_is_ended() -> None:
    environ = {**os.environ, MARK: str(os.getpid())}
    older, younger = (
        subprocess.Popen([sys.executable, "-c", "input()"], env=environ, stdin=subprocess.PIPE) for _ in range(2)
    )
    try:
        mark = f"{MARK}={os.getpid()}".encode()
        assert 1 == end_marked({mark}, begun_after=older.pid)
        assert (-9, None) == (younger.wait(30), older.poll())
        assert 1 == end_marked({mark})
        assert -9 == older.wait(30)
    finally:
        for process in (older, younger):
            process.kill()
            process.communicate()


def test_where_nobody_tells_who_came_last_all_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with systemd's ProcSubset=pid: else every command of a check would fail there."""
    with subprocess.Popen(["sleep", "60"], env={**os.environ, MARK: "1"}) as marked:
        (tmp_path / str(marked.pid)).symlink_to(f"/proc/{marked.pid}")
        monkeypatch.setattr(proc, "PROC", tmp_path)
        try:
            assert 1 == end_marked({f"{MARK}=1".encode()}, begun_after=os.getpid())
        finally:
            marked.kill()


@pytest.mark.parametrize(
    ("newest", "expected"),
    [
        pytest.param(100, [], id="nothing was begun since: nothing is looked at"),
        pytest.param(102, [101, 102], id="few were: they are tried"),
        pytest.param(100 + proc.FEW + 1, [101], id="many were: those that are there"),
        pytest.param(7, [5, 101], id="the numbers began anew: those that are there"),
        pytest.param(None, [5, 99, 101], id="nobody tells: all that are there"),
    ],
)
def test_who_is_looked_at_after_a_command(
    newest: int | None, expected: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("5", "99", "101", "self"):
        (tmp_path / name).mkdir()
    if newest is not None:
        (tmp_path / "loadavg").write_text(f"0.00 0.00 0.00 1/99 {newest}\n")
    monkeypatch.setattr(proc, "PROC", tmp_path)
    assert expected == sorted(proc._candidates(100))


def stat_line(state: str, flags: int) -> str:
    return f"7 (a) b) {state} 1 7 7 0 -1 {flags} " + " ".join("0" for _ in range(12)) + " 4711 0\n"


@pytest.mark.parametrize(
    ("environ", "cmdline", "stat", "expected"),
    [
        pytest.param("A=1\0MARK=1\0", "sleep\0", stat_line("S", 0), "MARKED", id="one with the mark"),
        pytest.param("A=1\0MARK=12\0", "sleep\0", stat_line("S", 0), "OTHER", id="one with another's mark"),
        pytest.param("MARK=1\0", "sleep\0", stat_line("X", 0), "OTHER", id="one that has just ended"),
        pytest.param("", "", stat_line("R", 0), "STARTING", id="one within execve"),
        pytest.param("", "sleep\0", stat_line("S", 0), "OTHER", id="one without any environment"),
        pytest.param("", "", stat_line("Z", 0), "OTHER", id="one that has ended and is not reaped"),
        pytest.param("", "", stat_line("I", proc.PF_KTHREAD), "OTHER", id="a thread of the kernel's"),
        pytest.param(None, None, None, "OTHER", id="one that has gone"),
    ],
)
def test_whose_process_it_is(
    environ: str | None, cmdline: str, stat: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if environ is not None:
        (tmp_path / "7").mkdir()
        for name, text in (("environ", environ), ("cmdline", cmdline), ("stat", stat)):
            (tmp_path / "7" / name).write_text(text)
    monkeypatch.setattr(proc, "PROC", tmp_path)
    assert expected == proc._look(7, {b"MARK=1"}).name


def test_a_process_may_be_called_by_bytes_that_are_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As any user of the host may call it, and as the kernel cuts a long name within a letter."""
    (tmp_path / "7").mkdir()
    for name, content in (("environ", b""), ("cmdline", b""), ("stat", stat_line("R", 0).encode())):
        (tmp_path / "7" / name).write_bytes(content.replace(b"(a)", b"(\xff\xd0)"))
    monkeypatch.setattr(proc, "PROC", tmp_path)
    assert ("STARTING", 4711) == (proc._look(7, {b"MARK=1"}).name, proc.start_ticks(7))


def test_one_that_is_within_execve_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command detached may be starting another program just when the command ends."""
    looks = iter([proc._Look.STARTING, proc._Look.STARTING, proc._Look.MARKED, proc._Look.OTHER])
    killed: list[int] = []
    monkeypatch.setattr(proc, "_candidates", lambda _after: [7])
    monkeypatch.setattr(proc, "_look", lambda _pid, _marks: next(looks))
    monkeypatch.setattr(proc.os, "kill", lambda pid, _signal: killed.append(pid))
    assert (1, [7]) == (end_marked({b"MARK=1"}), killed)
