"""`readygate history`: which nodes closed and opened, what was held, when caps and storms began."""

import argparse

import msgspec

from cli import screen
from cli.arguments import Commands, add_output, add_servers, command
from cli.asking import Asking
from cli.errors import CANNOT_KNOW, CommandError
from cli.pages import history as drawn
from cli.replicas import longest
from component.command import EXIT_USAGE
from extender.web.report import Change, HistoryTold

LIMIT, LIMIT_MOST = 50, 1000
EXIT_CODES = """\
  0    the history is shown, however short
  3    nobody can know: no extender answers
"""


def register(commands: Commands) -> None:
    parser = command(commands, "history", "what has closed and opened, the newest first", EXIT_CODES)
    add_servers(parser)
    add_output(parser)
    parser.add_argument("--node", metavar="NAME", help="of this node only")
    parser.add_argument("--gate", metavar="NAME", help="of this gate only")
    parser.add_argument(
        "--limit", type=int, default=LIMIT, metavar="N", help=f"1 to {LIMIT_MOST} changes; default: %(default)s"
    )
    parser.set_defaults(run=run)


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """The document of `-o json`. replica: whose memory it is."""

    replica: str
    since_start_seconds: float | None
    forgotten: int
    events: tuple[Change, ...]
    problems: tuple[str, ...]


def run(arguments: argparse.Namespace) -> int:
    if not 1 <= arguments.limit <= LIMIT_MOST:
        raise CommandError(f"--limit is {arguments.limit}, allowed: 1 to {LIMIT_MOST}", code=EXIT_USAGE)
    asking = Asking(arguments)
    if arguments.watch:
        return screen.watch(lambda: look(asking, arguments), arguments.output)
    return screen.show_view(look(asking, arguments), arguments.output)


def look(asking: Asking, arguments: argparse.Namespace) -> screen.View:
    """Raises CommandError."""
    heard = asking.hear("history", HistoryTold, {"limit": str(LIMIT_MOST)})
    found = longest(heard.answers)
    if found is None:
        raise CommandError("; ".join(dict.fromkeys(heard.problems)), code=CANNOT_KNOW)
    replica, told = found
    picked = tuple(
        one for one in told.events if arguments.node in (None, one.node) and arguments.gate in (None, one.gate)
    )[: arguments.limit]
    wanted = "".join(
        f" of {kind} {name}" for kind, name in (("node", arguments.node), ("gate", arguments.gate)) if name
    )
    history = drawn.History(replica, told, picked, wanted)
    last = picked[0] if picked else None
    return screen.View(
        code=0,
        page=lambda width: drawn.page(history, width, problems=heard.problems),
        headline=drawn.sentence(last) if last is not None else drawn.headline(history),
        key=None if last is None else (last.wall, last.kind, last.node, last.gate),
        document=Report(replica, told.since_start_seconds, told.forgotten, picked, heard.problems),
    )
