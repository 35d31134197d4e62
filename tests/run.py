"""Runs the project's checks in order, with progress and a closing table.

Each step is one child process; its output goes to the terminal and to build/logs/<step>.log. A step that fails does not
stop the later ones that do not need it, so one run tells all that is wrong. Exit code 0 only if every step passed.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "logs"
PYTHON = sys.executable
BIN = Path(PYTHON).parent
PLAYBOOKS = ["site.yml", "uninstall.yml", "inventory-sample.yml"]
# ansible-lint looks for its own tools on PATH.
# Called for by name, a ring that cannot run has failed; by hand, pytest skips it with a red line.
MUST_RUN = {**os.environ, "CI": "true"}
WITH_TOOLS = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
FAST_TESTS = ["tests", "--ignore=tests/plane", "--ignore=tests/hosts"]


@dataclass(frozen=True)
class Step:
    """One child process. `needs` names an earlier step without which this one cannot run at all."""

    name: str
    command: list[str]
    what: str
    needs: str = ""
    folder: str = "."
    environ: dict[str, str] | None = None


def pytest(*arguments: str) -> list[str]:
    return [PYTHON, "-m", "pytest", *arguments]


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
FAST = [Step("rings-0-1", pytest("-q", "-n", "4", *FAST_TESTS), "pure and scripted tests")]
BINARIES = Step("binaries", [PYTHON, "-m", "tests.testbed.shared.binaries"], "Kubernetes, built once and cached")
PACKAGES = Step("packages", [PYTHON, "-m", "tests.testbed.hosts.packages"], "system packages of ring 3")
PLANE = [BINARIES, Step("ring-2", pytest("-v", "tests/plane"), "real control plane on loopback", needs="binaries")]
HOSTS = [
    PACKAGES,
    BINARIES,
    Step("ring-3", pytest("-v", "tests/hosts"), "kubeadm cluster on systemd hosts", needs="packages", environ=MUST_RUN),
]

SELECTIONS = {
    "lint": LINT,
    "fast": FAST,
    "plane": PLANE,
    "hosts": HOSTS,
    "all": [PACKAGES, *LINT, *FAST, *PLANE, HOSTS[-1]],
}


def run_step(step: Step) -> tuple[int, float, str]:
    """Runs it, copying its output line by line; returns exit code, seconds, and the runner's closing words."""
    started = time.monotonic()
    closing = ""
    with (LOGS / f"{step.name}.log").open("w") as log:
        child = subprocess.Popen(
            step.command,
            cwd=ROOT / step.folder,
            env=step.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if child.stdout is None:
            raise RuntimeError("the child has no standard output")
        for line in child.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            log.write(line)
            if re.search(r"\b\d+ (passed|failed|error)", line):
                closing = line.strip(" =\n")
        code = child.wait()
    return code, time.monotonic() - started, closing


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.run", description=__doc__)
    parser.add_argument("selection", choices=sorted(SELECTIONS))
    steps = SELECTIONS[parser.parse_args().selection]
    LOGS.mkdir(parents=True, exist_ok=True)
    rows: list[tuple[str, str, float, str]] = []
    failed: set[str] = set()
    for number, step in enumerate(steps, 1):
        print(f"\n== {number}/{len(steps)} {step.name}: {step.what}", flush=True)
        if step.needs in failed:
            rows.append((step.name, "NOT RUN", 0.0, f"{step.needs} failed"))
            failed.add(step.name)
            continue
        code, seconds, closing = run_step(step)
        if code != 0:
            failed.add(step.name)
        rows.append((step.name, "passed" if code == 0 else f"FAILED ({code})", seconds, closing))
    print("\nstep           result       seconds  tests")
    for name, result, seconds, closing in rows:
        print(f"{name:<14} {result:<12} {seconds:>7.1f}  {closing}")
    print(f"\n{len(rows) - len(failed)} passed, {len(failed)} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
