"""Ring 2 on the command line: one plane of this user that stays up until it is told otherwise."""

import argparse
import subprocess
import sys

from tools.kit.child import ProcessError
from tools.testbed.plane.plane import Plane
from tools.testbed.shared.runs import end_crashed_runs

NAME = "standing"
EXIT_NOT_UP = 3


def standing() -> Plane:
    """Up or not: see its `stands`."""
    return Plane(NAME, node_lifecycle=True, lasting=True, progress=_say)


def running() -> bool:
    return standing().stands()


def up(_: argparse.Namespace) -> int:
    plane = standing()
    if plane.stands():
        _say("up already")
    else:
        plane.up()
    _say(f"kubeconfig  export KUBECONFIG={plane.kubeconfig}")
    _say(f"logs        {plane.logs}")
    _say(f"look        {sys.executable} -m tools.testbed kubectl get nodes,pods -A")
    _say("nodes       there is none yet: python -m agent --config FILE in mode kubelet is one (make demo brings three)")
    _say(f"end         {sys.executable} -m tools.testbed down")
    return 0


def down(_: argparse.Namespace) -> int:
    for name in end_crashed_runs():
        _say(f"ended what the crashed run {name} had left")
    plane = standing()
    stood = plane.folder.exists()
    plane.down()
    _say("down" if stood else "was not up")
    return 0


def status(_: argparse.Namespace) -> int:
    """Exit code 3 when it is not up."""
    plane = standing()
    if not plane.folder.exists():
        _say("not up")
        return EXIT_NOT_UP
    for name, process in plane.run.ledger.processes.items():
        _say(f"{name:<26} {'runs' if process.alive() else 'ENDED'}  pid {process.pid}  {plane.logs / name}.log")
    return 0 if plane.stands() else EXIT_NOT_UP


def ssh(_: argparse.Namespace) -> int:
    raise ProcessError("ring 2 has no hosts to log in to: python -m tools.testbed --ring hosts ssh HOST")


def kubectl(arguments: argparse.Namespace) -> int:
    """`arguments.arguments`: what kubectl shall be told."""
    plane = standing()
    if not plane.stands():
        raise ProcessError("the plane is not up: python -m tools.testbed up")
    argv = [plane.kubectl, f"--kubeconfig={plane.kubeconfig}", *arguments.arguments]
    return subprocess.run(argv, check=False).returncode


def _say(text: str) -> None:
    print(f"plane: {text}", file=sys.stderr, flush=True)
