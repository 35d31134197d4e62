"""`python -m tools.testbed`: a real cluster to play with."""

import argparse
import importlib
import os
import sys
from types import ModuleType

from tools.kit.child import ProcessError
from tools.kit.endings import EXIT_INTERRUPTED, interrupt_once
from tools.testbed.hosts.errors import HostsError
from tools.testbed.plane import command as plane_command
from tools.testbed.shared.binaries import BinariesMissing

EXIT_FAILED = 1
# What follows these is not ours to read, also when it begins with a dash.
_PASSED_ON = ("kubectl", "ssh")


def main(argv: list[str]) -> int:
    interrupt_once()
    words, passed_on = _split(argv)
    arguments = _parser().parse_args(words)
    arguments.arguments = passed_on  # of kubectl
    arguments.command = passed_on[1:]  # of ssh
    arguments.host = passed_on[0] if passed_on else ""
    try:
        codes = [getattr(ring, arguments.verb)(arguments) for ring in _rings(arguments)]
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except (BinariesMissing, HostsError, ProcessError) as e:
        print(f"testbed: {e}", file=sys.stderr)
        return EXIT_FAILED
    return min(codes)


def _split(argv: list[str]) -> tuple[list[str], list[str]]:
    at = next((number for number, word in enumerate(argv) if word in _PASSED_ON), len(argv))
    return argv[: at + 1], argv[at + 1 :]


def _rings(arguments: argparse.Namespace) -> list[ModuleType]:
    """The modules whose function of the verb's name is called, in this order."""
    root = os.geteuid() == 0
    if arguments.ring:
        names = [arguments.ring]
    elif arguments.verb == "kubectl":
        names = ["plane" if plane_command.running() or not root else "hosts"]
    else:
        names = {"up": ["plane"], "ssh": ["hosts"]}.get(arguments.verb, ["plane", *(["hosts"] if root else [])])
    # Late: ring 2 must not need what ring 3 needs.
    return [importlib.import_module(f"tools.testbed.{name}.command") for name in names]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.testbed", description="A real cluster on this machine.")
    parser.add_argument(
        "--ring",
        choices=("plane", "hosts"),
        help="plane: control plane on loopback, no root; hosts: kubeadm on systemd hosts, root. "
        "Without it: plane for up; both for down and status; whichever is up for kubectl",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="COMMAND")
    verbs.add_parser("up", help="start it, or say that it is up")
    verbs.add_parser("down", help="end all that the testbed started, also after a crash")
    verbs.add_parser("status", help="what runs (exit code 3: nothing)")
    verbs.add_parser("ssh", help="HOST [CMD ...]: a shell or a command on a host of ring 3")
    verbs.add_parser("kubectl", help="ARGS ...: kubectl as administrator")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
