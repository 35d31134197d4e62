"""Runs the project's checks, with progress and a closing table: `python -m tools.run gate` is `make test`.

Each step is one child process; its output goes to the terminal and to build/logs/<step>.log. After a failed step, the
steps that do not need it still run, so one run shows all failures. No failed test is run again. Lanes run in parallel:
the output of a step is printed when the step ends; until then one line a minute shows its progress. Processes that a
step leaves behind are ended and reported. Ctrl-C and SIGTERM interrupt the running steps, which report their results
so far, and the table is printed.
`gate` and `whole` skip what this machine or user cannot run, and report it at the beginning and at the end. Nothing is
skipped if CI is set, or if the command line names a ring. build/durations.json has the cost of each test.
Exit codes: 0 every step that was not skipped passed, 1 a step failed, 2 this machine lacks something (reported before
anything is built), 130 interrupted.
"""

import argparse
import os
import shutil
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from tools.kit.ability import must_run
from tools.kit.endings import EXIT_INTERRUPTED
from tools.kit.output import say
from tools.proof import table
from tools.proof.durations import FOLDER_VARIABLE
from tools.proof.runner import LOGS, Row, Runner
from tools.proof.steps import MAY_LEAVE_OUT, ROOT, SELECTIONS, Selection, Step
from tools.testbed.shared import obstacles

EXIT_OBSTACLE = 2
DURATIONS = ROOT / "build" / "durations"


def without_root(selection: Selection) -> Selection:
    """The selection without the steps that need what ring 3 needs."""

    def stay(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(step for step in steps if not step.root)

    lanes = tuple(lane for lane in map(stay, selection.lanes) if lane)
    return replace(selection, prepare=stay(selection.prepare), lanes=lanes)


def record(durations: Path, rows: list[Row]) -> list[Row]:
    """Writes build/durations.json. Returns the rows with the processor seconds that tests saw where these are more: the
    hosts of ring 3 end as children of other processes."""
    tests = table.read(durations)
    of_tests: Counter[str] = Counter()
    for test in tests:
        of_tests[test["step"]] += test["processor_s"]
    rows = [replace(row, processor_s=max(row.processor_s, of_tests[row.name])) for row in rows]
    steps = [table.Step(row.name, row.result, round(row.seconds, 1), round(row.processor_s, 1)) for row in rows]
    table.write(steps, tests)
    shutil.rmtree(durations, ignore_errors=True)
    return rows


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.run", description=__doc__)
    parser.add_argument("selection", choices=sorted(SELECTIONS))
    name = parser.parse_args(argv).selection
    selection = SELECTIONS[name]
    lacks = [*obstacles.of_hosts(), *obstacles.disk_space(hosts=True)] if name in MAY_LEAVE_OUT else []
    if found := [*selection.obstacles(), *(lacks if must_run() else [])]:
        for obstacle in found:
            say(f"cannot run: {obstacle}")
        return EXIT_OBSTACLE
    left_out = [step for step in selection.steps if step.root] if lacks else []
    if left_out:
        say(f"{', '.join(step.name for step in left_out)} left out, the rest is run: {'; '.join(lacks)}")
        selection = without_root(selection)
    LOGS.mkdir(parents=True, exist_ok=True)
    durations = DURATIONS / f"run-{os.getpid()}"
    shutil.rmtree(durations, ignore_errors=True)  # of a killed run that had the same process id
    runner = Runner({FOLDER_VARIABLE: str(durations)}, LOGS)
    runner.catch_signals()
    started = time.monotonic()
    rows = runner.run_all(selection)
    rows = record(durations, rows)
    rows += [Row(step.name, "LEFT OUT", note="; ".join(lacks)) for step in left_out]
    _say_table(rows, time.monotonic() - started)
    if runner.interrupts:
        return EXIT_INTERRUPTED
    return 0 if all(row.result in ("passed", "LEFT OUT") for row in rows) else 1


def _say_table(rows: list[Row], seconds: float) -> None:
    say("\nstep           result       seconds  processor  tests")
    for row in rows:
        say(f"{row.name:<14} {row.result:<12} {row.seconds:>7.1f}  {row.processor_s:>9.1f}  {row.note}")
    counts = Counter(row.result for row in rows)
    others = {"NOT RUN": "skipped", "LEFT OUT": "left out"}
    failed = len(rows) - sum(counts[result] for result in ("passed", *others))
    more = [f"{counts[result]} {words}" for result, words in others.items() if counts[result]]
    processor_s = sum(row.processor_s for row in rows)
    say(f"\n{seconds / 60:.1f} minutes, {processor_s:,.0f} processor seconds")
    say(", ".join([f"{counts['passed']} passed", f"{failed} failed", *more]))


if __name__ == "__main__":
    sys.exit(main())
