"""`readygate sweep`: removes what an uninstalled readygate left in the cluster.

On the Nodes: the extenders' condition, which nothing updates any more, and the annotation of the kick. In the
namespace: the extenders' leader Lease and the pod of `helm test`. The chart runs this command after its removal. Run it
yourself after `kubectl delete` or `helm uninstall --no-hooks`. The orders of operators stay.

If the API server refuses one change, the command reports it and goes on with the others.
"""

import argparse

import msgspec

from cli.shared import terminal
from cli.shared.arguments import Commands, add_api, command
from cli.shared.errors import CommandError, api_problem
from cli.shared.extender_client import api_client
from component.command import EXIT_FAILED, complain
from extender.outlets.kick import ANNOTATION_KICK
from kube import contract, paths
from kube.client import Client
from kube.errors import CredentialsInvalid, KubeError, NotFound, Unauthorized, Unreachable
from kube.media_types import STRATEGIC_MERGE_PATCH
from kube.objects import UNREADABLE, Condition, ObjectMeta

PAGE = "100"  # of 2.5 MB at most, which a slow line carries within the deadline
TEST_POD = "readygate-test"  # as the chart's templates/hooks/test.yaml calls it
EXIT_CODES = """\
  0    nothing is left
  1    something could not be removed; each failure is reported; run the command again
  3    no kubeconfig can be used
"""


class RefusedError(CommandError):
    """The API server refuses one change. Others may succeed."""


class _Node(msgspec.Struct, frozen=True):
    class _Status(msgspec.Struct, frozen=True):
        conditions: list[Condition] | None = None

    metadata: ObjectMeta = ObjectMeta()
    status: _Status = _Status()

    @property
    def is_marked(self) -> bool:
        return ANNOTATION_KICK in (self.metadata.annotations or {}) or any(
            one.type == contract.CONDITION_NODE_HEALTHY for one in self.status.conditions or ()
        )


class _ListMeta(msgspec.Struct, frozen=True):
    continue_: str = msgspec.field(default="", name="continue")


class _Nodes(msgspec.Struct, frozen=True):
    items: list[_Node] = []
    metadata: _ListMeta = _ListMeta()


def register(commands: Commands) -> None:
    parser = command(commands, "sweep", "remove what an uninstalled readygate left in the cluster", EXIT_CODES)
    add_api(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    client, namespace = api_client(arguments), arguments.readygate_namespace
    refused: list[RefusedError] = []
    cleaned = 0
    with terminal.progress("listing the nodes"):
        marked = [node.metadata.name for node in listed(client) if node.is_marked]
    with terminal.progress("cleaning up the nodes"):
        for name in marked:
            try:
                cleaned += unmark(client, name)
            except RefusedError as e:
                refused.append(e)
    for path, what in (
        (paths.lease(namespace, contract.NAME_EXTENDER), f"the Lease {contract.NAME_EXTENDER} in {namespace}"),
        (paths.pod(namespace, TEST_POD), f"the pod {TEST_POD} in {namespace}"),
    ):
        try:
            delete(client, path, what)
        except RefusedError as e:
            refused.append(e)
    rest = f"; {len(refused)} refused" if refused else ""
    print(f"swept: {cleaned} {'node' if cleaned == 1 else 'nodes'}, and namespace {namespace}{rest}")
    for error in refused:
        complain("readygate sweep", error, EXIT_FAILED)
    return EXIT_FAILED if refused else 0


def listed(client: Client) -> list[_Node]:
    """Lists all nodes. Raises CommandError."""
    nodes: list[_Node] = []
    query = {"limit": PAGE}
    while True:
        try:
            page = msgspec.json.decode(client.get(paths.nodes(), query=query), type=_Nodes)
        except (KubeError, CredentialsInvalid) as e:
            raise CommandError(api_problem(e, "list nodes")) from e
        except UNREADABLE as e:
            raise CommandError("the answer is no list of nodes; check the server in the kubeconfig") from e
        nodes += page.items
        if not page.metadata.continue_:
            return nodes
        query = {"limit": PAGE, "continue": page.metadata.continue_}


def unmark(client: Client, node: str) -> bool:
    """Removes condition and annotation of a node. Returns False if the node is gone.

    One patch of the status does both, because it may also change annotations. So no right to the Node itself is needed.
    Raises RefusedError if only this node is refused, else CommandError.
    """
    patch = {
        "metadata": {"annotations": {ANNOTATION_KICK: None}},
        "status": {"conditions": [{"type": contract.CONDITION_NODE_HEALTHY, "$patch": "delete"}]},
    }
    try:
        client.patch(paths.node_status(node), msgspec.json.encode(patch), content_type=STRATEGIC_MERGE_PATCH)
    except NotFound:
        return False
    except (KubeError, CredentialsInvalid) as e:
        raise _problem(e, f"patch the status of node {node}") from e
    return True


def delete(client: Client, path: str, what: str) -> None:
    """Deletes an object if it exists. Raises as unmark()."""
    try:
        client.delete(path)
    except NotFound:
        return
    except (KubeError, CredentialsInvalid) as e:
        raise _problem(e, f"delete {what}") from e


def _problem(error: Exception, what: str) -> CommandError:
    """Without an answer or valid credentials every change fails, so the command ends."""
    everywhere = isinstance(error, CredentialsInvalid | Unauthorized | Unreachable)
    return (CommandError if everywhere else RefusedError)(api_problem(error, what))
