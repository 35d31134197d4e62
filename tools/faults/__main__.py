"""`python -m tools.faults NAME HOST [--heal | --clear]`: a fault on a host of ring 3, or taken back. Without words: the
list."""

import argparse
import json
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict

import yaml

from tools.faults.fault import Fault, alone
from tools.faults.registry import FAULTS
from tools.kit.endings import ENDINGS, EXIT_INTERRUPTED, interrupt_once
from tools.testbed.hosts.errors import HostsError
from tools.testbed.hosts.hosts import Hosts

EXIT_FAILED = 1
EXIT_CODES = """exit codes:
  0    injected, or healed; the list
  1    not, and the fault is taken back as far as it was there; the last line says why
  2    wrong usage
  130  interrupted (Ctrl-C, SIGTERM, a terminal that is gone): the same
"""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.faults",
        description="A fault on a host of ring 3.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", choices=sorted(FAULTS), metavar="NAME", help="of the fault; none: the list")
    parser.add_argument("host", nargs="?", metavar="HOST", help="of ring 3, as worker-1")
    back = parser.add_mutually_exclusive_group()
    back.add_argument("--heal", action="store_true", help="take it back")
    back.add_argument("--clear", action="store_true", help="and take away what a check was to find good")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="of the list")
    options = parser.parse_args(argv)
    if options.name is None:
        print(listed(FAULTS.values(), as_json=options.output == "json"))
        return 0
    if options.host is None:
        parser.error("a HOST is missing: python -m tools.testbed --ring hosts status names them")
    interrupt_once()
    try:
        hosts = Hosts.found()
        if options.host not in hosts.names:
            raise HostsError(f"no host {options.host}: there are {', '.join(hosts.names)}")
        heal, fault = options.heal or options.clear, FAULTS[options.name]
        run(fault, lambda line: hosts.ssh(options.host, alone(line)), heal=heal, clear=options.clear, host=options.host)
    except HostsError as e:
        print(f"faults: {e}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return 0


def listed(faults: Iterable[Fault], *, as_json: bool) -> str:
    """For people a line each; for programs with the commands, and the settings of a check that sees it."""
    if as_json:
        return json.dumps(
            {"faults": [{**asdict(one), "settings": yaml.safe_load(one.settings)} for one in faults]}, indent=2
        )
    return "\n".join(f"{one.name}: {one.what} (check {one.check})" for one in faults)


def run(fault: Fault, shell: Callable[[str], object], *, heal: bool, clear: bool = False, host: str = "") -> None:
    """Each line is said before it is run. A fault that cannot be injected whole is taken back. Raises what `shell`
    raises."""
    lines = (*fault.heal, *(fault.clear if clear else ())) if heal else fault.inject
    try:
        for line in lines:
            print(f"{host}# {line}", flush=True)
            shell(line)
    except BaseException:
        if not heal:
            with _undisturbed():
                run(fault, shell, heal=True, host=host)
        raise


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Who is impatient shall not end what takes the fault back, nor the ssh under it."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ENDINGS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
