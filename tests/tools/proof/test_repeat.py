"""Repeated runs report each failure with the runs in which it happened."""

import json
import subprocess
import sys
from pathlib import Path

from tools.proof.repeat import Run, by_failure, failures

ROOT = Path(__file__).resolve().parents[3]


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
    program = f"""
import pathlib, sys
from tools.proof import repeat
here = pathlib.Path({str(tmp_path)!r})
repeat.LOGS, repeat.REPORT, repeat.RESULT, repeat.ROOT = here / "logs", here / "r.json", here / "d.json", here
sys.exit(repeat.main(["--times", "2", "test_it.py"]))
"""
    (tmp_path / "test_it.py").write_text(
        "import pathlib\n\n\ndef test_it():\n    met = pathlib.Path('met')\n    passes = met.exists()\n"
        "    met.touch()\n    assert passes\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (1, "") == (done.returncode, done.stderr)
    assert "1 of 2 runs passed\n1 of 2  exit code 1  (run 1)\n" in done.stdout
    assert [1, 0] == [run["code"] for run in json.loads((tmp_path / "r.json").read_text())]
