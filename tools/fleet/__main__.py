"""Virtual nodes against one API server: do they register and stay Ready, and what does that cost?

Full nodes are agents in mode `kubelet` with made-up containers. Light nodes only renew their Lease and their status.
A control plane of ring 2 is started for them and ended with them.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from tools.bench.figures import TARGETS, Figure, save, table
from tools.fleet.fleet import Fleet, Size, names_of
from tools.fleet.hold import hold, ready_within
from tools.kit.child import ProcessError
from tools.kit.endings import EXIT_INTERRUPTED, interrupt_once
from tools.testbed.plane.plane import Plane
from tools.testbed.shared.api import ApiError
from tools.testbed.shared.binaries import BinariesMissing

SAVED = Path(__file__).resolve().parents[2] / "build" / "fleet.json"
ETCD_BYTES = 2 << 30  # 500 renewals a second for the five minutes that the API server lets history stand
NAMESPACE = "default"
EXIT_FAILED, EXIT_CANNOT = 1, 3
EXIT_CODES = """exit codes:
  0    all nodes became Ready and stayed Ready, and the figures are within their targets
  1    a node did not become Ready or did not stay Ready, or a figure is beyond its target
  2    wrong usage
  3    the control plane or a process with nodes could not be started, or ended by itself
  130  ended by Ctrl-C or SIGTERM; all that was started has ended
"""


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.fleet",
        description=__doc__,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--full", type=_count, default=500, help="agents in mode kubelet (default: 500)")
    parser.add_argument("--light", type=_count, default=4500, help="nodes with Lease and status only (default: 4500)")
    parser.add_argument("--pods", type=_count, default=1, help="pods on each full node (default: 1)")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long they must stay Ready (default: 10)")
    parser.add_argument("--ramp", type=float, default=120.0, help="seconds within which all register (default: 120)")
    parser.add_argument("--full-in-process", type=_some, default=125, metavar="N", help="at most (default: 125)")
    parser.add_argument("--light-in-process", type=_some, default=4500, metavar="N", help="at most (default: 4500)")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.add_argument("--save", type=Path, default=SAVED, help="default: build/fleet.json")
    options = parser.parse_args()
    if options.full + options.light == 0:
        parser.error("a fleet needs nodes: --full or --light")
    return options


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of 0 or more")
    return int(text)


def _some(text: str) -> int:
    if _count(text) == 0:
        raise argparse.ArgumentTypeError("0 is too few")
    return int(text)


def _run(options: argparse.Namespace, say: Callable[[str], None]) -> list[Figure]:
    """Raises ProcessError, BinariesMissing, ApiError."""
    size = Size(
        options.full,
        options.light,
        options.full_in_process,
        options.light_in_process,
        ramp_s=options.ramp,
    )
    names = names_of(size)
    with Plane(
        "fleet", nodes=names, node_lifecycle=True, scheduler=False, etcd_bytes=ETCD_BYTES, progress=say
    ) as plane:
        plane.wait_namespace(NAMESPACE)
        began = time.monotonic()
        with Fleet(plane, size) as fleet:
            say(f"{len(names)} nodes in {fleet.processes} processes register within {options.ramp:.0f} s")
            ready_s = ready_within(plane, fleet, pods=options.pods, namespace=NAMESPACE, began=began, say=say)
            say(f"all are Ready after {ready_s:.0f} s; they must stay so for {options.minutes:g} minutes")
            return hold(plane, fleet, seconds=60 * options.minutes, ready_s=ready_s, say=say)


def main() -> int:
    options = _options()
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - started:5.0f} s] {text}", file=sys.stderr, flush=True)

    load = os.getloadavg()[0]
    say(f"{os.cpu_count()} cores; load before the start {load:.1f}; {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
    interrupt_once()
    try:
        figures = _run(options, say)
    except KeyboardInterrupt:
        say("interrupted")
        return EXIT_INTERRUPTED
    except AssertionError as e:
        say(f"FAILED: {e}")
        return EXIT_FAILED
    except (ProcessError, BinariesMissing, ApiError) as e:
        say(f"FAILED: {e}")
        return EXIT_CANNOT
    save(figures, options.save)
    if options.output == "json":
        print(json.dumps([asdict(figure) for figure in figures], indent=1))
    else:
        print(f"\n{table(figures)}\n\nsaved in {options.save}")
    missed = [one.name for one in figures if one.name in TARGETS and not TARGETS[one.name].met(one.value)]
    return EXIT_FAILED if missed else 0


if __name__ == "__main__":
    sys.exit(main())
