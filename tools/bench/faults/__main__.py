"""python -m tools.bench.faults: real faults on the hosts of ring 3; prints a table, saves build/bench-faults.json.

Root, on Debian or Ubuntu. On hosts that are up (`python -m tools.testbed --ring hosts up`) it takes readygate off at
its end and leaves them; else it makes hosts and ends them. Whatever ends it (Ctrl-C, SIGTERM): all faults are healed.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from tests.hosts.deployment.probing import clear
from tools.bench.arms import ROOT
from tools.bench.faults import dead, plan, results
from tools.bench.faults.rounds import Player, Round
from tools.bench.faults.stage import Stage, on_hosts
from tools.bench.faults.watch import Watch
from tools.bench.faults.words import EXTENDER, Words
from tools.bench.figures import Figure, save, table
from tools.bench.processes import MeasurementError
from tools.kit.commands import BuildError
from tools.kit.endings import EXIT_INTERRUPTED, interrupt_once
from tools.testbed.hosts.errors import HostsError
from tools.testbed.shared.api import ApiError
from tools.testbed.shared.binaries import BinariesMissing

SAVED = ROOT / "build" / "bench-faults.json"
RECORD = ROOT / "tools" / "bench" / "faults" / "measured.json"
ADDED = RECORD.with_name("measured-added.json")
LIMITS_S = {"fast": 30.0, "default": 75.0}
QUIET_S = 60.0
LATE_S = 2.0  # the goal of a pod that waits: of later ones it is said whose word that was
END_S = 60.0  # all faults taken back, readygate taken off


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.faults", description=__doc__)
    checks = sorted({fault.check for fault in plan.TRIED.values()})
    parser.add_argument(
        "--only",
        action="append",
        choices=[*checks, *plan.TRIED, "dead-node", "dead-lease", "cost"],
        metavar="NAME",
        help="a kind of check, a fault, dead-node, dead-lease or cost; may be repeated",
    )
    parser.add_argument("--faults", type=int, default=200, help="how many in both profiles together; default: 200")
    parser.add_argument("--rounds", type=int, default=1000, help="of the profile `fast` at most")
    parser.add_argument("--default-rounds", type=int, default=1, help="of the profile `default`; default: 1")
    parser.add_argument("--minutes", type=float, default=1e9, help="begins no fault later than a minute before that")
    parser.add_argument("--keep", action="store_true", help="leave hosts and readygate as they are")
    parser.add_argument("--installed", action="store_true", help="as an earlier --keep has left it: `fast`")
    parser.add_argument(
        "--record", metavar="TEXT", help="the saved figures into docs/checks.md, TEXT: how they were taken"
    )
    parser.add_argument("--add", action="store_true", help="with --record: those of faults that are not recorded yet")
    parser.add_argument("--save", type=Path, default=SAVED, help="default: build/bench-faults.json")
    arguments = parser.parse_args()
    if arguments.record:
        figures = json.loads(arguments.save.read_text())
        record = ADDED if arguments.add else RECORD
        record.write_text(json.dumps({"taken": arguments.record, "figures": figures}, indent=1) + "\n")
        print(f"{record.relative_to(ROOT)} written: now make manifests")
        return 0
    if arguments.installed:
        arguments.default_rounds = 0
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
        self._unheard_s: list[float] = []
        self._costs: dict[str, tuple[float, float]] = {}
        self._loads: list[float] = []
        self.failed = False

    @property
    def trouble(self) -> bool:
        return self.failed or any(not each.whole for each in self._rounds)

    def progress(self, text: str) -> None:
        print(f"[{time.monotonic() - self._started:5.0f} s] {text}", flush=True)

    def whole(self) -> None:
        """Raises what the hosts and the playbooks raise; what was measured until then is printed and saved first."""
        self.progress(f"{os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}")
        try:
            with (
                tempfile.TemporaryDirectory() as folder,
                on_hosts(Path(folder), self.progress, keep=self._arguments.keep) as stage,
            ):
                if not self._arguments.installed:
                    stage.install(self._first, anew=False)
                with (
                    Words(stage.api) as words,
                    Watch(stage.hosts, stage.hosts.names, lambda node, why: words.hear(node, EXTENDER, why)) as watch,
                ):
                    self._measured(stage, watch, words)
        finally:
            loads = f"load {min(self._loads):.1f} to {max(self._loads):.1f}\n\n" if self._loads else ""
            print(f"\n{loads}{table(self._figures())}\n\nsaved in {self._arguments.save}", flush=True)

    @property
    def _first(self) -> str:
        return "fast" if self._arguments.installed else "default"

    def _measured(self, stage: Stage, watch: Watch, words: Words) -> None:
        """What takes as long as there is time comes last: a run that is ended has some of everything."""
        player = Player(stage.hosts, stage.api, watch, plan.TRIED, words)
        names = [name for name, fault in plan.TRIED.items() if self._wanted(fault.check) or self._wanted(name)]
        control = stage.hosts.layout.first.name
        try:
            for _ in range(self._arguments.default_rounds):
                self._played(player, "default", plan.once(names, stage.workers, control))
            self._tried("cost", lambda: self._cost(stage, self._first))
            if self._first != "fast":
                stage.install("fast", anew=True)
                self._tried("cost", lambda: self._cost(stage, "fast"))
            self._tried("dead-lease", lambda: self._dead_unheard(stage, watch))
            self._tried("dead-node", lambda: self._dead(stage, watch, self._dead_s))
            player.told_all()  # of an installation, and of a network that went and came
            for number in range(self._arguments.rounds if names else 0):
                if not self._played(player, "fast", plan.often(names, stage.workers, control, number)):
                    break
        finally:
            self.progress("all faults are taken back")
            player.heal_all(stage.hosts.names, self.progress)
            clear(stage.api)

    def _tried(self, name: str, measure: Callable[[], None]) -> None:
        """What cannot be measured is said, and keeps nothing else from it."""
        try:
            if self._wanted(name):
                measure()
        except (MeasurementError, HostsError) as e:
            self.failed = True
            self.progress(f"{name}: not measured: {e}")
        self._saved()

    def _cost(self, stage: Stage, profile: str) -> None:
        self.progress(f"cost: {QUIET_S:.0f} s without a fault")
        self._costs[profile] = stage.cost(stage.workers[0], QUIET_S)

    def _dead(self, stage: Stage, watch: Watch, seconds: list[float]) -> None:
        for each in dead.nodes(stage, watch, self.progress):
            seconds.append(each)
            self._saved()

    def _dead_unheard(self, stage: Stage, watch: Watch) -> None:
        stage.hear_agents("fast", hear=False)
        try:
            self._dead(stage, watch, self._unheard_s)
        finally:
            stage.hear_agents("fast", hear=True)

    def _wanted(self, name: str) -> bool:
        return not self._arguments.only or name in self._arguments.only

    def _played(self, player: Player, profile: str, turns: list[plan.Turn]) -> bool:
        """False: there are enough faults, or the time is over."""
        began, before = time.monotonic(), len(self._rounds)
        for turn in turns:
            done, wanted = len(self._rounds), self._arguments.faults
            if done >= wanted:
                return False
            if time.monotonic() - self._started > 60 * self._arguments.minutes - END_S:
                self.progress(f"the time is over after {done} of {wanted} faults")
                return False
            self._loads.append(os.getloadavg()[0])
            faults = {node: plan.TRIED[name] for node, name in turn.items()}
            shared = not set(turn.values()).isdisjoint(plan.EVERYWHERE)
            for each in player.play(faults, profile, LIMITS_S[profile], shared):
                self._rounds.append(each)
                self.progress(f"{len(self._rounds)}/{wanted} {profile} {_said(each)}")
            self._saved()
            spent, done = time.monotonic() - began, len(self._rounds)
            left_min = spent / max(1, done - before) * max(0, wanted - done) / 60
            self.progress(f"load {self._loads[-1]:.1f}; at this pace {left_min:.0f} min to {wanted} faults")
        return True

    def _figures(self) -> list[Figure]:
        return results.figures(self._rounds, self._dead_s, self._costs, self._unheard_s)

    def _saved(self) -> None:
        save(self._figures(), self._arguments.save)
        raw = {
            "rounds": [asdict(each) for each in self._rounds],
            "dead_s": self._dead_s,
            "unheard_s": self._unheard_s,
            "loads": self._loads,
        }
        self._arguments.save.with_name(f"{self._arguments.save.stem}-rounds.json").write_text(json.dumps(raw, indent=1))


def _said(each: Round) -> str:
    if each.trouble:
        return f"{each.fault} {each.node}: {each.trouble}"

    def seconds(value: float | None) -> str:
        return "never" if value is None else f"{value:.2f}"

    landed = "; A POD LANDED" if each.landed else ""
    late = each.bound_s is not None and each.bound_s > LATE_S
    words = f"; {' '.join(map(str, each.words))}" if late else ""
    return (
        f"{each.fault} {each.node}: closed {seconds(each.closed_s)}, pod refused {seconds(each.refused_s)}, healed: "
        f"open {seconds(each.opened_s)}, pod bound {seconds(each.bound_s)} s{landed}{words}"
    )


if __name__ == "__main__":
    sys.exit(main())
