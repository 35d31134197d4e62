"""Programs with limits of the kernel's, of descriptors (RLIMIT_NOFILE) and of processes and threads (RLIMIT_NPROC)."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tools.kit.ability import cannot_run
from tools.kit.child import Child

SOMEBODY = 47_113
"""Root has no limit of processes, and of anybody else all processes count: so it is a user who runs nothing else."""
# Our Python may lie where root alone may look; this right frees of no limit.
_READS = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
_RIGHTS = ("setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups", *_READS)
_FILL = """
import sys, threading, time
over = threading.Event()
def fill():
    while True:
        try:
            threading.Thread(target=over.wait, daemon=True).start()
        except RuntimeError:
            print("full", flush=True)
            break
    while True:  # what ran before and ends leaves room for others
        try:
            threading.Thread(target=over.wait, daemon=True).start()
        except RuntimeError:
            time.sleep(0.005)
threading.Thread(target=fill, daemon=True).start()
sys.stdin.read()
"""


def under(prefix: Sequence[str]) -> Callable[..., Child]:
    """A Program's `launch` that puts this in front of its command line."""

    def launch(name: str, argv: Sequence[str | Path], *, environ: Mapping[str, str], cwd: Path) -> Child:
        return Child(name, [*prefix, *map(str, argv)], log=cwd / f"{name}.log", environ=environ, cwd=cwd)

    return launch


def descriptors(most: int) -> list[str]:
    return ["prlimit", f"--nofile={most}:{most}", "--"]


def as_somebody(processes: int) -> list[str]:
    """As a user who may have so many processes and threads."""
    if os.geteuid():
        cannot_run("the limit counts all that this user runs; as root it is tried as a user who runs nothing else")
    return [*_RIGHTS, "prlimit", f"--nproc={processes}:{processes}", "--"]


def filled(processes: int) -> "subprocess.Popen[str]":
    """A context: all is taken of what SOMEBODY may have, and what others of theirs leave meanwhile."""
    argv = [*as_somebody(processes), sys.executable, "-c", _FILL]
    made = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert made.stdout is not None
    assert "full\n" == made.stdout.readline()
    return made


def limit(child: Child, which: int, soft: int) -> None:
    """From now on, of a process that runs."""
    assert child.pid is not None
    _, hard = resource.prlimit(child.pid, which)
    resource.prlimit(child.pid, which, (soft, hard))
