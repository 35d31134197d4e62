"""`readygate doctor`: gathers the facts, examines them, shows the findings."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from cli.doctor import page
from cli.doctor.cluster import KUBE_SYSTEM, ClusterReader
from cli.doctor.configz_reader import PORT, UnreadError, read_configz, read_forwarded
from cli.doctor.examine import examine
from cli.doctor.facts import Facts, Loaded, Scheduler
from cli.doctor.findings import Finding, Severity
from cli.shared import configuration, extender_client, terminal
from cli.shared.arguments import Commands, add_output, add_servers, command
from cli.shared.errors import CommandError
from cli.shared.merge_answers import Replies
from cli.shared.queries import Queries
from cli.shared.terminal import View, show_view
from extender.web.report import GatesTold

EXIT_CODES = """  0    no errors or warnings, and everything could be checked
  1    an error or a warning
  3    no errors or warnings, but something could not be checked
"""
EXIT_FINE, EXIT_FOUND, EXIT_UNREAD = 0, 1, 3


def register(commands: Commands) -> None:
    parser = command(commands, "doctor", "find what keeps readygate from working, with remedies", EXIT_CODES)
    add_servers(parser)
    parser.add_argument(
        "--scheduler",
        action="append",
        default=[],
        metavar="URL",
        help="read /configz at this URL and ignore other kube-schedulers; may be given several times",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="the extender's configuration as copied from a host; default: read it from the cluster",
    )
    add_output(parser, watch=False)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Raises CommandError."""
    given = None if arguments.config is None else configuration.settings_of(arguments.config)
    queries = Queries(arguments)
    gates = _gates(queries)
    with terminal.progress("examining the cluster"):
        reader = ClusterReader(queries.api(), arguments.readygate_namespace, partial(_configz, arguments), given)
        facts = reader.facts(gates)
        if arguments.scheduler:
            facts = replace(facts, schedulers=tuple(_scheduler_at(arguments, url) for url in arguments.scheduler))
    return show_view(view_of(facts, examine(facts)), arguments.output)


def _gates(queries: Queries) -> Replies[GatesTold]:
    """The answers of the extenders. A missing extender is a finding, not an error."""
    try:
        return queries.ask_all("gates", GatesTold)
    except CommandError as e:
        return Replies(problems=(str(e),))


def _configz(arguments: argparse.Namespace, pod: str, host: str) -> Loaded:
    if arguments.scheduler:
        raise UnreadError("skipped: --scheduler names another one")
    forward = extender_client.port_forward(arguments, KUBE_SYSTEM, pod, PORT, host)
    return read_forwarded(forward, extender_client.connection(arguments), user_agent=extender_client.user_agent())


def _scheduler_at(arguments: argparse.Namespace, url: str) -> Scheduler:
    try:
        return Scheduler(
            url,
            loaded=read_configz(url, extender_client.connection(arguments), user_agent=extender_client.user_agent()),
        )
    except UnreadError as e:
        return Scheduler(url, unread=str(e))


def view_of(facts: Facts, found: Sequence[Finding]) -> View:
    return View(
        code=code_of(found),
        page=lambda width: page.render(facts, found, width),
        headline=page.headline(facts, found),
        key=tuple(found),
        document={"findings": [asdict(one) for one in found], "schedulers": len(facts.schedulers)},
    )


def code_of(found: Sequence[Finding]) -> int:
    severities = {one.severity for one in found}
    if severities & {Severity.ERROR, Severity.WARNING}:
        return EXIT_FOUND
    return EXIT_UNREAD if Severity.UNKNOWN in severities else EXIT_FINE
