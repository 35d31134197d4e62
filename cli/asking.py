"""The questions that commands ask: of all extenders, page after page, and of the API server."""

import argparse
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import quote

import msgspec

from cli import reach, screen
from cli.replicas import Heard, hear
from extender.web.schema import Head, NodeVerdicts
from kube.client import Client

T = TypeVar("T", bound=Head)
PAGE = 1000  # the most that an extender gives at once
PAGES_MOST = 100


class Asking:
    """One command's: what it has found is kept while it watches."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        """Raises CommandError."""
        self._arguments = arguments
        self.program: str = arguments.program
        with screen.progress("reading the kubeconfig"):
            self._extenders = reach.extenders(arguments)
        self._api: Client | None = None

    @property
    def cluster(self) -> str:
        """What the user calls it, "" if the extenders are named by URL."""
        return "" if self._arguments.server else reach.context(self._arguments)[0]

    def api(self) -> Client:
        """The API server. Raises CommandError."""
        if self._api is None:
            self._api = reach.api_client(self._arguments)
        return self._api

    def hear(self, path: str, kind: type[T], query: Mapping[str, str] | None = None) -> Heard[T]:
        """What every extender says. Raises CommandError."""
        with screen.progress("asking the extenders"):
            return hear(self._extenders.ask(path, query), kind)

    def one(self, path: str, kind: type[T], replica: str) -> T | None:
        """What the one of that name says, None if nothing of use."""
        with screen.progress(f"asking {replica}"):
            return hear(self._extenders.ask(path, only=replica), kind).answers.get(replica)

    def nodes(self) -> Heard[NodeVerdicts]:
        """Of all nodes. Asked in one piece, which an extender makes once a second at most for all; in pages, should one
        give these. Raises CommandError."""
        heard = self.hear("nodes", NodeVerdicts)
        whole: dict[str, NodeVerdicts] = {}
        problems = list(heard.problems)
        for name, first in heard.answers.items():
            nodes, rest = list(first.nodes), first.continue_
            for _ in range(PAGES_MOST):
                if not rest:
                    break
                more = hear(
                    self._extenders.ask("nodes", {"limit": str(PAGE), "continue": rest}, only=name), NodeVerdicts
                ).answers.get(name)
                if more is None:
                    problems.append(f"{name} stopped in the middle of its answer; try again")
                    break
                nodes += more.nodes
                rest = more.continue_
            else:
                problems.append(f"{name} gives pages without end; is it an extender?")
            if not rest:
                whole[name] = msgspec.structs.replace(first, nodes=nodes, continue_="")
        return Heard(whole, tuple(problems), heard.missing)


def part(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="")
