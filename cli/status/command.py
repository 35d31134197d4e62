"""`readygate status`: shows which nodes are open, which are closed, why, and what opens them."""

import argparse

import msgspec

from cli.shared import terminal
from cli.shared.arguments import Commands, add_output, add_servers, command
from cli.shared.errors import EXIT_UNKNOWN, CommandError
from cli.shared.merge_answers import differences, freshest, releases
from cli.shared.queries import Queries
from cli.status import page
from component.text import one_line
from extender.web.report import GatesTold, NodeVerdict, NodeVerdicts, SchedulerTold

NAMED = 5
ALL_OPEN, SOME_CLOSED = 0, 1
EXIT_CODES = """\
  0    every node is open
  1    a node is closed
  3    unknown: no extender answers, or none gives kube-scheduler verdicts
"""


def register(commands: Commands) -> None:
    parser = command(commands, "status", "show which nodes are open, which are closed, and why", EXIT_CODES)
    add_servers(parser)
    add_output(parser)
    parser.add_argument("-a", "--all", action="store_true", help="also list open nodes")
    parser.set_defaults(run=run)


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """The document of `-o json`."""

    replica: str  # the extender whose data is shown
    answered: int  # how many extenders answered
    asked: int  # how many extenders were asked
    agree: bool  # whether all extenders answered the same
    problems: tuple[str, ...]  # why other extenders gave no answer
    differences: tuple[dict[str, str], ...]  # nodes on which the extenders disagree
    nodes: NodeVerdicts  # as `replica` reports them
    gates: GatesTold | None  # as `replica` reports them
    cluster: str  # its name in the kubeconfig
    releases: tuple[str, ...]  # of all extenders
    schedulers: tuple[SchedulerTold, ...]  # the calls that each extender got


def run(arguments: argparse.Namespace) -> int:
    queries = Queries(arguments)
    if arguments.watch:
        return terminal.watch(lambda: view(queries, all_nodes=arguments.all), arguments.output)
    return terminal.show_view(view(queries, all_nodes=arguments.all), arguments.output)


def view(queries: Queries, *, all_nodes: bool) -> terminal.View:
    """Raises CommandError."""
    replies = queries.nodes()
    chosen = freshest(replies.answers)
    if chosen is None:
        raise CommandError("; ".join(dict.fromkeys(replies.problems)), code=EXIT_UNKNOWN)
    name, nodes = chosen
    gates = queries.ask_all("gates", GatesTold)
    status = page.Status(
        cluster=queries.cluster,
        nodes=nodes,
        gates=gates.answers.get(name),
        schedulers=tuple(one.scheduler for one in gates.answers.values() if one.scheduler is not None),
        answered=len(replies.answers),
        asked=replies.asked,
        differences=tuple(differences({name: one.nodes for name, one in replies.answers.items()})),
        problems=replies.problems,
        releases=tuple(releases(replies.answers)),
        all_nodes=all_nodes,
    )
    report = Report(
        name,
        status.answered,
        status.asked,
        not status.differences and not status.problems,
        status.problems,
        tuple({"node": one.node, **one.verdicts} for one in status.differences),
        nodes,
        status.gates,
        status.cluster,
        status.releases,
        status.schedulers,
    )
    return terminal.View(
        code=_code(nodes),
        page=lambda width: page.render(status, width),
        headline=_change(nodes),
        key=(nodes.not_answering, [(node.node, node.reason) for node in nodes.nodes if not node.open]),
        document=report,
    )


def _code(nodes: NodeVerdicts) -> int:
    if nodes.not_answering:
        return EXIT_UNKNOWN
    return ALL_OPEN if all(node.open for node in nodes.nodes) else SOME_CLOSED


def _change(nodes: NodeVerdicts) -> str:
    """The answer in one line, for a watch without a terminal."""
    closed: list[NodeVerdict] = [node for node in nodes.nodes if not node.open]
    names = ", ".join(one_line(node.node) for node in closed[:NAMED])
    more = f" and {len(closed) - NAMED} more" if len(closed) > NAMED else ""
    first = one_line(nodes.not_answering) or f"{len(nodes.nodes) - len(closed)} of {len(nodes.nodes)} nodes open"
    return f"{first}{f'; closed: {names}{more}' if names else ''}"
