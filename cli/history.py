"""`readygate history`: which nodes closed and opened, what was held, when caps and storms began."""

import argparse
from collections.abc import Sequence
from itertools import takewhile

import msgspec

from cli import screen
from cli.arguments import Commands, add_output, add_servers, command
from cli.asking import Asking
from cli.errors import CANNOT_KNOW, CommandError
from cli.pages import history as drawn
from cli.replicas import longest
from component.command import EXIT_USAGE
from component.text import one_line
from extender.web.parameters import LABEL, NAME
from extender.web.schema import Change, HistoryTold

LIMIT, LIMIT_MOST = 50, 1000
MISSED = "what came in between is not known"
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
    for option, name, pattern in (("node", arguments.node, NAME), ("gate", arguments.gate, LABEL)):
        if name is not None and not pattern.match(name):
            raise CommandError(f"--{option} {one_line(name, 64)} is no name of a {option}", code=EXIT_USAGE)
    asking = Asking(arguments)
    if arguments.watch:
        return screen.watch(lambda: look(asking, arguments), arguments.output)
    return screen.show_view(look(asking, arguments), arguments.output)


def look(asking: Asking, arguments: argparse.Namespace) -> screen.View:
    """Raises CommandError."""
    wanted = {"node": arguments.node, "gate": arguments.gate}
    query = {"limit": str(arguments.limit), **{key: name for key, name in wanted.items() if name is not None}}
    heard = asking.hear("history", HistoryTold, query)
    found = longest(heard.answers)
    if found is None:
        raise CommandError("; ".join(dict.fromkeys(heard.problems)), code=CANNOT_KNOW)
    replica, told = found
    words = "".join(f" of {kind} {name}" for kind, name in wanted.items() if name)
    history = drawn.History(replica, told, words)
    last = told.events[0] if told.events else None
    return screen.View(
        code=0,
        page=lambda width: drawn.page(history, width, problems=heard.problems),
        headline=drawn.sentence(last) if last is not None else drawn.headline(history),
        key=None if last is None else _key(last),
        document=Report(replica, told.since_start_seconds, told.forgotten, told.events, heard.problems),
        news=lambda before: _since(told.events, before),
    )


def _key(change: Change) -> tuple[str, ...]:
    return change.wall, change.kind, change.node, change.gate


def _since(events: Sequence[Change], before: object) -> list[str]:
    """A line for each that came after the one of that key, None for before all, the oldest first."""
    new = list(takewhile(lambda one: _key(one) != before, events))
    lines = [drawn.sentence(one) for one in reversed(new)]
    return lines if before is None or len(new) < len(events) else [MISSED, *lines]
