"""What both benchmarks do: run suites one after the other, print a table, save the figures."""

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tools.bench.figures import Figure, save, table
from tools.bench.processes import MeasurementError
from tools.kit.child import ProcessError
from tools.kit.commands import BuildError
from tools.kit.endings import EXIT_INTERRUPTED, interrupt_once
from tools.testbed.shared.binaries import BinariesMissing
from tools.testbed.shared.removal import LeftoverError

BUSY_LOAD = 0.7

Suites = Mapping[str, Callable[..., list[Figure]]]
"""Each takes `progress`, which says a line, and `quick`."""


def run(module: str, suites: Suites, saved: Path, description: str | None) -> None:
    """`python -m MODULE`; exits. `saved`: where the figures go unless told otherwise."""
    interrupt_once()  # what a suite has started is ended on the way out
    try:
        sys.exit(_main(module, suites, saved, description))
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


def _main(module: str, suites: Suites, saved: Path, description: str | None) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--only", action="append", choices=list(suites), help="one suite; may be repeated")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and calls: for a look, not for the record")
    parser.add_argument("--save", type=Path, default=saved, help=f"default: {saved.parent.name}/{saved.name}")
    arguments = parser.parse_args()
    started = time.monotonic()

    def progress(text: str) -> None:
        print(f"[{time.monotonic() - started:5.0f} s] {text}", flush=True)

    cores, load = os.cpu_count() or 1, os.getloadavg()[0]
    python = f"{platform.python_version()} of {Path(sys.executable).resolve().parent}"
    progress(f"{cores} cores; Python {python}; load before the start {load:.1f}")
    if load > BUSY_LOAD:
        progress("other programs are running: ratios may serve for a look, nothing here for the record")
    figures: list[Figure] = []
    failed = 0
    for name in arguments.only or suites:
        try:
            figures += suites[name](progress, quick=arguments.quick)
        except (MeasurementError, BinariesMissing, BuildError, LeftoverError, ProcessError) as e:
            failed += 1
            print(f"{name}: FAILED: {e}", file=sys.stderr, flush=True)
        save(figures, arguments.save)  # after each suite: what comes later may be interrupted
    print(f"\n{table(figures)}\n\nsaved in {arguments.save}")
    return 1 if failed else 0
