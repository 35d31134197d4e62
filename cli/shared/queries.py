"""Sends the queries of one command: to all extenders, page by page, and to the API server."""

import argparse
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import quote

import msgspec

from cli.shared import extender_client, terminal
from cli.shared.merge_answers import Replies, decode
from extender.web.report import Head, NodeVerdicts
from kube.client import Client

T = TypeVar("T", bound=Head)
PAGE = 1000  # the most that an extender sends at once
PAGES_MOST = 100


class Queries:
    """The queries of one command. Clients are kept while the command watches."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        """Raises CommandError."""
        self._arguments = arguments
        self.program: str = arguments.program
        with terminal.progress("reading the kubeconfig"):
            self._extenders = extender_client.extenders(arguments)
        self._api: Client | None = None

    @property
    def cluster(self) -> str:
        """The cluster's name in the kubeconfig; "" if the extenders are named by URL."""
        return "" if self._arguments.server else extender_client.context(self._arguments)[0]

    def api(self) -> Client:
        """A client of the API server. Raises CommandError."""
        if self._api is None:
            self._api = extender_client.api_client(self._arguments)
        return self._api

    def ask_all(self, path: str, kind: type[T], query: Mapping[str, str] | None = None) -> Replies[T]:
        """Asks every extender. Raises CommandError."""
        with terminal.progress("querying the extenders"):
            return decode(self._extenders.ask(path, query), kind)

    def ask_one(self, path: str, kind: type[T], replica: str) -> T | None:
        """Asks the extender of that name. None without a valid answer."""
        with terminal.progress(f"querying {replica}"):
            return decode(self._extenders.ask(path, only=replica), kind).answers.get(replica)

    def nodes(self) -> Replies[NodeVerdicts]:
        """The verdicts on all nodes. Raises CommandError.

        The first request is for all nodes at once, because an extender encodes that answer at most once a second for
        all clients. Further pages are read if the extender sends pages.
        """
        replies = self.ask_all("nodes", NodeVerdicts)
        whole: dict[str, NodeVerdicts] = {}
        problems = list(replies.problems)
        for name, first in replies.answers.items():
            nodes, rest = list(first.nodes), first.continue_
            for _ in range(PAGES_MOST):
                if not rest:
                    break
                more = decode(
                    self._extenders.ask("nodes", {"limit": str(PAGE), "continue": rest}, only=name), NodeVerdicts
                ).answers.get(name)
                if more is None:
                    problems.append(f"{name} stopped in the middle of its answer; try again")
                    break
                nodes += more.nodes
                rest = more.continue_
            else:
                problems.append(f"{name} sends pages of nodes without end; check that it is an extender")
            if not rest:
                whole[name] = msgspec.structs.replace(first, nodes=nodes, continue_="")
        return Replies(whole, tuple(problems), replies.not_found)


def path_segment(name: str) -> str:
    """Quotes a name as one segment of a path."""
    return quote(name, safe="")
