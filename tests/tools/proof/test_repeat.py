"""Repeated runs report each failure with the runs in which it happened."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from tools.kit.pid import ProcessId, end_all
from tools.kit.waiting import wait_for
from tools.proof.repeat import Run, by_failure, failures

ROOT = Path(__file__).resolve().parents[3]
# `python -m tools.proof.repeat` in a folder of its own.
PROGRAM = """
import pathlib, sys
from tools.proof import repeat
here = pathlib.Path(sys.argv[1])
repeat.LOGS, repeat.REPORT, repeat.RESULT, repeat.ROOT = here / "logs", here / "r.json", here / "d.json", here
sys.exit(repeat.main(["--times", "2", "test_it.py"]))
"""
LEAVES = """
import pathlib, subprocess, time
import pytest

@pytest.fixture
def started():
    yield subprocess.Popen(["sleep", "300"], start_new_session=True)
    pathlib.Path("taken-down").touch()

def test_it(started):
    pathlib.Path("left").write_text(str(started.pid))
    time.sleep(300)
"""


def test_failed_steps_and_tests_are_named() -> None:
    result = {
        "steps": [{"name": "mypy", "result": "FAILED (1)"}, {"name": "ruff", "result": "passed"}],
        "tests": [{"test": "a", "outcome": "failed"}, {"test": "b", "outcome": "skipped"}],
    }
    assert ["mypy", "a"] == failures(result)


def test_the_most_frequent_failure_comes_first() -> None:
    runs = [Run(1, 1, 2.0, ["a", "b"]), Run(2, 0, 2.0), Run(3, 1, 2.0, ["b"]), Run(4, 2, 2.0)]
    assert {"b": [1, 3], "a": [1], "exit code 2": [4]} == by_failure(runs)
    assert ["b", "a", "exit code 2"] == list(by_failure(runs))


def test_a_run_that_fails_now_and_then_is_reported_and_not_forgiven(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pathlib\n\n\ndef test_it():\n    met = pathlib.Path('met')\n    passes = met.exists()\n"
        "    met.touch()\n    assert passes\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (1, "") == (done.returncode, done.stderr)
    assert "1 of 2 runs passed\n1 of 2  exit code 1  (run 1)\n" in done.stdout
    assert [1, 0] == [run["code"] for run in json.loads((tmp_path / "r.json").read_text())]


def test_a_killed_run_takes_down_its_tests_and_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(LEAVES)
    argv = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    child = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    left = tmp_path / "left"
    assert wait_for(lambda: left.exists() and left.read_text(), timeout_s=100)
    child.send_signal(signal.SIGTERM)
    assert "0 of 1 runs passed" in child.communicate(timeout=100)[0]
    assert 130 == child.returncode
    assert (tmp_path / "taken-down").exists()
    assert ProcessId.of(int(left.read_text())) is None


def test_a_busy_loop_ends_when_the_repetition_is_killed() -> None:
    program = """
import signal
from tools.proof import repeat
with repeat.busy_cores(True):
    import pathlib, os
    print(*pathlib.Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split(), flush=True)
    signal.pause()
"""
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        loops = [ProcessId.of(int(pid)) for pid in child.stdout.readline().split()]
        child.kill()
    living = [loop for loop in loops if loop is not None]
    assert living
    try:
        assert wait_for(lambda: not any(loop.alive() for loop in living), timeout_s=60)
    finally:
        end_all(living)
