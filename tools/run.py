"""Runs the project's checks in order, with progress and a closing table.

Each step is one child process; its output goes to the terminal and to build/logs/<step>.log. A step that fails does not
stop the later ones that do not need it, so one run tells all that is wrong. Steps that mostly wait run beside one
another: ring 3 in two parts, on a set of hosts each, and ring 2. What only computes comes when the shorter part of
ring 3 has ended, or has the processor time that the others leave. What such a step prints comes as a whole at its end,
until then a line a minute tells how far it is. A test that asserts seconds may fail of what ran beside it, and all of a
file do where what they share did not start: what failed in up to three files of a step is run once more when nothing
else runs, by the same bounds, and the table tells both. What a step leaves running is ended and told. Interrupted, the
steps that run are interrupted too and say what they have seen; the table comes in any case.
What this machine or this user cannot run is left out of `all`, and told at the beginning and at the end; where CI is
set, and of a ring called for by its own name, nothing is.
Exit code 0 only if every step that was not left out passed, 2 if this machine lacks something (told before anything is
built), 130 if interrupted.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from tools.kit.ability import must_run
from tools.kit.endings import ENDINGS, EXIT_INTERRUPTED
from tools.kit.output import Output, say
from tools.kit.whole import end_marked
from tools.testbed.hosts.layout import ONE_CONTROL, SECOND, SET_VARIABLE, Layout
from tools.testbed.shared import obstacles

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "logs"
PYTHON = sys.executable
BIN = Path(PYTHON).parent
PLAYBOOKS = [
    "site.yml",
    "prepare-control-plane.yml",
    "check.yml",
    "detach.yml",
    "uninstall.yml",
    "node-plugin.yml",
    "node-plugin-uninstall.yml",
    "inventory-sample.yml",
]
# Called for by name, a ring that cannot run has failed; by hand, pytest skips it with a red line.
MUST_RUN = {**os.environ, "CI": "true"}
# ansible-lint looks for its own tools on PATH.
WITH_TOOLS = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
THREE_CONTROLS = "tests/hosts/controls"
IPV6_ALONE = "tests/hosts/ipv6"
KILLED_CONTROLS = f"{THREE_CONTROLS}/test_controls_kills.py"
CHART = "tests/hosts/chart"
# What asks for none of the hosts: the image as a file, and a start that is killed.
WITHOUT_HOSTS = ["tests/hosts/test_hosts_archive.py", "tests/hosts/test_hosts_crash.py"]
EMULATED = "tests/hosts/test_hosts_arm64.py"
DEPLOYMENT = "tests/hosts/deployment"
SURVIVAL = [f"{DEPLOYMENT}/test_{name}.py" for name in ("survival", "survival_site", "undo_static")]
POLICY = f"{DEPLOYMENT}/test_network_policy.py"
DEPLOYMENTS = [DEPLOYMENT, *(f"--ignore={path}" for path in (*SURVIVAL, POLICY))]
OTHERS = (DEPLOYMENT, THREE_CONTROLS, IPV6_ALONE, CHART, *WITHOUT_HOSTS, EMULATED)
NO_DEPLOYMENTS = ["tests/hosts", *(f"--ignore={path}" for path in OTHERS)]
FAST_TESTS = ["tests", "--ignore=tests/plane", "--ignore=tests/hosts"]


@dataclass(frozen=True)
class Step:
    """One child process.

    needs: an earlier step without which this one cannot run at all. after: one whose end it waits for, whatever comes
    of it. beside: the steps after it do not wait for its end. humble: with the processor time that no other step wants.
    alone: what to add to the command to run once more what has failed; empty: a failure stands.
    """

    name: str
    command: list[str]
    what: str
    needs: str = ""
    after: str = ""
    folder: str = "."
    environ: dict[str, str] | None = None
    beside: bool = False
    humble: bool = False
    alone: tuple[str, ...] = ()


def pytest(*arguments: str) -> list[str]:
    """With the slowest named at the end: where the minutes go is to be seen in each run's log."""
    return [PYTHON, "-m", "pytest", "--durations=25", "--durations-min=5", *arguments]


def remembered_by(step: str) -> Path:
    return ROOT / "build" / "pytest" / step


def tests_step(name: str, command: list[str], what: str, **more: Any) -> Step:
    """Of pytest, which remembers by the step's name what has failed in it."""
    remembered = ["-o", f"cache_dir={remembered_by(name)}"]
    alone = ("--last-failed", "--last-failed-no-failures=none", "-n", "0")
    return Step(name, [*command, *remembered], what, alone=alone, **more)


# Of its own session, too: where the kernel shares time out by sessions, what is nice is so among its own only.
HUMBLE = ["sh", "-c", 'echo 19 2>/dev/null > /proc/self/autogroup; exec nice -n 19 "$@"', "humble"]


def computing(step: Step) -> Step:
    """One that computes only and asserts no seconds: it takes what steps that wait leave."""
    return replace(step, beside=True, humble=True)


LINT = [
    Step("ruff", [str(BIN / "ruff"), "check", "."], "style and mistakes"),
    Step("format", [str(BIN / "ruff"), "format", "--check", "."], "formatting"),
    Step("mypy", [str(BIN / "mypy")], "types, strict"),
    Step("imports", [str(BIN / "lint-imports")], "who may import whom"),
    Step(
        "playbooks",
        [str(BIN / "ansible-lint"), "--offline", "--project-dir", ".", *PLAYBOOKS],
        "playbooks, strictest profile",
        folder="playbooks",
        environ=WITH_TOOLS,
    ),
]
TOOLS = Step("tools", [PYTHON, "-m", "tools.testbed.shared.tools"], "helm and the like, built once and cached")
OLDEST = Step(
    "ansible",
    [PYTHON, "-m", "tools.testbed.shared.oldest_ansible"],
    "the oldest ansible-core that will do, fetched once and cached",
)
RINGS_0_1 = tests_step(
    "rings-0-1", pytest("-q", "-n", "3", "--dist", "worksteal", *FAST_TESTS), "pure and scripted tests", needs="tools"
)
FAST = [TOOLS, OLDEST, RINGS_0_1]
SOURCES = Step(
    "sources",
    [PYTHON, "-m", "tools.testbed.shared.binaries", "--fetch"],
    "what Kubernetes is built from, if it must be",
)
BINARIES = Step(
    "binaries", [PYTHON, "-m", "tools.testbed.shared.binaries"], "Kubernetes, built once and cached", needs="sources"
)
PACKAGES = Step("packages", [PYTHON, "-m", "tools.testbed.hosts.packages"], "system packages of ring 3")
DIFFERENTIAL = Step(
    "differential",
    [PYTHON, "-m", "tools.differential", "--planted", "--fixes"],
    "the agent beside the kubelet's own packages",
    needs="sources",
)
# One after the other: what it asserts in seconds is measured beside ring 3 as it is.
RING_2 = tests_step("ring-2", pytest("-v", "tests/plane"), "real control plane on loopback", needs="binaries")
PLANE = [SOURCES, BINARIES, RING_2]
ARCHIVE = tests_step("archive", pytest("-v", *WITHOUT_HOSTS), "the image as a file", needs="packages", environ=MUST_RUN)
# Not for every kernel: where CI is set it must run all the same.
ARM64 = tests_step("arm64", pytest("-v", EMULATED), "the image for arm64, run by an emulator", needs="packages")


def hosts_step(name: str, tests: list[str], what: str, on: Layout) -> Step:
    """on: the set of hosts. Another step may test beside it on another set."""
    environ = {**MUST_RUN, SET_VARIABLE: on.network.name}
    return tests_step(name, pytest("-v", *tests), what, needs="packages", environ=environ)


RING_3 = hosts_step("ring-3", DEPLOYMENTS, "readygate deployed to systemd hosts", ONE_CONTROL)
SERVICE = hosts_step("ring-3-service", NO_DEPLOYMENTS, "the agent on systemd hosts, as a service and else", SECOND)
HOSTS = [
    *(PACKAGES, SOURCES, BINARIES),
    replace(SERVICE, beside=True),
    *(replace(step, beside=True, after=SERVICE.name) for step in (ARCHIVE, ARM64)),
    RING_3,
]
# By its own command: with real joins and upgrades of kubeadm it takes as long as the rest of ring 3.
CONTROLS = replace(
    RING_3,
    name="controls",
    command=pytest("-v", THREE_CONTROLS, f"--ignore={KILLED_CONTROLS}"),
    what="three control planes",
)
# A minute and more for each supported form.
FORMS = replace(RING_3, name="chart", command=pytest("-v", CHART), what="every form of the chart, by helm")
ROUTER = Step(
    "kube-router",
    [PYTHON, "-m", "tools.testbed.shared.tools", "kube-router"],
    "who enforces NetworkPolicies, built once and cached",
)
ENFORCED = replace(RING_3, name="policy", command=pytest("-v", POLICY), what="NetworkPolicies that somebody enforces")
IPV6 = replace(RING_3, name="ipv6", command=pytest("-v", IPV6_ALONE), what="a cluster that speaks IPv6 alone")
# Dozens of runs of Ansible, and a host whose plug is pulled.
KILLS = replace(
    RING_3,
    name="kills",
    command=pytest("-v", *SURVIVAL),
    what="Ansible killed after each of its tasks, and a host without power",
    environ={**MUST_RUN, "READYGATE_EVERY_TASK": "1"},
)
KILLS_OF_THREE = replace(
    KILLS, name="kills-3", command=pytest("-v", KILLED_CONTROLS), what="the same with three control planes"
)

SELECTIONS = {
    "lint": LINT,
    "fast": FAST,
    "plane": PLANE,
    "hosts": HOSTS,
    "controls": [PACKAGES, SOURCES, BINARIES, CONTROLS],
    "ipv6": [PACKAGES, SOURCES, BINARIES, IPV6],
    "policy": [PACKAGES, SOURCES, BINARIES, ROUTER, ENFORCED],
    "kills": [PACKAGES, SOURCES, BINARIES, KILLS, KILLS_OF_THREE],
    "chart": [PACKAGES, SOURCES, BINARIES, TOOLS, FORMS],
    # What has to come over the network comes first, what waits next; what computes uses every processor that is idle,
    # so it comes last.
    "all": [
        *(PACKAGES, SOURCES, BINARIES),
        *(replace(step, beside=True) for step in (RING_3, SERVICE)),
        *map(computing, (DIFFERENTIAL, *LINT)),
        *(TOOLS, OLDEST),
        *(replace(step, beside=True, after=SERVICE.name) for step in (ARCHIVE, ARM64, RINGS_0_1)),
        RING_2,
    ],
}


def of_ring_3() -> list[str]:
    return [*obstacles.of_hosts(), *obstacles.disk_space(hosts=True)]


OBSTACLES: dict[str, Callable[[], list[str]]] = {
    "plane": obstacles.disk_space,
    "hosts": of_ring_3,
    "controls": of_ring_3,
    "ipv6": of_ring_3,
    "policy": of_ring_3,
    "kills": of_ring_3,
    "chart": of_ring_3,
    "all": obstacles.disk_space,
}
# What `all` can do without: these steps, where one of these obstacles is found.
CAN_BE_LEFT_OUT: tuple[list[Step], Callable[[], list[str]]] = ([PACKAGES, ARCHIVE, ARM64, RING_3, SERVICE], of_ring_3)
STEP_VARIABLE = "READYGATE_TEST_STEP"
EXIT_OBSTACLE = 2
# pytest's exit code for tests that failed, unlike those for what it could not collect or start.
SOME_FAILED = 1
AGAIN_AT_MOST = 3  # files


@dataclass(frozen=True)
class Row:
    """Of the table. `result`: passed, FAILED (code), INTERRUPTED, NOT RUN or LEFT OUT."""

    name: str
    result: str
    seconds: float = 0.0
    note: str = ""


def may_fail_of_others(step: Step, row: Row) -> bool:
    """Whether what failed in a step, beside another one, is to be seen alone: not where much has failed."""
    remembered = remembered_by(step.name) / "v" / "cache" / "lastfailed"
    if not step.alone or row.result != f"FAILED ({SOME_FAILED})" or not remembered.exists():
        return False
    return 1 <= len({test.partition("::")[0] for test in json.loads(remembered.read_text())}) <= AGAIN_AT_MOST


class Runner:
    """Runs steps, in a session each: a signal to this process reaches them through it, once."""

    def __init__(self) -> None:
        self.interrupts = 0
        self._children: list[subprocess.Popen[str]] = []

    def catch_signals(self) -> None:
        for number in ENDINGS:
            signal.signal(number, self._interrupt)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self.interrupts += 1
        if running := [child for child in self._children if child.returncode is None]:
            again = "what it has seen each step tells now; again: they are killed"
            say(f"\n== interrupted{': ' + again if self.interrupts == 1 else ''}")
            for child in running:
                self._pass_on(child)

    def _pass_on(self, child: "subprocess.Popen[str]") -> None:
        with contextlib.suppress(ProcessLookupError):
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGINT if self.interrupts == 1 else signal.SIGKILL)

    def run(self, step: Step) -> Row:
        """Runs it to its end, copying its output line by line or at the end, and ends what it leaves."""
        started = time.monotonic()
        mark = f"{os.getpid()}-{step.name}"
        child = subprocess.Popen(
            [*HUMBLE, *step.command] if step.humble else step.command,
            cwd=ROOT / step.folder,
            env={**(step.environ or os.environ), STEP_VARIABLE: mark},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._children.append(child)
        if self.interrupts:  # by a signal that came while it was started
            self._pass_on(child)
        output = Output(step.name, LOGS / f"{step.name}.log", held=step.beside)
        copier = threading.Thread(target=output.copy, args=(child,), daemon=True)
        copier.start()
        code = child.wait()
        left = end_marked(mark, variable=STEP_VARIABLE)
        copier.join(5.0)  # whoever was left may have kept our end of the output open
        output.tell()
        for name in left:
            say(f"== {step.name} had left, now ended: {name}")
        result = "INTERRUPTED" if self.interrupts else "passed" if code == 0 else f"FAILED ({code})"
        note = "; ".join([*output.closing[-1:], *([f"left {len(left)} processes"] if left else [])])
        return Row(step.name, result, time.monotonic() - started, note)

    def run_all(self, steps: list[Step]) -> list[Row]:
        rows: dict[str, Row] = {}
        beside: dict[str, threading.Thread] = {}

        def run(step: Step, count: str) -> None:
            for earlier in (step.needs, step.after):
                if earlier in beside:
                    beside[earlier].join()
            needed = rows.get(step.needs)
            if self.interrupts:
                rows[step.name] = Row(step.name, "NOT RUN", note="interrupted before")
                return
            say(f"\n== {count} {step.name}: {step.what}{', beside what follows' if step.beside else ''}")
            if needed is not None and needed.result != "passed":
                rows[step.name] = Row(step.name, "NOT RUN", note=f"{step.needs} failed")
            else:
                rows[step.name] = self.run(step)

        for number, step in enumerate(steps, 1):
            count = f"{number}/{len(steps)}"
            if step.beside:
                beside[step.name] = threading.Thread(target=run, args=(step, count), name=f"step-{step.name}")
                beside[step.name].start()
            else:
                run(step, count)
        for thread in beside.values():
            thread.join()
        for step in steps if beside else ():
            if may_fail_of_others(step, rows[step.name]) and not self.interrupts:
                say(f"\n== {step.name}: what failed, once more with nothing beside it")
                first = rows[step.name]
                command = [*step.command, *step.alone]
                again = self.run(replace(step, name=f"{step.name}-alone", command=command, beside=False))
                note = f"{first.note}; alone: {again.note}"
                rows[step.name] = Row(step.name, again.result, first.seconds + again.seconds, note)
        return [rows[step.name] for step in steps]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.run", description=__doc__)
    parser.add_argument("selection", choices=sorted(SELECTIONS))
    selection = parser.parse_args(argv).selection
    steps = SELECTIONS[selection]
    left_out, lacks = CAN_BE_LEFT_OUT[0], CAN_BE_LEFT_OUT[1]() if selection == "all" else []
    if found := [*OBSTACLES.get(selection, list)(), *(lacks if must_run() else [])]:
        for obstacle in found:
            say(f"cannot run: {obstacle}")
        return EXIT_OBSTACLE
    if lacks:
        say(f"{', '.join(step.name for step in left_out)} left out, the rest is run: {'; '.join(lacks)}")
        steps = [step for step in steps if step.name not in {left.name for left in left_out}]
    LOGS.mkdir(parents=True, exist_ok=True)
    runner = Runner()
    runner.catch_signals()
    rows = runner.run_all(steps)
    _say_table([*rows, *(Row(step.name, "LEFT OUT", note="; ".join(lacks)) for step in left_out if lacks)])
    if runner.interrupts:
        return EXIT_INTERRUPTED
    return 0 if all(row.result == "passed" for row in rows) else 1


def _say_table(rows: list[Row]) -> None:
    say("\nstep           result       seconds  tests")
    for row in rows:
        say(f"{row.name:<14} {row.result:<12} {row.seconds:>7.1f}  {row.note}")
    counts = Counter(row.result for row in rows)
    others = {"NOT RUN": "skipped", "LEFT OUT": "left out"}
    failed = len(rows) - sum(counts[result] for result in ("passed", *others))
    more = [f"{counts[result]} {words}" for result, words in others.items() if counts[result]]
    say("\n" + ", ".join([f"{counts['passed']} passed", f"{failed} failed", *more]))


if __name__ == "__main__":
    sys.exit(main())
