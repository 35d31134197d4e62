"""`python -m tools.proof.repeat --times 5 [PATH ...]`: the gate, or tests by their paths, N times (`make test-repeat`).

No failure stops it. Each run's log is in build/logs/repeat/. The table at the end, and build/repeat.json, name each
step and test that failed, and in which runs. `--load` runs a busy loop on each core at the same time.
Exit code 0 if every run passed, 1 if one failed, 130 if interrupted.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import Any

from tools.kit.endings import ENDINGS, EXIT_INTERRUPTED
from tools.kit.output import say
from tools.proof.table import RESULT, ROOT

LOGS = ROOT / "build" / "logs" / "repeat"
REPORT = ROOT / "build" / "repeat.json"
LOAD_LIMIT_S = 7200
BUSY = f"import time; end = time.monotonic() + {LOAD_LIMIT_S}\nwhile time.monotonic() < end: pass"


@dataclass
class Run:
    """code: the exit code. failed: the names of steps and the ids of tests that failed."""

    number: int
    code: int
    seconds: float
    failed: list[str] = field(default_factory=list)


def failures(result: dict[str, Any]) -> list[str]:
    """The steps and tests that failed, of the content of build/durations.json."""
    steps = [step["name"] for step in result["steps"] if step["result"] not in ("passed", "LEFT OUT")]
    return [*steps, *(row["test"] for row in result["tests"] if row["outcome"] == "failed")]


def by_failure(runs: list[Run]) -> dict[str, list[int]]:
    """For each step and test that failed: the numbers of the runs, the most frequent first."""
    found: dict[str, list[int]] = {}
    for run in runs:
        for name in run.failed or ([f"exit code {run.code}"] if run.code else []):
            found.setdefault(name, []).append(run.number)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


@contextmanager
def busy_cores(wanted: bool) -> Iterator[None]:
    """A busy loop for each core, which ends with the block, or by itself after two hours."""
    count = len(os.sched_getaffinity(0)) if wanted else 0
    loops = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


class Repeater:
    """Runs one command again and again. `interrupt` ends the present run and lets none begin."""

    def __init__(self, command: list[str]) -> None:
        self.interrupted = False
        self._command = command
        self._child: subprocess.Popen[bytes] | None = None

    def interrupt(self, number: int, _frame: FrameType | None) -> None:
        self.interrupted = True
        if self._child is not None and self._child.returncode is None:
            self._child.send_signal(signal.SIGINT if number == signal.SIGINT else signal.SIGTERM)

    def run(self, number: int) -> Run:
        LOGS.mkdir(parents=True, exist_ok=True)
        RESULT.unlink(missing_ok=True)
        started = time.monotonic()
        with (LOGS / f"{number}.log").open("w") as log:
            self._child = subprocess.Popen(
                self._command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
            code = self._child.wait()
        seconds = time.monotonic() - started
        return Run(number, code, round(seconds, 1), failures(json.loads(RESULT.read_text())) if RESULT.exists() else [])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.proof.repeat", description=__doc__)
    parser.add_argument("--times", type=int, default=5, metavar="N", help="how many runs (default: 5)")
    parser.add_argument("--load", action="store_true", help="with a busy loop on each core")
    parser.add_argument("what", nargs="*", metavar="PATH", help="tests, as pytest takes them (default: the gate)")
    arguments = parser.parse_args(argv)
    if arguments.times < 1:
        parser.error(f"--times {arguments.times}: at least one run")
    pytest = [sys.executable, "-m", "pytest", *arguments.what]
    repeater = Repeater(pytest if arguments.what else [sys.executable, "-m", "tools.run", "gate"])
    for number in ENDINGS:
        signal.signal(number, repeater.interrupt)
    runs: list[Run] = []
    with busy_cores(arguments.load):
        for number in range(1, arguments.times + 1):
            if repeater.interrupted:
                break
            say(f"run {number} of {arguments.times}: log in {(LOGS / f'{number}.log').relative_to(ROOT)}")
            runs.append(repeater.run(number))
            say(f"run {number}: exit code {runs[-1].code} after {runs[-1].seconds:.0f} s")
    REPORT.write_text(json.dumps([asdict(run) for run in runs], indent=1) + "\n")
    passed = sum(run.code == 0 for run in runs)
    say(f"\n{passed} of {len(runs)} runs passed")
    for name, numbers in by_failure(runs).items():
        say(f"{len(numbers)} of {len(runs)}  {name}  (run {', '.join(map(str, numbers))})")
    if repeater.interrupted:
        return EXIT_INTERRUPTED
    return 0 if passed == arguments.times else 1


if __name__ == "__main__":
    sys.exit(main())
