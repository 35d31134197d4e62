"""Runs the steps of a selection: lanes side by side, with progress. Ends the processes that a step leaves."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from tools.kit.endings import ENDINGS
from tools.kit.output import Output, say
from tools.kit.whole import end_marked
from tools.proof.durations import STEP_VARIABLE
from tools.proof.steps import ROOT, Selection, Step

LOGS = ROOT / "build" / "logs"
# Linux may share processor time between sessions (autogroup). Then `nice` counts within a session only, and the session
# needs the lowest priority too.
HUMBLE = ("sh", "-c", 'echo 19 2>/dev/null > /proc/self/autogroup; exec nice -n 19 "$@"', "humble")


@dataclass(frozen=True)
class Row:
    """One row of the closing table.

    result: passed, FAILED (code), INTERRUPTED, NOT RUN or LEFT OUT. processor_s: of the step and of all processes that
    ended as its descendants.
    """

    name: str
    result: str
    seconds: float = 0.0
    processor_s: float = 0.0
    note: str = ""


class Runner:
    """Runs each step in a session of its own, and passes a signal on to each running step once.

    environ: added to the environment of each step.
    """

    def __init__(self, environ: dict[str, str] | None = None, logs: Path = LOGS) -> None:
        self.interrupts = 0
        self._environ = environ or {}
        self._logs = logs
        self._children: list[subprocess.Popen[str]] = []

    def catch_signals(self) -> None:
        for number in ENDINGS:
            signal.signal(number, self._interrupt)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self.interrupts += 1
        if running := [child for child in self._children if child.returncode is None]:
            again = "each step now reports its results so far; a second signal kills it"
            say(f"\n== interrupted{': ' + again if self.interrupts == 1 else ''}")
            for child in running:
                self._pass_on(child)

    def _pass_on(self, child: "subprocess.Popen[str]") -> None:
        with contextlib.suppress(ProcessLookupError):
            if child.returncode is None:
                os.killpg(child.pid, signal.SIGINT if self.interrupts == 1 else signal.SIGKILL)

    def run(self, step: Step, *, held: bool = False) -> Row:
        """Runs a step, then ends the processes that it leaves. held: the output is printed as a whole at the end."""
        started = time.monotonic()
        mark = f"{os.getpid()}-{step.name}"
        try:
            child = subprocess.Popen(
                [*HUMBLE, *step.command] if step.humble else step.command,
                cwd=ROOT / step.folder,
                env={**os.environ, **self._environ, **step.environ, STEP_VARIABLE: mark},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        except OSError as e:
            return Row(step.name, "FAILED (start)", note=f"{e.filename or step.command[0]}: {e.strerror}")
        self._children.append(child)
        if self.interrupts:  # by a signal that came while it was started
            self._pass_on(child)
        output = Output(step.name, self._logs / f"{step.name}.log", held=held)
        copier = threading.Thread(target=output.copy, args=(child,), daemon=True)
        copier.start()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        left = end_marked(mark, variable=STEP_VARIABLE)
        copier.join(5.0)  # a process that was left may have kept the output open
        output.print_held()
        for name in left:
            say(f"== {step.name} left a process, now ended: {name}")
        result = "passed" if child.returncode == 0 else f"FAILED ({child.returncode})"
        note = "; ".join([*output.closing[-1:], *([f"left {len(left)} processes"] if left else [])])
        processor_s = usage.ru_utime + usage.ru_stime
        return Row(
            step.name,
            "INTERRUPTED" if self.interrupts else result,
            time.monotonic() - started,
            processor_s,
            note,
        )

    def run_all(self, selection: Selection) -> list[Row]:
        """Returns one row for each step, in the order of the selection."""
        rows: dict[str, Row] = {}
        count = len(selection.steps)
        side_by_side = len(selection.lanes) > 1

        def run(step: Step, *, held: bool) -> None:
            if self.interrupts:
                rows[step.name] = Row(step.name, "NOT RUN", note="interrupted before")
            elif step.needs in rows and rows[step.needs].result != "passed":
                rows[step.name] = Row(step.name, "NOT RUN", note=f"{step.needs} failed")
            else:
                say(f"\n== {selection.steps.index(step) + 1}/{count} {step.name}: {step.what}")
                rows[step.name] = self.run(step, held=held)
                if held:
                    say(f"== {step.name}: {rows[step.name].result} after {rows[step.name].seconds:.0f} s")

        def run_lane(lane: tuple[Step, ...]) -> None:
            for step in lane:
                run(step, held=side_by_side)

        for step in selection.prepare:
            run(step, held=False)
        lanes = [
            threading.Thread(target=run_lane, args=(lane,), name=f"lane-{number}")
            for number, lane in enumerate(selection.lanes)
        ]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()
        return [rows[step.name] for step in selection.steps]
