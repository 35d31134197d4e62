"""`readygate impact`: shows what gates in shadow would have done if they had been armed."""

import argparse

import msgspec

from cli.impact import page
from cli.shared import terminal
from cli.shared.arguments import Commands, add_output, add_servers, command
from cli.shared.errors import EXIT_UNKNOWN, CommandError
from cli.shared.merge_answers import longest
from cli.shared.queries import Queries
from extender.web.report import Impact, ImpactTold

EXIT_CODES = """\
  0    every gate in shadow would have done nothing, or none is in shadow
  1    a gate in shadow would have closed or refused something
  3    unknown: no extender answers, or none has decided or gives kube-scheduler verdicts
"""


def register(commands: Commands) -> None:
    parser = command(commands, "impact", "show what gates in shadow would have done", EXIT_CODES)
    add_servers(parser)
    add_output(parser)
    parser.set_defaults(run=run)


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """The document of `-o json`."""

    replica: str  # the extender whose memory is shown: the one that kube-scheduler called most
    first: str  # the answer in one or two sentences
    gates: tuple[Impact, ...]
    problems: tuple[str, ...]


def run(arguments: argparse.Namespace) -> int:
    queries = Queries(arguments)
    if arguments.watch:
        return terminal.watch(lambda: view(queries), arguments.output)
    return terminal.show_view(view(queries), arguments.output)


def view(queries: Queries) -> terminal.View:
    """Raises CommandError."""
    replies = queries.ask_all("impact", ImpactTold)
    # Only the extender that the leading kube-scheduler calls counts refusals.
    busiest = {
        name: answer
        for name, answer in replies.answers.items()
        if _calls(answer) == max(map(_calls, replies.answers.values()))
    }
    chosen = longest(busiest)
    if chosen is None:
        raise CommandError("; ".join(dict.fromkeys(replies.problems)), code=EXIT_UNKNOWN)
    replica, answer = chosen
    shadow = [gate for gate in answer.gates if not gate.armed]
    return terminal.View(
        code=EXIT_UNKNOWN
        if answer.not_answering or not answer.gates
        else int(any(gate.would_close_most or gate.would_refuse_calls for gate in shadow)),
        page=lambda width: page.render(answer, width, problems=replies.problems, program=queries.program),
        headline=page.first(answer),
        key=[(gate.gate, gate.armed, gate.would_close, gate.would_refuse_calls) for gate in answer.gates],
        document=Report(replica, page.first(answer), answer.gates, replies.problems),
    )


def _calls(answer: ImpactTold) -> int:
    return sum(gate.would_refuse_calls for gate in answer.gates)
