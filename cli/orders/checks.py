"""Checks an order before it is written: whether its gate, pool and node exist, and how many nodes it covers.

Without the check, an order with a misspelled name would have no effect, and no one would notice.
"""

import argparse
import getpass
import time
from typing import NamedTuple

import msgspec

from cli.orders.entries import Wanted, some_of
from cli.shared.errors import CommandError
from cli.shared.queries import Queries
from extender.web.report import GatesTold
from kube import paths
from kube.client import Client
from kube.errors import CredentialsInvalid, KubeError, NotFound
from kube.objects import UNREADABLE
from kube.times import parse_time

ANYWAY = "or add --yes"
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
    """The user and the time, if possible from the API server, whose clock is close to that of the extenders."""

    author: str  # the user name at the API server, else on this machine
    wall: float


def now(client: Client) -> Now:
    """Asks the API server for the user and the time."""
    body = msgspec.json.encode({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    try:
        found = msgspec.json.decode(client.create(paths.self_subject_reviews(), body), type=_Review)
        wall = parse_time(found.metadata.creation_timestamp)
    except (KubeError, CredentialsInvalid, *UNREADABLE):
        found, wall = _Review(), None
    return Now(found.status.user_info.username or _local_user(), time.time() if wall is None else wall)


def _local_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def in_shadow(arguments: argparse.Namespace, gate: str) -> list[str]:
    """The gates in shadow that an order on nodes concerns; empty if no extender answers."""
    try:
        replies = Queries(arguments).ask_all("gates", GatesTold)
    except CommandError:
        return []
    gates = [one for answer in replies.answers.values() for one in answer.gates if gate in ("", one.gate)]
    return sorted({one.gate for one in gates if not one.armed})


def known_gate(arguments: argparse.Namespace, gate: str) -> None:
    """Raises CommandError if the extenders report other gates only. Without an answer the gate is accepted."""
    try:
        replies = Queries(arguments).ask_all("gates", GatesTold)
    except CommandError:
        return
    names = {one.gate for answer in replies.answers.values() for one in answer.gates}
    if names and gate not in names:
        raise CommandError(f"there is no gate {gate}; name one of {some_of(names)}, {ANYWAY}")


def known_node(client: Client, node: str) -> None:
    """Raises CommandError if the API server reports that there is no such node."""
    try:
        client.get(paths.node(node))
    except NotFound as e:
        raise CommandError(f"there is no node {node}; see kubectl get nodes, {ANYWAY}") from e
    except (KubeError, CredentialsInvalid):
        return


def nodes_covered(client: Client, wanted: Wanted, pool_label: str) -> int | None:
    """How many nodes the order covers: those of the pool, or all; None if the nodes cannot be listed."""
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
