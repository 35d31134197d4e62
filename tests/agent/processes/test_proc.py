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
