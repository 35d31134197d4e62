"""The demo from its first line to its last: play, table, stay if wanted, end everything."""

import argparse
import os
import sys
import threading
import time

from tools.demo.narrator import Narrator, StepMissedError
from tools.demo.play import play
from tools.demo.stage import Stage
from tools.kit.child import ProcessError
from tools.kit.endings import EXIT_INTERRUPTED
from tools.testbed.shared.api import ApiError
from tools.testbed.shared.binaries import BinariesMissing

EXIT_FAILED = 1


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.demo", description="The real kube-scheduler obeys health pods."
    )
    parser.add_argument("--stay", choices=("0", "1"), default="1", help="1: stay up for you to try; 0: play and end")
    stay = parser.parse_args(argv).stay == "1"
    narrator = Narrator(_write)
    stage = Stage(lambda text: narrator.note(f"({text})"))
    try:
        return _run(stage, narrator, stay=stay)
    finally:
        stage.strike()
        _write("All of it has ended.")


def _run(stage: Stage, narrator: Narrator, *, stay: bool) -> int:
    started = time.monotonic()
    try:
        narrator.paragraph("readygate: new pods stay off nodes whose health pod is not Ready. Ctrl-C ends everything.")
        play(stage, narrator)
        narrator.table()
        took_s = time.monotonic() - started
        narrator.paragraph(f"Every step was seen, in {took_s:.0f} s. Logs: {stage.logs}")
        if stay:
            _stay(stage)
    except (StepMissedError, ProcessError, BinariesMissing, ApiError) as e:
        narrator.table()
        narrator.paragraph(f"FAILED: {e}")
        if stage.logs.exists():
            narrator.paragraph(f"Logs: {stage.logs}")
        return EXIT_FAILED
    except KeyboardInterrupt:
        _write("\nEnding everything.")
        return EXIT_INTERRUPTED
    return 0


def _stay(stage: Stage) -> None:
    """Until it is interrupted, which is how it should end."""
    _write("\nIt stays up. Try:\n")
    for what, command in stage.what_to_try():
        _write(f"    # {what}")
        _write(f"    {command}")
    _write("\nCtrl-C here ends it.")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        _write("\nEnding everything.")


def _write(line: str) -> None:
    try:
        print(line, flush=True)
    except OSError:  # nobody reads any more, as when the terminal was closed: what was started must still be ended
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - for the rest of this process
