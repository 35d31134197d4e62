"""Runs faults one by one: plants each in the copy, runs its tests until one fails, and runs that one without the fault.

A catch is a test that fails with the fault and passes without it. A test that also fails without the fault is left out,
and the others run. A run of pytest that hangs or crashes counts as a failure of the test that ran last, and as one of
START if no test had begun.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.kit.scope import WHOLE_VARIABLE
from tools.kit.whole import end_marked
from tools.power.catalogue import half
from tools.power.choosing import HOSTS_RING, Batch, Choosing
from tools.power.chosen_tests import VARIABLE
from tools.power.copied import Copy, CopyError
from tools.power.covering import MARK_VARIABLE
from tools.power.fault import Fault
from tools.power.results import CAUGHT, TIMEOUT, UNCAUGHT, UNCOVERED, Result, Results, merged

START_S, SLOWDOWN = 120.0, 20.0
"""A run of pytest may take this long, and so many times what its tests took when they were measured."""
TEST_TIMEOUT_S = {0: 120, 1: 120, 2: 300, HOSTS_RING: 1800}
REGENERATED, REGENERATE_S = "make manifests", 600.0
COLLECTION = " (collection)"
"""After the name of a file whose tests could not be collected."""
START = "the start of the tests"
"""In place of a test, where pytest hung or crashed before the first one."""
EXIT_SUCCESS, EXIT_NO_TESTS = 0, 5
"""Exit codes of pytest."""
REACH_RING_3 = 30
"""How many faults may reach ring 3 in a campaign."""
RING_3_FIRST = ("playbooks", "chart", "units")


@dataclass(frozen=True)
class Outcome:
    """Of one run of pytest. failed: the first test that failed, START, or "" if none did. timeout: it hung."""

    failed: str = ""
    timeout: bool = False
    tests: int = 0


Say = Callable[[str], None]


class Runner:
    """Runs batches of tests in a copy. Each process that a test started is ended with its run."""

    def __init__(self, copy: Copy, python: str = sys.executable) -> None:
        self._copy = copy
        self._python = python
        self._child: subprocess.Popen[bytes] | None = None
        self.stopping = False

    def stop(self) -> None:
        """From a signal handler: ends the present run, whose result is not recorded."""
        self.stopping = True
        self._kill()

    def _kill(self) -> None:
        if self._child is not None and self._child.poll() is None:
            os.killpg(self._child.pid, signal.SIGKILL)

    def run(self, batch: Batch, without: Iterable[str] = (), only: str = "") -> Outcome:
        """only: this test instead of the batch's. START: the batch is only collected. A path: it is only collected."""
        without = list(without)
        paths = [path for path in batch.paths if f"{path}{COLLECTION}" not in without]
        if only not in ("", START):
            paths = [only.partition("::")[0]]
        if not paths:
            return Outcome()
        with tempfile.TemporaryDirectory(prefix="rgp-", ignore_cleanup_errors=True) as folder:
            record = Path(folder) / "record"
            choice = Path(folder) / "choice.json"
            files = [] if only else list(batch.files)
            tests = [only] if only else list(batch.tests)
            facts = {
                "tests": tests,
                "files": files,
                "without": without,
                "gate": batch.gate,
                "record": str(record),
            }
            choice.write_text(json.dumps(facts))
            record.touch()
            argv = [
                self._python,
                "-m",
                "pytest",
                "-x",
                "-q",
                "-p",
                "tools.power.chosen_tests",
                "-p",
                "no:cacheprovider",
            ]
            argv += ["-o", f"timeout={TEST_TIMEOUT_S[batch.ring]}", f"--rootdir={self._copy.folder}", "--tb=short"]
            argv += ["--collect-only"] if only and "::" not in only else []
            argv += [f"--basetemp={folder}/t", *paths]
            code = self._wait(argv, batch, choice, START_S + SLOWDOWN * batch.seconds)
            return _outcome([json.loads(line) for line in record.read_text().splitlines()], code)

    def _wait(self, argv: list[str], batch: Batch, choice: Path, limit_s: float) -> int | None:
        """Returns the exit code of pytest; None if it was still running after limit_s."""
        mark = f"{os.getpid()}-{time.monotonic_ns()}"
        more = {VARIABLE: str(choice), MARK_VARIABLE: mark, "READYGATE_DURATIONS": str(choice.with_name("durations"))}
        more |= {} if batch.gate else {WHOLE_VARIABLE: "1"}
        self._child = subprocess.Popen(
            argv,
            cwd=self._copy.folder,
            env=self._copy.environ(**more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        if self.stopping:  # by a signal that came while it was started
            self._kill()
        try:
            return self._child.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self._kill()
            self._child.wait()
            end_marked(mark, variable=MARK_VARIABLE)

    def regenerate(self) -> bool:
        """Generates the files that are made of the chart. Returns whether that succeeded."""
        argv = [self._python, "-m", "tests.charts.manifests"]
        try:
            done = subprocess.run(
                argv, cwd=self._copy.folder, env=self._copy.environ(), capture_output=True, timeout=REGENERATE_S
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == EXIT_SUCCESS


def _outcome(lines: list[dict[str, Any]], code: int | None) -> Outcome:
    """code: the exit code of pytest; None: it hung."""
    began = [line["began"] for line in lines if "began" in line]
    failed = [line for line in lines if "failed" in line]
    if failed:
        return Outcome(failed[0]["failed"], failed[0]["timeout"], len(began))
    if code not in (EXIT_SUCCESS, EXIT_NO_TESTS):
        return Outcome(began[-1] if began else START, timeout=code is None, tests=len(began))
    return Outcome(tests=len(began))


class Campaign:
    def __init__(self, copy: Copy, choosing: Choosing, runner: Runner, results: Results, say: Say) -> None:
        self._copy = copy
        self._choosing = choosing
        self._runner = runner
        self._results = results
        self._say = say

    def holds(self, fault: Fault, rings: Iterable[int]) -> bool:
        """Whether the recorded result has all that these rings can add."""
        row = self._results.of(fault.id, self._choosing.blobs.get(fault.file, ""))
        if row is None:
            return False
        if row.is_caught and row.gate and self._catch_holds(row):
            return True
        waiting = [b for b in self._choosing.batches(fault, rings) if row.tried.get(b.name) != b.key]
        if row.is_caught and self._catch_holds(row):
            return not any(batch.gate for batch in waiting)
        return not waiting and not row.is_caught

    def _catch_holds(self, row: Result) -> bool:
        if row.test == REGENERATED:
            return True
        path = row.test.partition("::")[0].partition(" ")[0]
        in_gate = self._choosing.in_gate(row.test.removesuffix(COLLECTION))
        return self._choosing.blobs.get(path, "") == row.test_blob and in_gate is row.gate

    def run(self, fault: Fault, rings: Iterable[int]) -> Result | None:
        """Runs the batches of the fault that have no result yet, and records the result. None if it was stopped.

        Raises CopyError where tests cannot run, with or without the fault.
        """
        started = time.monotonic()
        blob = self._choosing.blobs.get(fault.file, "")
        before = self._results.of(fault.id, blob)
        batches = self._choosing.batches(fault, rings)
        known = before.tried if before is not None else {}
        waiting = [batch for batch in batches if known.get(batch.name) != batch.key]
        facts: dict[str, Any] = {
            "outcome": UNCAUGHT if batches else UNCOVERED,
            "tried": {},
            "unreliable": [],
            "tests": 0,
        }
        try:
            self._plant(fault)
            caught = self._try(fault, waiting, facts)
        finally:
            self._copy.restore(fault.file)
        if self._runner.stopping:
            return None
        if not caught and before is not None and before.is_caught and self._catch_holds(before):
            facts |= {key: getattr(before, key) for key in ("outcome", "test", "ring", "gate", "test_blob")}
        seconds = round(time.monotonic() - started, 1)
        row = Result(fault.id, fault.part, fault.what, half(fault), file_blob=blob, seconds=seconds, **facts)
        row = merged(before, row)
        self._results.add(row)
        return row

    def _plant(self, fault: Fault) -> None:
        self._copy.plant(fault.file, fault.planted_in(self._copy.read(fault.file)))

    def _try(self, fault: Fault, batches: list[Batch], facts: dict[str, Any]) -> bool:
        if fault.regenerate and batches and not self._runner.regenerate():
            self._copy.restore(fault.file)
            if not self._runner.stopping and not self._runner.regenerate():
                raise CopyError(f"`{REGENERATED}` fails in {self._copy.folder} without a fault, too")
            facts |= {"outcome": CAUGHT, "test": REGENERATED, "ring": 0, "gate": True}
            return True
        for batch in batches:
            while not self._runner.stopping:
                outcome = self._runner.run(batch, facts["unreliable"])
                facts["tests"] += outcome.tests
                if not outcome.failed:
                    facts["tried"][batch.name] = batch.key
                    break
                if self._runner.stopping or self._passes_without(fault, batch, outcome.failed):
                    path = outcome.failed.partition("::")[0].partition(" ")[0]
                    facts |= {
                        "outcome": TIMEOUT if outcome.timeout else CAUGHT,
                        "test": outcome.failed,
                        "ring": batch.ring,
                        "gate": batch.gate,
                        "test_blob": self._choosing.blobs.get(path, ""),
                    }
                    return True
                if outcome.failed in facts["unreliable"]:
                    raise CopyError(f"{outcome.failed} fails in {self._copy.folder} without a fault, too")
                self._say(f"  fails without a fault too, left out: {outcome.failed}")
                facts["unreliable"].append(outcome.failed)
        return False

    def _passes_without(self, fault: Fault, batch: Batch, failed: str) -> bool:
        """Runs the test without the fault, and plants it again."""
        only = failed.removesuffix(COLLECTION)
        self._copy.restore(fault.file)
        try:
            return not self._runner.run(batch, only=only).failed
        finally:
            self._plant(fault)
            if fault.regenerate:
                self._runner.regenerate()


def reach_ring_3(faults: Iterable[Fault], results: Results, rank: Callable[[str], str]) -> list[Fault]:
    """At most REACH_RING_3 faults that rings 0 to 2 of the gate have not caught, in a fixed order.

    Those that ring 3 has caught since are among them: another run takes no others in their place.
    """

    def is_left(row: Result | None) -> bool:
        return row is None or not (row.is_caught and row.gate and row.ring < HOSTS_RING)

    left = [fault for fault in faults if is_left(results.rows.get(fault.id))]
    left.sort(key=lambda fault: (fault.part not in RING_3_FIRST, rank(fault.id)))
    return left[:REACH_RING_3]
