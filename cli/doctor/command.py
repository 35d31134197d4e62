"""`readygate doctor`: arguments, page, exit code."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from cli import configuration, reach, screen
from cli.arguments import Commands, add_output, add_servers, command
from cli.asking import Asking
from cli.doctor.cluster import KUBE_SYSTEM, Reader
from cli.doctor.examine import examine
from cli.doctor.facts import Facts, Loaded, Scheduler
from cli.doctor.findings import Finding, Severity
from cli.doctor.tunnel import PORT, UnreadError, read_configz, read_forwarded
from cli.errors import CommandError
from cli.layout import EMPTY, Page, Style, count, line, span, wrapped
from cli.replicas import Heard
from cli.screen import View, show_view
from extender.web.schema import GatesTold

EXIT_CODES = """  0    nothing found that needs anybody
  1    an error or a warning
  3    nothing worse than that something could not be looked at
"""
EXIT_FINE, EXIT_FOUND, EXIT_UNREAD = 0, 1, 3
STYLES = {
    Severity.ERROR: Style.BAD,
    Severity.WARNING: Style.HELD,
    Severity.UNKNOWN: Style.HELD,
    Severity.NOTE: Style.FAINT,
}


def register(commands: Commands) -> None:
    parser = command(
        commands, "doctor", "what keeps readygate from doing its work, and what to do about it", EXIT_CODES
    )
    add_servers(parser)
    parser.add_argument(
        "--scheduler",
        action="append",
        default=[],
        metavar="URL",
        help="read /configz here, and look for no other kube-scheduler; may be given several times",
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="of the extender, as a host has it; default: that of the cluster"
    )
    add_output(parser, watch=False)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Raises CommandError."""
    given = None if arguments.config is None else configuration.settings_of(arguments.config)
    asking = Asking(arguments)
    gates = _told(asking)
    with screen.progress("examining the cluster"):
        reader = Reader(asking.api(), arguments.readygate_namespace, partial(_configz, arguments), given)
        facts = reader.facts(gates)
        if arguments.scheduler:
            facts = replace(facts, schedulers=tuple(_named(arguments, url) for url in arguments.scheduler))
    return show_view(view_of(facts, examine(facts)), arguments.output)


def _told(asking: Asking) -> Heard[GatesTold]:
    """That there is no extender is what doctor is asked for, no reason to end."""
    try:
        return asking.hear("gates", GatesTold)
    except CommandError as e:
        return Heard(problems=(str(e),))


def _configz(arguments: argparse.Namespace, pod: str, host: str) -> Loaded:
    if arguments.scheduler:
        raise UnreadError("another was asked for")
    forward = reach.port_forward(arguments, KUBE_SYSTEM, pod, PORT, host)
    return read_forwarded(forward, reach.connection(arguments), user_agent=reach.user_agent())


def _named(arguments: argparse.Namespace, url: str) -> Scheduler:
    try:
        return Scheduler(url, loaded=read_configz(url, reach.connection(arguments), user_agent=reach.user_agent()))
    except UnreadError as e:
        return Scheduler(url, unread=str(e))


def view_of(facts: Facts, found: Sequence[Finding]) -> View:
    return View(
        code=code_of(found),
        page=lambda width: page(facts, found, width),
        headline=headline(facts, found),
        key=tuple(found),
        document={"findings": [asdict(one) for one in found], "schedulers": len(facts.schedulers)},
    )


def code_of(found: Sequence[Finding]) -> int:
    severities = {one.severity for one in found}
    if severities & {Severity.ERROR, Severity.WARNING}:
        return EXIT_FOUND
    return EXIT_UNREAD if Severity.UNKNOWN in severities else EXIT_FINE


def headline(facts: Facts, found: Sequence[Finding]) -> str:
    """The answer in one line."""
    numbers = {severity: sum(one.severity is severity for one in found) for severity in Severity}
    told = [f"{number} {severity.value}{'s' if number > 1 else ''}" for severity, number in numbers.items() if number]
    read = sum(scheduler.loaded is not None for scheduler in facts.schedulers)
    looked = (
        f"looked at {count(facts.nodes, 'node')}, {count(len(facts.replicas), 'extender')}, "
        f"the configuration of {read} of {len(facts.schedulers)} schedulers"
    )
    return f"{', '.join(told).replace('unknowns', 'unknown') or 'Nothing to complain about'}; {looked}."


def page(facts: Facts, found: Sequence[Finding], width: int) -> Page:
    told = wrapped(line(headline(facts, found)), width)
    for one in found:
        told.append(EMPTY)
        severity = span(one.severity.value.upper(), STYLES[one.severity])
        head = line(severity, " ", span(one.name, Style.STRONG), ": ", one.about)
        told += wrapped(head, width, hang=2)
        told += wrapped(line(span(one.evidence)), width, indent=2)
        if one.remedy:
            told += wrapped(line("remedy: ", span(one.remedy)), width, indent=2, hang=10)
    return told
