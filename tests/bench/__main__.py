"""python -m tests.bench: measures, prints a table, saves build/bench.json. Loopback only; bounded in count and time."""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench import (
    cold_start,
    filter_latency,
    gates,
    growth,
    kick,
    layers,
    outage,
    peak_memory,
    people,
    reload,
    scheduler_rate,
    stalled,
    status,
    stop,
    updates,
)
from tests.bench.arms import ROOT
from tests.bench.figures import Figure, save, table
from tests.bench.processes import MeasurementError
from tests.kit.child import ProcessError
from tests.kit.endings import EXIT_INTERRUPTED, interrupt_once
from tests.testbed.shared.binaries import BinariesMissing

SUITES: dict[str, Callable[..., list[Figure]]] = {
    "filter": filter_latency.measure,
    "gates": gates.measure,
    "layers": layers.measure,
    "updates": updates.measure,
    "cold-start": cold_start.measure,
    "growth": growth.measure,
    "stalled": stalled.measure,
    "people": people.measure,
    "stop": stop.measure,
    "reload": reload.measure,
    "peak-memory": peak_memory.measure,
    "kick": kick.measure,
    "outage": outage.measure,
    "status": status.measure,
    "scheduler": scheduler_rate.measure,
}
BUSY_LOAD = 0.7


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(SUITES), help="one suite; may be repeated")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and calls: for a look, not for the record")
    parser.add_argument("--save", type=Path, default=ROOT / "build" / "bench.json", help="default: build/bench.json")
    arguments = parser.parse_args()
    started = time.monotonic()

    def progress(text: str) -> None:
        print(f"[{time.monotonic() - started:5.0f} s] {text}", flush=True)

    cores, load = os.cpu_count() or 1, os.getloadavg()[0]
    progress(f"{cores} cores; load before the start {load:.1f}")
    if load > BUSY_LOAD:
        progress("other programs are running: ratios may serve for a look, nothing here for the record")
    figures: list[Figure] = []
    failed = 0
    for name in arguments.only or SUITES:
        try:
            figures += SUITES[name](progress, quick=arguments.quick)
        except (MeasurementError, BinariesMissing, ProcessError) as e:
            failed += 1
            print(f"{name}: FAILED: {e}", file=sys.stderr, flush=True)
        save(figures, arguments.save)  # after each suite: what comes later may be interrupted
    print(f"\n{table(figures)}\n\nsaved in {arguments.save}")
    return 1 if failed else 0


if __name__ == "__main__":
    interrupt_once()  # what a suite has started is ended on the way out
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
