"""`readygate unregistered`: checks that no kube-scheduler calls the extenders, so that they may be removed.

The chart runs this command in a pod before its removal. If readygate is still registered, kube-scheduler called an
extender about this pod. So the command needs no right to read the configuration of a scheduler.
"""

import argparse
import time

from cli.shared import extender_client
from cli.shared.arguments import Commands, add_servers, command
from cli.shared.errors import EXIT_UNKNOWN, CommandError
from cli.shared.queries import Queries, path_segment
from component.command import EXIT_USAGE
from extender.web.report import PodTold

TRIES = 3
BETWEEN_S = 2.0  # a call shows in the status API within a second
EXIT_CODES = """\
  0    no kube-scheduler has called about the pod
  1    a kube-scheduler has called: its configuration still names the extender
  3    unknown: an extender does not answer
"""
REMEDY = (
    "remove the extender from each kube-scheduler's configuration and restart it (playbook uninstall.yml), "
    "then try again. To remove readygate anyway: helm uninstall --no-hooks; without ignorable, no pod is placed then"
)


def register(commands: Commands) -> None:
    parser = command(commands, "unregistered", "check that no kube-scheduler calls the extenders any more", EXIT_CODES)
    parser.add_argument(
        "pod", metavar="NAMESPACE/NAME", help="a pod that kube-scheduler has placed, such as the pod of this command"
    )
    add_servers(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    namespace, _, name = arguments.pod.partition("/")
    if not namespace or not name or "/" in name:
        raise CommandError(f"{arguments.pod} is not a pod; write NAMESPACE/NAME", code=EXIT_USAGE)
    try:
        check(Queries(arguments), namespace, name)
    except extender_client.NoExtenderError:
        print("no extender runs, and the pod was placed: no kube-scheduler needs one")
        return 0
    print("no kube-scheduler calls the extenders")
    return 0


def check(queries: Queries, namespace: str, name: str) -> None:
    """Raises CommandError if a kube-scheduler has called about the pod, or if that is unknown."""
    for number in range(TRIES):
        time.sleep(BETWEEN_S if number else 0.0)
        replies = queries.ask_all(f"pods/{path_segment(namespace)}/{path_segment(name)}", PodTold)
        called = sorted(name for name, answer in replies.answers.items() if answer.attempts + answer.unanswered)
        if called:
            raise CommandError(f"kube-scheduler still calls {', '.join(called)}: {REMEDY}")
    if replies.problems:
        raise CommandError(f"{'; '.join(dict.fromkeys(replies.problems))}. {REMEDY}", code=EXIT_UNKNOWN)
