"""`python -m tests.demo [--stay 0|1]`: plays the demo. Exit code 0 only if every step was seen."""

import argparse
import signal
import sys
import threading
import time
from types import FrameType

from tests.demo.narrator import Narrator, StepMissedError
from tests.demo.play import play
from tests.demo.stage import Stage
from tests.testbed.shared.api import ApiError
from tests.testbed.shared.binaries import BinariesMissing
from tests.testbed.shared.processes import ProcessError

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.demo", description="The real kube-scheduler obeys health pods."
    )
    parser.add_argument("--stay", choices=("0", "1"), default="1", help="1: stay up for you to try; 0: play and end")
    stay = parser.parse_args(argv).stay == "1"
    signal.signal(signal.SIGTERM, _as_interrupt)
    stage = Stage(lambda text: _write(f"      ({text})"))
    try:
        return _run(stage, stay=stay)
    finally:
        # A second Ctrl-C must not leave half of it running.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        stage.strike()
        _write("All of it has ended.")


def _run(stage: Stage, *, stay: bool) -> int:
    narrator = Narrator(_write)
    started = time.monotonic()
    _write("readygate: new pods stay off nodes whose health pod is not Ready. Ctrl-C ends everything at any time.")
    try:
        play(stage, narrator)
    except (StepMissedError, ProcessError, BinariesMissing, ApiError) as e:
        narrator.table()
        _write(f"FAILED: {e}")
        _write(f"Logs: {stage.logs}")
        return EXIT_FAILED
    except KeyboardInterrupt:
        _write("\nInterrupted: ending everything.")
        return EXIT_INTERRUPTED
    narrator.table()
    _write(f"Every step was seen, in {time.monotonic() - started:.0f} s. Logs: {stage.logs}")
    if stay:
        _stay(stage)
    return 0


def _stay(stage: Stage) -> None:
    """Until Ctrl-C."""
    _write("\nIt stays up. Try:\n")
    for what, command in stage.what_to_try():
        _write(f"    # {what}")
        _write(f"    {command}")
    _write("\nCtrl-C here ends it.")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        _write("\nEnding everything.")


def _as_interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _write(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
