"""Before an order is written: does what it names exist, and how many nodes does it cover?

An order for a gate, pool or node that is misspelled would be obeyed by nobody, in silence.
"""

import argparse
import getpass
import time
from typing import NamedTuple

import msgspec

from cli.asking import Asking
from cli.errors import CommandError
from cli.orders.entries import Wanted, alike
from extender.web.schema import GatesTold
from kube import paths
from kube.client import Client
from kube.errors import CredentialsInvalid, KubeError, NotFound
from kube.objects import UNREADABLE
from kube.times import parse_time

ANYWAY = "or say --yes"
PAGE = "200"


class _List(msgspec.Struct, frozen=True):
    class _Meta(msgspec.Struct, frozen=True, rename="camel"):
        continue_: str = msgspec.field(default="", name="continue")
        remaining_item_count: int | None = None

    metadata: _Meta = _Meta()
    items: list[msgspec.Raw] = []


class _Review(msgspec.Struct, frozen=True):
    class _Meta(msgspec.Struct, frozen=True, rename="camel"):
        creation_timestamp: str | None = None

    class _Status(msgspec.Struct, frozen=True, rename="camel"):
        class _User(msgspec.Struct, frozen=True):
            username: str = ""

        user_info: _User = _User()

    metadata: _Meta = _Meta()
    status: _Status = _Status()


class Now(NamedTuple):
    """author: who the API server says we are, else the user of this machine. wall: by its clock, else by ours; what the
    extenders compare an order's times with is near the former."""

    author: str
    wall: float


def now(client: Client) -> Now:
    body = msgspec.json.encode({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    try:
        found = msgspec.json.decode(client.create(paths.self_subject_reviews(), body), type=_Review)
        wall = parse_time(found.metadata.creation_timestamp)
    except (KubeError, CredentialsInvalid, *UNREADABLE):
        found, wall = _Review(), None
    return Now(found.status.user_info.username or _here(), time.time() if wall is None else wall)


def _here() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def in_shadow(arguments: argparse.Namespace, gate: str) -> list[str]:
    """The gates of an order on nodes that refuse nothing; none if no extender says so."""
    try:
        told = Asking(arguments).hear("gates", GatesTold)
    except CommandError:
        return []
    gates = [one for answer in told.answers.values() for one in answer.gates if gate in ("", one.gate)]
    return sorted({one.gate for one in gates if not one.armed})


def known_gate(arguments: argparse.Namespace, gate: str) -> None:
    """Raises CommandError if the extenders say that there is none. If none answers nobody can know."""
    try:
        told = Asking(arguments).hear("gates", GatesTold)
    except CommandError:
        return
    names = {one.gate for answer in told.answers.values() for one in answer.gates}
    if names and gate not in names:
        raise CommandError(f"there is no gate {gate}, but {alike(names)}; name one of them, {ANYWAY}")


def known_node(client: Client, node: str) -> None:
    """Raises CommandError if the API server says that there is none."""
    try:
        client.get(paths.node(node))
    except NotFound as e:
        raise CommandError(f"there is no node {node}; see kubectl get nodes, {ANYWAY}") from e
    except (KubeError, CredentialsInvalid):
        return


def nodes_covered(client: Client, wanted: Wanted, pool_label: str) -> int | None:
    """How many Nodes there are in the pool, or in all; None if we may not know."""
    query = {"limit": "1"} if not wanted.pool else {"limit": PAGE, "labelSelector": f"{pool_label}={wanted.pool}"}
    count = 0
    try:
        while True:
            page = msgspec.json.decode(client.get(paths.nodes(), query=query), type=_List)
            count += len(page.items)
            if page.metadata.remaining_item_count is not None:
                return count + page.metadata.remaining_item_count
            if not page.metadata.continue_:
                return count
            query = {**query, "limit": PAGE, "continue": page.metadata.continue_}
    except (KubeError, CredentialsInvalid, *UNREADABLE):
        return None
