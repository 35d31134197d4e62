"""`readygate history`: shows which nodes closed and opened, which were held, and when caps and storms began."""

import argparse
from collections.abc import Sequence
from itertools import takewhile

import msgspec

from cli.history import page
from cli.shared import terminal
from cli.shared.arguments import Commands, add_output, add_servers, command
from cli.shared.errors import EXIT_UNKNOWN, CommandError
from cli.shared.merge_answers import longest
from cli.shared.queries import Queries
from component.command import EXIT_USAGE
from component.text import one_line
from extender.web.asked import LABEL, NAME
from extender.web.report import Change, HistoryTold

LIMIT, LIMIT_MOST = 50, 1000
MISSING = "changes in between are missing"
EXIT_CODES = """\
  0    the history is shown, however short
  3    unknown: no extender answers
"""


def register(commands: Commands) -> None:
    parser = command(commands, "history", "show which nodes closed and opened, newest first", EXIT_CODES)
    add_servers(parser)
    add_output(parser)
    parser.add_argument("--node", metavar="NAME", help="only this node")
    parser.add_argument("--gate", metavar="NAME", help="only this gate")
    parser.add_argument(
        "--limit", type=int, default=LIMIT, metavar="N", help=f"1 to {LIMIT_MOST} changes; default: %(default)s"
    )
    parser.set_defaults(run=run)


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """The document of `-o json`."""

    replica: str  # the extender whose memory is shown
    since_start_seconds: float | None
    forgotten: int
    events: tuple[Change, ...]
    problems: tuple[str, ...]


def run(arguments: argparse.Namespace) -> int:
    if not 1 <= arguments.limit <= LIMIT_MOST:
        raise CommandError(f"--limit is {arguments.limit}, allowed: 1 to {LIMIT_MOST}", code=EXIT_USAGE)
    for option, name, pattern in (("node", arguments.node, NAME), ("gate", arguments.gate, LABEL)):
        if name is not None and not pattern.match(name):
            raise CommandError(f"--{option} {one_line(name, 64)} is not a valid {option} name", code=EXIT_USAGE)
    queries = Queries(arguments)
    if arguments.watch:
        return terminal.watch(lambda: view(queries, arguments), arguments.output)
    return terminal.show_view(view(queries, arguments), arguments.output)


def view(queries: Queries, arguments: argparse.Namespace) -> terminal.View:
    """Raises CommandError."""
    wanted = {"node": arguments.node, "gate": arguments.gate}
    query = {"limit": str(arguments.limit), **{key: name for key, name in wanted.items() if name is not None}}
    replies = queries.ask_all("history", HistoryTold, query)
    chosen = longest(replies.answers)
    if chosen is None:
        raise CommandError("; ".join(dict.fromkeys(replies.problems)), code=EXIT_UNKNOWN)
    replica, answer = chosen
    words = "".join(f" of {kind} {name}" for kind, name in wanted.items() if name)
    history = page.History(replica, answer, words)
    last = answer.events[0] if answer.events else None
    return terminal.View(
        code=0,
        page=lambda width: page.render(history, width, problems=replies.problems),
        headline=page.sentence(last) if last is not None else page.headline(history),
        key=None if last is None else _key(last),
        document=Report(replica, answer.since_start_seconds, answer.forgotten, answer.events, replies.problems),
        news=lambda before: _since(answer.events, before),
    )


def _key(change: Change) -> tuple[str, ...]:
    return change.wall, change.kind, change.node, change.gate


def _since(events: Sequence[Change], before: object) -> list[str]:
    """One line for each change after the change with the key `before`, oldest first. None: all changes."""
    new = list(takewhile(lambda one: _key(one) != before, events))
    lines = [page.sentence(one) for one in reversed(new)]
    return lines if before is None or len(new) < len(events) else [MISSING, *lines]
