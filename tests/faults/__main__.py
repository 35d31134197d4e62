"""`python -m tests.faults NAME HOST [--heal]`: a fault on a host of ring 3, or taken back. Without words: the list."""

import argparse
import json
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from types import FrameType

import yaml

from tests.faults.fault import Fault
from tests.faults.registry import FAULTS
from tests.testbed.hosts.errors import HostsError
from tests.testbed.hosts.hosts import Hosts

EXIT_FAILED = 1
EXIT_CODES = """exit codes:
  0    injected, or healed; the list
  1    not, and the fault is taken back as far as it was there; the last line says why
  2    wrong usage
  130  Ctrl-C, and 143 SIGTERM: the same
"""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults",
        description="A fault on a host of ring 3.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", choices=sorted(FAULTS), metavar="NAME", help="of the fault; none: the list")
    parser.add_argument("host", nargs="?", metavar="HOST", help="of ring 3, as worker-1")
    parser.add_argument("--heal", action="store_true", help="take it back")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="of the list")
    options = parser.parse_args(argv)
    if options.name is None:
        print(listed(FAULTS.values(), as_json=options.output == "json"))
        return 0
    if options.host is None:
        parser.error("a HOST is missing: python -m tests.testbed --ring hosts status names them")
    signal.signal(signal.SIGTERM, _terminated)
    try:
        hosts = Hosts.found()
        if options.host not in hosts.names:
            raise HostsError(f"no host {options.host}: there are {', '.join(hosts.names)}")
        run(FAULTS[options.name], lambda line: hosts.ssh(options.host, line), heal=options.heal, host=options.host)
    except HostsError as e:
        print(f"faults: {e}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


def listed(faults: Iterable[Fault], *, as_json: bool) -> str:
    """For people a line each; for programs with the commands, and the settings of a check that sees it."""
    if as_json:
        return json.dumps(
            {"faults": [{**asdict(one), "settings": yaml.safe_load(one.settings)} for one in faults]}, indent=2
        )
    return "\n".join(f"{one.name}: {one.what} (check {one.check})" for one in faults)


def run(fault: Fault, shell: Callable[[str], object], *, heal: bool, host: str = "") -> None:
    """Each line is said before it is run. A fault that cannot be injected whole is taken back. Raises what `shell`
    raises."""
    lines = fault.heal if heal else fault.inject
    try:
        for line in lines:
            print(f"{host}# {line}", flush=True)
            shell(line)
    except BaseException:
        if not heal:
            run(fault, shell, heal=True, host=host)
        raise


def _terminated(number: int, _frame: FrameType | None) -> None:
    """As Ctrl-C: half a fault is taken back."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
