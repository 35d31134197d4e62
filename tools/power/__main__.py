"""`python -m tools.power [run|map|list|report|coverage]`: plants faults and reports which tests catch them.

run       plants the faults that have no result yet (the default command)
map       measures which tests cover which lines, without planting anything
list      prints the catalogue
report    prints the tables, and compares them with what is demanded
coverage  prints line and branch coverage of each package under the rings that were measured

Exit code: 0 done. 1 `report`: less is caught than is demanded. 2 it cannot run: the cause is printed. 3 `run` stopped
at --limit or --minutes, and faults are left. 130 ended by a signal; the next run begins with the interrupted fault.
"""

import argparse
import json
import os
import signal
import sys
import time
from types import FrameType
from typing import Any

from tools.kit.endings import ENDINGS, EXIT_INTERRUPTED, interrupt_once
from tools.power import catalogue, covering, report
from tools.power.campaign import Campaign, Runner, reach_ring_3
from tools.power.choosing import HOSTS_RING, Choosing
from tools.power.copied import FOLDER, ROOT, Copy, CopyError
from tools.power.fault import Fault, FaultError
from tools.power.results import Results

EXIT_LESS, EXIT_CANNOT, EXIT_LEFT = 1, 2, 3
MEASURED = FOLDER / "copy"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.power", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", nargs="?", default="run", choices=["run", "map", "list", "report", "coverage"])
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        choices=catalogue.parts(),
        metavar="PART",
        help="this part; may be repeated",
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="TEXT",
        help="only faults whose id contains this; may be repeated",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="at most N faults in this run")
    parser.add_argument("--minutes", type=float, metavar="M", help="begin no fault after M minutes")
    parser.add_argument("--rings", type=_rings, default=(0, 1, 2, 3), metavar="0,1", help="these rings (default: all)")
    parser.add_argument("--old-map", action="store_true", help="use the present map although sources have changed")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    return parser


def _rings(text: str) -> tuple[int, ...]:
    rings = tuple(sorted({int(word) for word in text.split(",")}))
    if not set(rings) <= {0, 1, 2, 3}:
        raise argparse.ArgumentTypeError(f"{text}: rings are 0, 1, 2 and 3")
    return rings


def main(argv: list[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    interrupt_once()
    try:
        return _COMMANDS[arguments.command](arguments)
    except (CopyError, FaultError) as e:
        _say(f"cannot run: {e}")
        return EXIT_CANNOT
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _map(arguments: argparse.Namespace) -> int:
    copy = Copy(folder=MEASURED)
    with copy.alone():
        copy.renew()
        covering.need(copy, arguments.rings, _say)
    return 0


def _list(arguments: argparse.Namespace) -> int:
    for fault in catalogue.catalogue(Copy(folder=ROOT), arguments.only):
        facts = {
            "id": fault.id,
            "part": fault.part,
            "file": fault.file,
            "what": fault.what,
            "half": catalogue.half(fault),
        }
        print(json.dumps(facts) if arguments.output == "json" else f"{fault.part:10} {fault.file}: {fault.what}")
    return 0


def _report(arguments: argparse.Namespace) -> int:
    found = _tables(catalogue.catalogue(Copy(folder=ROOT), arguments.only))
    print(json.dumps(found) if arguments.output == "json" else report.text(found))
    return EXIT_LESS if report.falls_short(found) else 0


def _tables(faults: list[Fault]) -> dict[str, Any]:
    rows = Results().rows
    present = [rows[fault.id] for fault in faults if fault.id in rows]
    return report.tables(present, without_result=len(faults) - len(present))


def _coverage(arguments: argparse.Namespace) -> int:
    rings = [ring for ring in arguments.rings if ring != HOSTS_RING]
    rows = covering.totals(rings, MEASURED)
    print(json.dumps(rows) if arguments.output == "json" else report.coverage_text(rows))
    return 0


class _Run:
    """One run of the campaign, with its bounds."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._started = time.monotonic()
        self._done = 0
        self.copy = Copy(folder=FOLDER / "planted")
        self.runner = Runner(self.copy)
        self.results = Results()

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        self.runner.stop()

    def go(self) -> int:
        if not self._arguments.old_map:
            _map(self._arguments)
        for number in ENDINGS:
            signal.signal(number, self.stop)
        with self.copy.alone():
            return self._go()

    def _go(self) -> int:
        self.copy.renew()
        covered = covering.load(self._arguments.rings)
        campaign = Campaign(self.copy, Choosing(self.copy, covered), self.runner, self.results, _say)
        listed = catalogue.catalogue(self.copy, self._arguments.only)
        texts = self._arguments.fault or [""]
        faults = [fault for fault in listed if any(text in fault.id for text in texts)]
        rings = [ring for ring in self._arguments.rings if ring != HOSTS_RING]
        code = self._all(campaign, faults, rings)
        if code == 0 and HOSTS_RING in self._arguments.rings:
            code = self._all(campaign, reach_ring_3(faults, self.results, catalogue.rank), self._arguments.rings)
        if self._arguments.output == "table":
            print(report.text(_tables(listed)))
        return code

    def _all(self, campaign: Campaign, faults: list[Fault], rings: list[int]) -> int:
        waiting = [fault for fault in faults if not campaign.holds(fault, rings)]
        _say(f"{len(faults)} faults, rings {', '.join(map(str, rings))}: {len(waiting)} to run")
        for number, fault in enumerate(waiting, 1):
            if self._over():
                return EXIT_LEFT
            _say(f"{number}/{len(waiting)} {fault.part}: {fault.file}, {fault.what}")
            row = campaign.run(fault, rings)
            if row is None:
                return EXIT_INTERRUPTED
            self._done += 1
            by = f" by {row.test}{'' if row.gate else ' (not in the gate)'}" if row.test else ""
            _say(f"  {row.outcome}{by}, {row.seconds:.0f} s, {row.tests} tests")
            if self._arguments.output == "json":
                print(json.dumps(row.__dict__), flush=True)
        return 0

    def _over(self) -> bool:
        limit, minutes = self._arguments.limit, self._arguments.minutes
        late = minutes is not None and time.monotonic() - self._started > minutes * 60
        return late or (limit is not None and self._done >= limit)


def _run(arguments: argparse.Namespace) -> int:
    return _Run(arguments).go()


_COMMANDS = {"run": _run, "map": _map, "list": _list, "report": _report, "coverage": _coverage}

if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
