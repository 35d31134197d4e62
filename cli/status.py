"""`readygate status`: which nodes are open, which are not, why, and what would open them."""

import argparse

import msgspec

from cli import screen
from cli.arguments import Commands, add_output, add_servers, command
from cli.asking import Asking
from cli.errors import CANNOT_KNOW, CommandError
from cli.pages import status as drawn
from cli.replicas import differences, freshest, releases
from component.text import one_line
from extender.web.schema import GatesTold, NodeVerdict, NodeVerdicts, SchedulerTold

NAMED = 5
ALL_OPEN, SOME_CLOSED = 0, 1
EXIT_CODES = """\
  0    every node is open
  1    a node is closed
  3    nobody can know: no extender answers, or none gives kube-scheduler verdicts
"""


def register(commands: Commands) -> None:
    parser = command(commands, "status", "which nodes are open, which are not, and why", EXIT_CODES)
    add_servers(parser)
    add_output(parser)
    parser.add_argument("-a", "--all", action="store_true", help="open nodes too")
    parser.set_defaults(run=run)


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """The document of `-o json`. nodes, gates: the word of one replica, `replica`; problems: of the others. releases,
    schedulers: of all replicas, what each is and what it is asked. cluster: as the user calls it."""

    replica: str
    answered: int
    asked: int
    agree: bool
    problems: tuple[str, ...]
    differences: tuple[dict[str, str], ...]
    nodes: NodeVerdicts
    gates: GatesTold | None
    cluster: str
    releases: tuple[str, ...]
    schedulers: tuple[SchedulerTold, ...]


def run(arguments: argparse.Namespace) -> int:
    asking = Asking(arguments)
    if arguments.watch:
        return screen.watch(lambda: look(asking, all_nodes=arguments.all), arguments.output)
    return screen.show_view(look(asking, all_nodes=arguments.all), arguments.output)


def look(asking: Asking, *, all_nodes: bool) -> screen.View:
    """Raises CommandError."""
    heard = asking.nodes()
    picked = freshest(heard.answers)
    if picked is None:
        raise CommandError("; ".join(dict.fromkeys(heard.problems)), code=CANNOT_KNOW)
    name, nodes = picked
    gates = asking.hear("gates", GatesTold)
    status = drawn.Status(
        cluster=asking.cluster,
        nodes=nodes,
        gates=gates.answers.get(name),
        schedulers=tuple(one.scheduler for one in gates.answers.values() if one.scheduler is not None),
        answered=len(heard.answers),
        asked=heard.asked,
        differences=tuple(differences({name: one.nodes for name, one in heard.answers.items()})),
        problems=heard.problems,
        releases=tuple(releases(heard.answers)),
        all_nodes=all_nodes,
    )
    report = Report(
        name,
        status.answered,
        status.asked,
        not status.differences and not status.problems,
        status.problems,
        tuple({"node": one.node, **one.said} for one in status.differences),
        nodes,
        status.gates,
        status.cluster,
        status.releases,
        status.schedulers,
    )
    return screen.View(
        code=_code(nodes),
        page=lambda width: drawn.page(status, width),
        headline=_change(nodes),
        key=(nodes.not_answering, [(node.node, node.reason) for node in nodes.nodes if not node.open]),
        document=report,
    )


def _code(nodes: NodeVerdicts) -> int:
    if nodes.not_answering:
        return CANNOT_KNOW
    return ALL_OPEN if all(node.open for node in nodes.nodes) else SOME_CLOSED


def _change(nodes: NodeVerdicts) -> str:
    """What has changed, for those who watch without a terminal."""
    closed: list[NodeVerdict] = [node for node in nodes.nodes if not node.open]
    names = ", ".join(one_line(node.node) for node in closed[:NAMED])
    more = f" and {len(closed) - NAMED} more" if len(closed) > NAMED else ""
    first = one_line(nodes.not_answering) or f"{len(nodes.nodes) - len(closed)} of {len(nodes.nodes)} nodes open"
    return f"{first}{f'; closed: {names}{more}' if names else ''}"
