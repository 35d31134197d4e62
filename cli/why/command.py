"""`readygate why pod` and `readygate why node`: gather the facts, then show the answer."""

import argparse
import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from cli.shared import extender_client, terminal
from cli.shared.arguments import Commands, add_output, add_servers, command
from cli.shared.errors import EXIT_UNKNOWN, CommandError, api_problem
from cli.shared.layout import text_of
from cli.shared.merge_answers import Replies, freshest
from cli.shared.queries import Queries, path_segment
from cli.why import node_page, pod_page
from cli.why.blame import Blame, Kind, PodFacts, judge, nodes_of_interest
from cli.why.pod_view import PodView, read_pod
from component.command import EXIT_USAGE
from component.text import one_line
from extender.web.report import GatesTold, NodeTold, PodTold
from kube import errors, paths
from kube.errors import KubeError
from kube.objects import UNREADABLE
from kube.times import parse_time

MESSAGE_MOST = 4096  # characters
POD_CODES = """\
  0    readygate does not hold it
  1    readygate keeps it off nodes that would take it
  3    unknown: there is no such pod, no extender answers or gives verdicts, or none reaches kube-scheduler
"""
NODE_CODES = """\
  0    the node is open
  1    the node is closed
  3    unknown: no extender answers, or none knows the node
"""


def register(commands: Commands) -> None:
    whys = command(commands, "why", "explain why a pod is Pending, or a node is closed", "")
    kinds = whys.add_subparsers(dest="kind", required=True, metavar="KIND")

    pods = command(kinds, "pod", "whether readygate keeps a pod Pending, and what would end that", POD_CODES)
    pods.add_argument(
        "pod", metavar="NAMESPACE/NAME", help="or NAME, in the namespace of --namespace or of the context"
    )
    pods.add_argument("-n", "--namespace", metavar="NAME", help="default: the namespace of the kubeconfig's context")
    add_servers(pods)
    add_output(pods)
    pods.set_defaults(run=run_pod)

    nodes = command(kinds, "node", "the state of a node, its cause, and which pods wait for the node", NODE_CODES)
    nodes.add_argument("node", metavar="NAME")
    add_servers(nodes)
    add_output(nodes)
    nodes.set_defaults(run=run_node)


class RefusedReport(msgspec.Struct, frozen=True, rename="camel"):
    node: str
    gate: str
    state: str
    cause: str
    opens_when: str
    open_now: bool
    also: tuple[str, ...]


class ReasonReport(msgspec.Struct, frozen=True, rename="camel"):
    nodes: int
    text: str
    readygate: bool


class PodReport(msgspec.Struct, frozen=True, rename="camel"):
    """The document of `why pod -o json`."""

    namespace: str
    name: str
    answer: str  # blocked, notBlocked, notPending, notAsked, noVerdicts or unknown
    first: str  # the answer in one or two sentences
    nodes: tuple[RefusedReport, ...]  # the first of the nodes that refused the pod
    node_count: int  # how many nodes refused the pod
    nodes_of_cluster: int | None  # as kube-scheduler counts them
    scheduler: tuple[ReasonReport, ...]  # kube-scheduler's reasons
    scheduler_message: str
    scheduler_ago_seconds: float | None  # the age of the message
    lines: tuple[str, ...]  # further remarks
    problems: tuple[str, ...]  # why extenders gave no answer
    extenders: dict[str, PodTold]  # the answers, by the extender's name


def run_pod(arguments: argparse.Namespace) -> int:
    queries = Queries(arguments)
    namespace, name = _namespace_and_name(arguments)
    if arguments.watch:
        return terminal.watch(lambda: view_of_pod(queries, namespace, name), arguments.output)
    return terminal.show_view(view_of_pod(queries, namespace, name), arguments.output)


def _namespace_and_name(arguments: argparse.Namespace) -> tuple[str, str]:
    namespace, slash, name = arguments.pod.removeprefix("pod/").partition("/")
    if not slash:
        namespace, name = arguments.namespace or extender_client.context(arguments)[1], namespace
    elif arguments.namespace not in (None, namespace):
        raise CommandError(f"two namespaces: {namespace} and {arguments.namespace}; name one", code=EXIT_USAGE)
    if not namespace or not name or "/" in name:
        raise CommandError(f"{arguments.pod} is not a pod; write NAMESPACE/NAME", code=EXIT_USAGE)
    return namespace, name


def view_of_pod(queries: Queries, namespace: str, name: str) -> terminal.View:
    """Raises CommandError."""
    pod = _pod(queries, namespace, name)
    replies = queries.ask_all(f"pods/{path_segment(namespace)}/{path_segment(name)}", PodTold)
    replica, names = nodes_of_interest(pod, replies)
    nodes = {
        node: answer
        for node in names
        if (answer := queries.ask_one(f"nodes/{path_segment(node)}", NodeTold, replica)) is not None
    }
    gates = queries.ask_one("gates", GatesTold, replica) if replica else None
    blame = judge(PodFacts(pod, replies, _wall(replies, replica), nodes, gates))
    return terminal.View(
        code=blame.code,
        page=lambda width: pod_page.render(blame, width, problems=replies.problems, program=queries.program),
        headline=one_line(blame.first, 1000),
        key=(blame.kind, [one.node for one in blame.nodes], pod.spec.node_name),
        document=_report(pod, replies, blame),
        is_last=blame.kind is Kind.NOT_PENDING,
    )


def _wall(replies: Replies[PodTold], replica: str) -> float:
    """The time by the clock of the extender, because the clock of this machine may differ from the Pod's timestamps."""
    with suppress(*UNREADABLE):
        return parse_time(replies.answers[replica].at or None) or time.time() if replica else time.time()
    return time.time()


def _pod(queries: Queries, namespace: str, name: str) -> PodView:
    try:
        with terminal.progress("querying the API server"):
            pod = read_pod(queries.api().get(paths.pod(namespace, name)))
    except errors.NotFound as e:
        raise CommandError(
            f"there is no pod {namespace}/{name}: kubectl get pods -A shows all", code=EXIT_UNKNOWN
        ) from e
    except KubeError as e:
        raise CommandError(api_problem(e, f"get pod {namespace}/{name}"), code=EXIT_UNKNOWN) from e
    if pod is None:
        raise CommandError("the answer is no Pod; check the server in the kubeconfig", code=EXIT_UNKNOWN)
    return pod


def _report(pod: PodView, replies: Replies[PodTold], blame: Blame) -> PodReport:
    message = blame.message
    return PodReport(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        answer=blame.kind.value,
        first=blame.first,
        nodes=tuple(
            RefusedReport(one.node, one.gate, one.state, one.cause, one.opens_when, one.open_now, one.also)
            for one in blame.nodes
        ),
        node_count=blame.node_count,
        nodes_of_cluster=message.total if message else None,
        scheduler=tuple(ReasonReport(one.nodes, one.text, one.is_readygate) for one in message.reasons)
        if message
        else (),
        scheduler_message=one_line(pod.message, MESSAGE_MOST),
        scheduler_ago_seconds=blame.message_ago_s,
        lines=blame.lines,
        problems=replies.problems,
        extenders=dict(replies.answers),
    )


def run_node(arguments: argparse.Namespace) -> int:
    queries = Queries(arguments)
    if arguments.watch:
        return terminal.watch(lambda: view_of_node(queries, arguments.node), arguments.output)
    return terminal.show_view(view_of_node(queries, arguments.node), arguments.output)


class NodeReport(msgspec.Struct, frozen=True, rename="camel"):
    """The document of `why node -o json`."""

    node: str
    replica: str  # the extender with the newest data
    first: str  # the answer in one sentence
    answer: NodeTold  # of that extender
    problems: tuple[str, ...]  # why other extenders gave no answer
    verdicts: dict[str, str]  # of all extenders, by their names: "open" or the reason


def view_of_node(queries: Queries, name: str) -> terminal.View:
    """Raises CommandError."""
    replies = queries.ask_all(f"nodes/{path_segment(name)}", NodeTold)
    found = freshest(replies.answers)
    if found is None or found[1].node is None:
        raise CommandError(_no_node(queries, name, replies.problems), code=EXIT_UNKNOWN)
    replica, answer = found
    gates = queries.ask_one("gates", GatesTold, replica)
    shown = node_page.Shown(name, answer, gates, dict(replies.answers))
    first = text_of(node_page.first(shown, 10_000)).strip()
    node = answer.node
    assert node is not None  # noqa: S101 - looked at above
    return terminal.View(
        code=EXIT_UNKNOWN if answer.not_answering else 0 if node.open else 1,
        page=lambda width: node_page.render(shown, width, problems=replies.problems),
        headline=first,
        key=(node.open, [(one.gate, one.reason, one.verdict, one.held_by) for one in node.gates]),
        document=NodeReport(name, replica, first, answer, replies.problems, node_page.verdicts(replies.answers)),
    )


def _no_node(queries: Queries, name: str, problems: Sequence[str]) -> str:
    """The error for a node without an answer. If the extenders answer another query, the node is unknown to them."""
    if queries.ask_all("gates", GatesTold).answers:
        return f"no extender knows a node {name}: kubectl get nodes shows all"
    return "; ".join(dict.fromkeys(problems)) or f"no extender reports node {name}"
