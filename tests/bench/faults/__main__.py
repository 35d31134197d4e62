"""python -m tests.bench.faults: real faults on the hosts of ring 3; prints a table, saves build/bench-faults.json.

Root, on Debian or Ubuntu. On hosts that are up (`python -m tests.testbed --ring hosts up`) it takes readygate off at
its end and leaves them; else it makes hosts and ends them. Whatever ends it (Ctrl-C, SIGTERM): all faults are healed.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from images.commands import BuildError
from tests.bench.arms import ROOT
from tests.bench.faults import dead, plan, results
from tests.bench.faults.rounds import Player, Round
from tests.bench.faults.stage import Stage, on_hosts
from tests.bench.faults.watch import Watch
from tests.bench.figures import Figure, save, table
from tests.bench.processes import MeasurementError
from tests.hosts.deployment.probing import clear
from tests.kit.endings import EXIT_INTERRUPTED, interrupt_once
from tests.testbed.hosts.errors import HostsError
from tests.testbed.shared.api import ApiError
from tests.testbed.shared.binaries import BinariesMissing

SAVED = ROOT / "build" / "bench-faults.json"
RECORD = ROOT / "tests" / "bench" / "faults" / "measured.json"
LIMITS_S = {"fast": 30.0, "default": 75.0}
QUIET_S = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.faults", description=__doc__)
    checks = sorted({fault.check for fault in plan.TRIED.values()})
    parser.add_argument("--only", action="append", choices=[*checks, "dead-node", "cost"], help="may be repeated")
    parser.add_argument("--rounds", type=int, default=7, help="of each fault, on both workers; default: 7")
    parser.add_argument("--default-rounds", type=int, default=0, help="rounds of the profile `default` after them")
    parser.add_argument("--minutes", type=float, default=1e9, help="begins no round after that")
    parser.add_argument("--keep", action="store_true", help="leave hosts and readygate as they are")
    parser.add_argument("--installed", action="store_true", help="readygate is there as an earlier --keep has left it")
    parser.add_argument(
        "--record", metavar="TEXT", help="the saved figures into docs/checks.md, TEXT: how they were taken"
    )
    parser.add_argument("--save", type=Path, default=SAVED, help="default: build/bench-faults.json")
    arguments = parser.parse_args()
    if arguments.record:
        figures = json.loads(arguments.save.read_text())
        RECORD.write_text(json.dumps({"taken": arguments.record, "figures": figures}, indent=1) + "\n")
        print(f"{RECORD.relative_to(ROOT)} written: now make manifests")
        return 0
    interrupt_once()
    run = Run(arguments)
    try:
        run.whole()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except (MeasurementError, HostsError, ApiError, BinariesMissing, BuildError) as e:
        print(f"bench-faults: {e}", file=sys.stderr)
        return 1
    return 1 if run.trouble else 0


class Run:
    """One run; `rounds` grows, and what was measured is saved after each of them."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._started = time.monotonic()
        self._rounds: list[Round] = []
        self._dead_s: list[float] = []
        self._cost: tuple[float, float] | None = None
        self._loads: list[float] = []

    @property
    def trouble(self) -> bool:
        return any(not each.whole for each in self._rounds)

    def progress(self, text: str) -> None:
        print(f"[{time.monotonic() - self._started:5.0f} s] {text}", flush=True)

    def whole(self) -> None:
        self.progress(f"{os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}")
        with (
            tempfile.TemporaryDirectory() as folder,
            on_hosts(Path(folder), self.progress, keep=self._arguments.keep) as stage,
        ):
            if not self._arguments.installed:
                stage.install("fast", anew=False)
            with Watch(stage.hosts, stage.hosts.names) as watch:
                self._measured(stage, watch)
        print(f"\n{table(self._figures())}\n\nsaved in {self._arguments.save}")

    def _measured(self, stage: Stage, watch: Watch) -> None:
        player = Player(stage.hosts, stage.api, watch, plan.TRIED)
        try:
            if self._wanted("cost"):
                self.progress(f"cost: {QUIET_S:.0f} s without a fault")
                self._cost = stage.cost(stage.workers[0], QUIET_S, time.sleep)
                self._saved()
            self._profile(stage, player, "fast", self._arguments.rounds)
            if self._wanted("dead-node"):
                for each in dead.nodes(stage, watch, self.progress):
                    self._dead_s.append(each)
                    self._saved()
            if self._arguments.default_rounds:
                stage.install("default", anew=True)
                self._profile(stage, player, "default", self._arguments.default_rounds)
        finally:
            self.progress("all faults are taken back")
            player.heal_all(stage.workers, self.progress)
            clear(stage.api)

    def _wanted(self, name: str) -> bool:
        return not self._arguments.only or name in self._arguments.only

    def _profile(self, stage: Stage, player: Player, profile: str, rounds: int) -> None:
        for number in range(rounds):
            for fault in plan.TRIED.values():
                if not self._wanted(fault.check):
                    continue
                if time.monotonic() - self._started > 60 * self._arguments.minutes:
                    self.progress("the time is over")
                    return
                self._loads.append(os.getloadavg()[0])
                # Kubelets are one another's peers of servicePath: two that stand still are another fault. And a line of
                # the one kernel's log closes both nodes, whoever has written it.
                alone = fault.name in (*plan.SLOW, *plan.EVERYWHERE)
                for nodes in [[name] for name in stage.workers] if alone else [stage.workers]:
                    for each in player.play(fault, nodes, profile, LIMITS_S[profile]):
                        self._rounds.append(each)
                        self.progress(f"{number + 1}/{rounds} {_said(each)}")
                self._saved()

    def _figures(self) -> list[Figure]:
        return results.figures(self._rounds, self._dead_s, self._cost)

    def _saved(self) -> None:
        save(self._figures(), self._arguments.save)
        raw = {"rounds": [asdict(each) for each in self._rounds], "dead_s": self._dead_s, "loads": self._loads}
        self._arguments.save.with_name(f"{self._arguments.save.stem}-rounds.json").write_text(json.dumps(raw, indent=1))


def _said(each: Round) -> str:
    if each.trouble:
        return f"{each.fault} {each.node}: {each.trouble}"

    def seconds(value: float | None) -> str:
        return "never" if value is None else f"{value:.2f}"

    landed = "; A POD LANDED" if each.landed else ""
    return (
        f"{each.fault} {each.node}: closed {seconds(each.closed_s)}, pod refused {seconds(each.refused_s)}, healed: "
        f"open {seconds(each.opened_s)}, pod bound {seconds(each.bound_s)} s{landed}"
    )


if __name__ == "__main__":
    sys.exit(main())
