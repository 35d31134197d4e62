"""`readygate status`: the verdict on every node, as a running extender gives it to kube-scheduler.

Asked is the process of the people, `readygate-people`, which follows the one that answers kube-scheduler.
"""

import sys

import msgspec
import urllib3
from urllib3.exceptions import HTTPError, LocationValueError

from component.command import EXIT_FAILED, EXIT_USAGE, complain
from component.text import one_line
from extender.web.report import NodeVerdict, NodeVerdicts
from kube.objects import UNREADABLE

DEFAULT_SERVER = "http://127.0.0.1:9377"
VERBS_SERVER = "http://127.0.0.1:9376"  # kube-scheduler's, by default
PATH = "/api/v1/nodes"
TIMEOUT_S = 5.0
HEADINGS = ("NODE", "OPEN", "SINCE", "REASON", "HEALTH POD", "EVIDENCE")


class StatusError(Exception):
    """There is no status to show. One line with cause and remedy. usage: whether the command line is at fault."""

    def __init__(self, text: str, *, usage: bool = False) -> None:
        super().__init__(text)
        self.usage = usage


def run(server: str, output: str) -> int:
    """0 if every node is open and kube-scheduler gets verdicts, else 1; 2 for a URL that is none."""
    try:
        body = fetch(server)
        verdicts = read(server, body)
    except StatusError as e:
        return complain("readygate status", e, EXIT_USAGE if e.usage else EXIT_FAILED)
    if output == "json":
        print(msgspec.json.format(body, indent=2).decode())
    else:
        print(table(verdicts))
    if verdicts.not_answering:
        print(f"extender is not answering with verdicts: {verdicts.not_answering}", file=sys.stderr)
    return 0 if not verdicts.not_answering and all(node.open for node in verdicts.nodes) else 1


def fetch(server: str) -> bytes:
    """The extender's answer. Raises StatusError."""
    if not server.startswith(("http://", "https://")):
        raise StatusError(f"{server} is no URL; give --server http://ADDRESS:PORT", usage=True)
    try:
        with urllib3.PoolManager() as pool:
            answer = pool.request("GET", server.rstrip("/") + PATH, timeout=TIMEOUT_S, retries=False, redirect=False)
    except LocationValueError as e:
        raise StatusError(f"{server} is no URL; give --server http://ADDRESS:PORT", usage=True) from e
    except HTTPError as e:
        raise StatusError(f"nothing answers at {server}: {one_line(e)}; {_remedy(server)}") from e
    if answer.status == 404:
        raise StatusError(
            f"{server} has no {PATH}: is it kube-scheduler's port? Give that of readygate-people, people.port there"
        )
    if answer.status != 200:
        raise StatusError(f"{server} answers {answer.status} to {PATH}; is it an extender of this release?")
    return answer.data


def _remedy(server: str) -> str:
    """What to do when nothing answers there: it depends on whether kube-scheduler is answered."""
    if server == DEFAULT_SERVER and _answers(VERBS_SERVER):
        return f"kube-scheduler's port {VERBS_SERVER} does answer, so start readygate-people beside it"
    return "is readygate-people running, and is this one of its hosts?"


def _answers(server: str) -> bool:
    try:
        with urllib3.PoolManager() as pool:
            pool.request("GET", f"{server}/livez", timeout=1.0, retries=False, redirect=False)
    except HTTPError:
        return False
    return True


def read(server: str, body: bytes) -> NodeVerdicts:
    """Raises StatusError for what is not a report."""
    try:
        return msgspec.json.decode(body, type=NodeVerdicts)
    except (*UNREADABLE, RecursionError) as e:
        raise StatusError(f"{server} gives no report at {PATH}; is it an extender of this release?") from e


def table(verdicts: NodeVerdicts) -> str:
    """Closed nodes first. Free text of the cluster is made one printable line."""
    nodes = sorted(verdicts.nodes, key=lambda node: (node.open, node.node))
    rows = [HEADINGS, *(_row(node) for node in nodes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    opened = sum(node.open for node in nodes)
    return "\n".join([*lines, "", f"{opened} of {len(nodes)} nodes open"])


def _row(node: NodeVerdict) -> tuple[str, ...]:
    cells = (node.node, "yes" if node.open else "no", age(node.since_seconds), node.reason, node.pod, node.evidence)
    return tuple(one_line(cell) for cell in cells)


def age(seconds: float) -> str:
    """As kubectl shows ages: 42s, 12m, 5h, 3d."""
    for unit_s, unit, limit_s in ((1, "s", 120), (60, "m", 7200), (3600, "h", 172_800)):
        if seconds < limit_s:
            return f"{int(seconds // unit_s)}{unit}"
    return f"{int(seconds // 86400)}d"
