"""`python -m tests.faults NAME HOST [--heal]`: a fault on a host of ring 3, or taken back. Without words: the list."""

import argparse
import sys
from collections.abc import Callable, Sequence

from tests.faults.fault import Fault
from tests.faults.registry import FAULTS
from tests.testbed.hosts.errors import HostsError
from tests.testbed.hosts.hosts import Hosts

EXIT_FAILED = 1


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="A fault on a host of ring 3.")
    parser.add_argument("name", nargs="?", choices=sorted(FAULTS), metavar="NAME", help="of the fault; none: the list")
    parser.add_argument("host", nargs="?", metavar="HOST", help="of ring 3, as worker-1")
    parser.add_argument("--heal", action="store_true", help="take it back")
    options = parser.parse_args(argv)
    if options.name is None:
        for fault in FAULTS.values():
            print(f"{fault.name}: {fault.what} (check {fault.check})")
        return 0
    if options.host is None:
        parser.error("a HOST is missing: python -m tests.testbed --ring hosts status names them")
    try:
        hosts = Hosts.found()
        if options.host not in hosts.names:
            raise HostsError(f"no host {options.host}: there are {', '.join(hosts.names)}")
        run(FAULTS[options.name], lambda line: hosts.ssh(options.host, line), heal=options.heal, host=options.host)
    except HostsError as e:
        print(f"faults: {e}", file=sys.stderr)
        return EXIT_FAILED
    return 0


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
