"""Runs faults one by one: plants it in the copy, runs its tests until one fails, and proves the catch without it.

A catch is a test that fails with the fault and passes without it. A test that fails without it too is left out, and the
others go on. A run that hangs is ended; that is a catch if the test that hung passes without the fault.
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
from tools.power.copied import Copy
from tools.power.fault import Fault
from tools.power.results import CAUGHT, TIMEOUT, UNCAUGHT, UNCOVERED, Result, Results, merged

MARK_VARIABLE = "READYGATE_POWER_RUN"
START_S, SLOWDOWN = 120.0, 20.0
"""A run of pytest may take this long, and so many times what its tests took when they were measured."""
TEST_TIMEOUT_S = {0: 120, 1: 120, 2: 300, HOSTS_RING: 1800}
REGENERATED = "make manifests"
COLLECTION = " (collection)"
"""After the name of a file whose tests could not be collected."""
HUNG = "tests that could not be collected in time"
REACH_RING_3 = 30
"""How many faults may reach ring 3 in a campaign."""
RING_3_FIRST = ("playbooks", "chart", "units")


@dataclass(frozen=True)
class Outcome:
    """Of one run of pytest. failed: the first test that failed; "" if none did. timeout: it hung."""

    failed: str = ""
    timeout: bool = False
    tests: int = 0


Say = Callable[[str], None]


class Runner:
    """Runs batches of tests in a copy. Everything that a test started is ended with its run."""

    def __init__(self, copy: Copy, python: str = sys.executable) -> None:
        self._copy = copy
        self._python = python
        self._child: subprocess.Popen[bytes] | None = None
        self.stopping = False

    def stop(self) -> None:
        """From a signal handler: ends the run that goes on; what it found is not recorded."""
        self.stopping = True
        if self._child is not None and self._child.poll() is None:
            os.killpg(self._child.pid, signal.SIGKILL)

    def run(self, batch: Batch, without: Iterable[str] = (), only: str = "") -> Outcome:
        """only: this test instead of the batch's; a file's name: its tests are collected, and not run."""
        with tempfile.TemporaryDirectory(prefix="rgp-") as folder:
            record = Path(folder) / "record"
            choice = Path(folder) / "choice.json"
            files = [] if only else list(batch.files)
            tests = [only] if only else list(batch.tests)
            facts = {
                "tests": tests,
                "files": files,
                "without": list(without),
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
            argv += [f"--basetemp={folder}/t", *([only.partition("::")[0]] if only else batch.paths)]
            ended = self._wait(argv, batch, choice, START_S + SLOWDOWN * batch.seconds)
            return _outcome([json.loads(line) for line in record.read_text().splitlines()], hung=not ended)

    def _wait(self, argv: list[str], batch: Batch, choice: Path, limit_s: float) -> bool:
        """Whether pytest ended by itself."""
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
        try:
            self._child.wait(limit_s)
            return True
        except subprocess.TimeoutExpired:
            return False
        finally:
            if self._child.poll() is None:
                os.killpg(self._child.pid, signal.SIGKILL)
                self._child.wait()
            end_marked(mark, variable=MARK_VARIABLE)

    def regenerate(self) -> bool:
        """Makes again what is made of the chart; whether that went well."""
        argv = [self._python, "-m", "tests.charts.manifests"]
        done = subprocess.run(argv, cwd=self._copy.folder, env=self._copy.environ(), capture_output=True, timeout=600)
        return done.returncode == 0


def _outcome(lines: list[dict[str, Any]], *, hung: bool) -> Outcome:
    began = [line["began"] for line in lines if "began" in line]
    failed = [line for line in lines if "failed" in line]
    if failed:
        return Outcome(failed[0]["failed"], failed[0]["timeout"], len(began))
    if hung:
        return Outcome(began[-1] if began else HUNG, timeout=True, tests=len(began))
    return Outcome(tests=len(began))


class Campaign:
    def __init__(self, copy: Copy, choosing: Choosing, runner: Runner, results: Results, say: Say) -> None:
        self._copy = copy
        self._choosing = choosing
        self._runner = runner
        self._results = results
        self._say = say

    def holds(self, fault: Fault, rings: Iterable[int]) -> bool:
        """Whether the result that is there says all that these rings could."""
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
        return self._choosing.blobs.get(path, "") == row.test_blob and self._choosing.in_gate(row.test) is row.gate

    def run(self, fault: Fault, rings: Iterable[int]) -> Result | None:
        """Runs what is not known yet of the fault, and records it. None when it was stopped in the middle."""
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
            caught = self._planted(fault) and self._try(fault, waiting, facts)
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

    def _planted(self, fault: Fault) -> bool:
        self._copy.plant(fault.file, fault.planted_in(self._copy.read(fault.file)))
        return True

    def _try(self, fault: Fault, batches: list[Batch], facts: dict[str, Any]) -> bool:
        if fault.regenerate and batches and not self._runner.regenerate():
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
                self._say(f"  fails without a fault too, left out: {outcome.failed}")
                facts["unreliable"].append(outcome.failed)
        return False

    def _passes_without(self, fault: Fault, batch: Batch, failed: str) -> bool:
        """Runs the test without the fault, and plants it again."""
        if failed == HUNG:
            return True
        only = failed.removesuffix(COLLECTION)
        self._copy.restore(fault.file)
        try:
            return not self._runner.run(batch, only=only).failed
        finally:
            self._planted(fault)
            if fault.regenerate:
                self._runner.regenerate()


def reach_ring_3(faults: Iterable[Fault], results: Results, rank: Callable[[str], str]) -> list[Fault]:
    """At most REACH_RING_3 of those that the gate's other rings have not caught, in a fixed order."""
    left = [fault for fault in faults if not ((row := results.rows.get(fault.id)) and row.is_caught and row.gate)]
    left.sort(key=lambda fault: (fault.part not in RING_3_FIRST, rank(fault.id)))
    return left[:REACH_RING_3]
