"""`readygate unregistered`: does no kube-scheduler ask any more, so that the extenders may go?

Run in a pod that kube-scheduler has placed, as the chart does before it is removed: where a scheduler is registered, an
extender has been asked about that very pod. So it needs no right to look at any scheduler.
"""

import argparse
import time

from cli import reach
from cli.arguments import Commands, add_servers, command
from cli.asking import Asking, part
from cli.errors import CANNOT_KNOW, CommandError
from component.command import EXIT_USAGE
from extender.web.schema import PodTold

LOOKS = 3
BETWEEN_S = 2.0  # what is remembered of a call reaches people within a second
EXIT_CODES = """\
  0    no kube-scheduler has asked about the pod
  1    one has: it still names the extender
  3    nobody can know: an extender does not answer
"""
REMEDY = (
    "take the extender out of each kube-scheduler's configuration and restart it (by the playbooks: uninstall.yml), "
    "then try again. To remove it all the same: helm uninstall --no-hooks; where it is not ignorable, no pod is placed"
)


def register(commands: Commands) -> None:
    parser = command(commands, "unregistered", "does no kube-scheduler ask the extenders any more?", EXIT_CODES)
    parser.add_argument(
        "pod", metavar="NAMESPACE/NAME", help="a pod that kube-scheduler has placed: the one it runs in"
    )
    add_servers(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    namespace, _, name = arguments.pod.partition("/")
    if not namespace or not name or "/" in name:
        raise CommandError(f"{arguments.pod} is no pod; name it NAMESPACE/NAME", code=EXIT_USAGE)
    try:
        look(Asking(arguments), namespace, name)
    except reach.NoExtenderError:
        print("there is no extender that could be asked, yet the pod was placed: none is missed")
        return 0
    print("no kube-scheduler asks the extenders")
    return 0


def look(asking: Asking, namespace: str, name: str) -> None:
    """Raises CommandError where one has asked about the pod, or that cannot be known."""
    for number in range(LOOKS):
        time.sleep(BETWEEN_S if number else 0.0)
        heard = asking.hear(f"pods/{part(namespace)}/{part(name)}", PodTold)
        asked = sorted(replica for replica, told in heard.answers.items() if told.attempts + told.unanswered)
        if asked:
            raise CommandError(f"kube-scheduler still asks {', '.join(asked)}: {REMEDY}")
    if heard.problems:
        raise CommandError(f"{'; '.join(dict.fromkeys(heard.problems))}. {REMEDY}", code=CANNOT_KNOW)
