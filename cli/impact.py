"""`readygate impact`: what a gate in shadow would have done had it been armed."""

import argparse

import msgspec

from cli import screen
from cli.arguments import Commands, add_output, add_servers, command
from cli.asking import Asking
from cli.errors import CANNOT_KNOW, CommandError
from cli.pages import impact as drawn
from cli.replicas import longest
from extender.web.schema import Impact, ImpactTold

EXIT_CODES = """\
  0    every gate in shadow would have done nothing, or none is in shadow
  1    a gate in shadow would have closed or refused something
  3    nobody can know: no extender answers, or none has decided or gives kube-scheduler verdicts
"""


def register(commands: Commands) -> None:
    parser = command(commands, "impact", "what gates in shadow would have done", EXIT_CODES)
    add_servers(parser)
    add_output(parser)
    parser.set_defaults(run=run)


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """The document of `-o json`. replica: whose memory it is; another, whom kube-scheduler does not ask, has none."""

    replica: str
    first: str
    gates: tuple[Impact, ...]
    problems: tuple[str, ...]


def run(arguments: argparse.Namespace) -> int:
    asking = Asking(arguments)
    if arguments.watch:
        return screen.watch(lambda: look(asking), arguments.output)
    return screen.show_view(look(asking), arguments.output)


def look(asking: Asking) -> screen.View:
    """Raises CommandError."""
    heard = asking.hear("impact", ImpactTold)
    # Who was asked the most tells the most: kube-scheduler's leader asks one of them.
    busiest = {
        name: told for name, told in heard.answers.items() if _calls(told) == max(map(_calls, heard.answers.values()))
    }
    found = longest(busiest)
    if found is None:
        raise CommandError("; ".join(dict.fromkeys(heard.problems)), code=CANNOT_KNOW)
    replica, told = found
    shadow = [gate for gate in told.gates if not gate.armed]
    return screen.View(
        code=CANNOT_KNOW
        if told.not_answering or not told.gates
        else int(any(gate.would_close_most or gate.would_refuse_calls for gate in shadow)),
        page=lambda width: drawn.page(told, width, problems=heard.problems, program=asking.program),
        headline=drawn.first(told),
        key=[(gate.gate, gate.armed, gate.would_close, gate.would_refuse_calls) for gate in told.gates],
        document=Report(replica, drawn.first(told), told.gates, heard.problems),
    )


def _calls(told: ImpactTold) -> int:
    return sum(gate.would_refuse_calls for gate in told.gates)
