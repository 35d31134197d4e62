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
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import Any

from tools.kit.endings import ENDINGS, EXIT_INTERRUPTED
from tools.kit.output import say
from tools.kit.whole import end_marked
from tools.proof.durations import STEP_VARIABLE
from tools.proof.table import RESULT, ROOT

LOGS = ROOT / "build" / "logs" / "repeat"
REPORT = ROOT / "build" / "repeat.json"
STEP = "repeat"
# It ends with its parent, which alone reacts to keys of the terminal.
BUSY = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGQUIT):
    signal.signal(number, signal.SIG_IGN)
while os.getppid() == int(sys.argv[1]):
    sum(range(100_000))
"""


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
    """A busy loop for each core, which ends with the block, and also if this process is killed."""
    count = len(os.sched_getaffinity(0)) if wanted else 0
    loops = [subprocess.Popen([sys.executable, "-c", BUSY, str(os.getpid())]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


class Repeater:
    """Runs one command again and again. `interrupt` ends the present run and lets none begin.

    A signal becomes SIGINT, on which pytest takes down what its tests have started. What remains after a run is ended.
    """

    def __init__(self, command: list[str]) -> None:
        self.interrupted = False
        self._command = command
        self._child: subprocess.Popen[bytes] | None = None

    def interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self.interrupted = True
        self._pass_on()

    def _pass_on(self) -> None:
        if self._child is not None and self._child.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGINT)

    def run(self, number: int) -> Run:
        LOGS.mkdir(parents=True, exist_ok=True)
        RESULT.unlink(missing_ok=True)
        started = time.monotonic()
        mark = f"{os.getpid()}-{STEP}"
        with (LOGS / f"{number}.log").open("w") as log:
            self._child = subprocess.Popen(
                self._command,
                cwd=ROOT,
                env={**os.environ, STEP_VARIABLE: mark},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            if self.interrupted:  # by a signal that came while it was started
                self._pass_on()
            code = self._child.wait()
        end_marked(mark, variable=STEP_VARIABLE)
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
