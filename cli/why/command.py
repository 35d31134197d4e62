"""`readygate why pod` and `readygate why node`: what is asked, in which order, and the exit codes."""

import argparse
import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from cli import reach, screen
from cli.arguments import Commands, add_output, add_servers, command
from cli.asking import Asking, part
from cli.errors import CANNOT_KNOW, CommandError, api_problem
from cli.layout import text_of
from cli.pages import node as node_page
from cli.pages import pod as pod_page
from cli.replicas import Heard, freshest
from cli.why.blame import Blame, Facts, Kind, judge, nodes_of_interest
from cli.why.seen import PodSeen, read_pod
from component.command import EXIT_USAGE
from component.text import one_line
from extender.web.schema import GatesTold, NodeTold, PodTold
from kube import errors, paths
from kube.errors import KubeError
from kube.objects import UNREADABLE
from kube.times import parse_time

MESSAGE_MOST = 4096  # characters
POD_CODES = """\
  0    readygate does not hold it
  1    readygate keeps it off nodes that would take it
  3    nobody can know: there is no such pod, no extender answers, all are blind, or none is heard by kube-scheduler
"""
NODE_CODES = """\
  0    the node is open
  1    it is closed
  3    nobody can know: no extender answers, or none knows the node
"""


def register(commands: Commands) -> None:
    whys = command(commands, "why", "why is a pod Pending, or a node closed", "")
    kinds = whys.add_subparsers(dest="kind", required=True, metavar="KIND")

    pods = command(kinds, "pod", "is it readygate that keeps a pod Pending, and what would end that", POD_CODES)
    pods.add_argument("pod", metavar="NAMESPACE/NAME", help="or NAME, with --namespace or the context's")
    pods.add_argument("-n", "--namespace", metavar="NAME", help="default: the one of the kubeconfig's context")
    add_servers(pods)
    add_output(pods)
    pods.set_defaults(run=run_pod)

    nodes = command(kinds, "node", "what holds for a node, why, and which pods wait for it", NODE_CODES)
    nodes.add_argument("node", metavar="NAME")
    add_servers(nodes)
    add_output(nodes)
    nodes.set_defaults(run=run_node)


class KeptTold(msgspec.Struct, frozen=True, rename="camel"):
    node: str
    gate: str
    state: str
    because: str
    opens_when: str
    open_now: bool
    also: tuple[str, ...]


class ReasonTold(msgspec.Struct, frozen=True, rename="camel"):
    nodes: int
    text: str
    ours: bool


class PodReport(msgspec.Struct, frozen=True, rename="camel"):
    """The document of `why pod -o json`. answer: ours, notOurs, notPending, notAsked, blind or unknown.

    kept: the first of kept_count nodes. scheduler: its own reasons, of nodes_of_cluster nodes; scheduler_says: all that
    it says, and so many seconds ago.
    """

    namespace: str
    name: str
    answer: str
    first: str
    kept: tuple[KeptTold, ...]
    kept_count: int
    nodes_of_cluster: int | None
    scheduler: tuple[ReasonTold, ...]
    scheduler_says: str
    scheduler_ago_seconds: float | None
    lines: tuple[str, ...]
    problems: tuple[str, ...]
    extenders: dict[str, PodTold]


def run_pod(arguments: argparse.Namespace) -> int:
    asking = Asking(arguments)
    namespace, name = _named(arguments)
    if arguments.watch:
        return screen.watch(lambda: look_at_pod(asking, namespace, name), arguments.output)
    return screen.show_view(look_at_pod(asking, namespace, name), arguments.output)


def _named(arguments: argparse.Namespace) -> tuple[str, str]:
    namespace, slash, name = arguments.pod.removeprefix("pod/").partition("/")
    if not slash:
        namespace, name = arguments.namespace or reach.context(arguments)[1], namespace
    elif arguments.namespace not in (None, namespace):
        raise CommandError(f"two namespaces: {namespace} and {arguments.namespace}; name one", code=EXIT_USAGE)
    if not namespace or not name or "/" in name:
        raise CommandError(f"{arguments.pod} is no pod; name it NAMESPACE/NAME", code=EXIT_USAGE)
    return namespace, name


def look_at_pod(asking: Asking, namespace: str, name: str) -> screen.View:
    """Raises CommandError."""
    pod = _pod(asking, namespace, name)
    heard = asking.hear(f"pods/{part(namespace)}/{part(name)}", PodTold)
    replica, names = nodes_of_interest(pod, heard)
    nodes = {node: told for node in names if (told := asking.one(f"nodes/{part(node)}", NodeTold, replica)) is not None}
    gates = asking.one("gates", GatesTold, replica) if replica else None
    blame = judge(Facts(pod, heard, _wall(heard, replica), nodes, gates))
    return screen.View(
        code=blame.code,
        page=lambda width: pod_page.page(blame, width, problems=heard.problems, program=asking.program),
        headline=one_line(blame.first, 1000),
        key=(blame.kind, [one.node for one in blame.kept], pod.spec.node_name),
        document=_report(pod, heard, blame),
        is_last=blame.kind is Kind.NOT_PENDING,
    )


def _wall(heard: Heard[PodTold], replica: str) -> float:
    """Seconds since the epoch by the clock of who was asked last: the Pod's times are of the control plane's hosts, and
    a machine of one's own may have another."""
    with suppress(*UNREADABLE):
        return parse_time(heard.answers[replica].at or None) or time.time() if replica else time.time()
    return time.time()


def _pod(asking: Asking, namespace: str, name: str) -> PodSeen:
    try:
        with screen.progress("asking the API server"):
            pod = read_pod(asking.api().get(paths.pod(namespace, name)))
    except errors.NotFound as e:
        raise CommandError(
            f"there is no pod {namespace}/{name}: kubectl get pods -A shows all", code=CANNOT_KNOW
        ) from e
    except KubeError as e:
        raise CommandError(api_problem(e, f"get pod {namespace}/{name}"), code=CANNOT_KNOW) from e
    if pod is None:
        raise CommandError("the API server gives no pod: is the kubeconfig's server one?", code=CANNOT_KNOW)
    return pod


def _report(pod: PodSeen, heard: Heard[PodTold], blame: Blame) -> PodReport:
    said = blame.said
    return PodReport(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        answer=blame.kind.value,
        first=blame.first,
        kept=tuple(
            KeptTold(one.node, one.gate, one.state, one.because, one.opens_when, one.open_now, one.also)
            for one in blame.kept
        ),
        kept_count=blame.kept_count,
        nodes_of_cluster=said.total if said else None,
        scheduler=tuple(ReasonTold(one.nodes, one.text, one.is_ours) for one in said.reasons) if said else (),
        scheduler_says=one_line(pod.message, MESSAGE_MOST),
        scheduler_ago_seconds=blame.said_ago_s,
        lines=blame.lines,
        problems=heard.problems,
        extenders=dict(heard.answers),
    )


def run_node(arguments: argparse.Namespace) -> int:
    asking = Asking(arguments)
    if arguments.watch:
        return screen.watch(lambda: look_at_node(asking, arguments.node), arguments.output)
    return screen.show_view(look_at_node(asking, arguments.node), arguments.output)


class NodeReport(msgspec.Struct, frozen=True, rename="camel"):
    """The document of `why node -o json`. replica: whose word `told` is; said: what each says, "open" or its reason."""

    node: str
    replica: str
    first: str
    told: NodeTold
    problems: tuple[str, ...]
    said: dict[str, str]


def look_at_node(asking: Asking, name: str) -> screen.View:
    """Raises CommandError."""
    heard = asking.hear(f"nodes/{part(name)}", NodeTold)
    found = freshest(heard.answers)
    if found is None or found[1].node is None:
        raise CommandError(_no_node(asking, name, heard.problems), code=CANNOT_KNOW)
    replica, told = found
    gates = asking.one("gates", GatesTold, replica)
    shown = node_page.Shown(name, told, gates, dict(heard.answers))
    first = text_of(node_page.first(shown, 10_000)).strip()
    node = told.node
    assert node is not None  # noqa: S101 - looked at above
    return screen.View(
        code=CANNOT_KNOW if told.not_answering else 0 if node.open else 1,
        page=lambda width: node_page.page(shown, width, problems=heard.problems),
        headline=first,
        key=(node.open, [(one.gate, one.reason, one.verdict, one.held_by) for one in node.gates]),
        document=NodeReport(name, replica, first, told, heard.problems, node_page.said(heard.answers)),
    )


def _no_node(asking: Asking, name: str, problems: Sequence[str]) -> str:
    """Nobody tells of it: whether that is the node's fault is known where the extenders answer something else."""
    if asking.hear("gates", GatesTold).answers:
        return f"no extender knows a node {name}: kubectl get nodes shows all"
    return "; ".join(dict.fromkeys(problems)) or f"no extender tells of node {name}"
