"""GET /api/v1/nodes: every verdict and what it was made of, for `readygate status` and other people's tools."""

import threading

import msgspec
from flask import Blueprint, Response, current_app

from extender.policy.decision import Decision
from extender.policy.reasons import OPEN
from extender.policy.snapshot import Snapshot
from extender.web.report import NodeVerdict, NodeVerdicts
from extender.web.view import View
from kube.media_types import JSON

bp = Blueprint("api", __name__, url_prefix="/api/v1")


def node_verdicts(view: View) -> NodeVerdicts:
    monotonic = view.monotonic()
    beats = view.beats()
    nodes = []
    for name, decision in sorted(merged(view.board.snapshot).items()):
        beat = beats.get(name)
        nodes.append(
            NodeVerdict(
                node=name,
                open=decision.reason == OPEN,
                reason=decision.reason,
                since_seconds=round(monotonic - decision.since_monotonic, 3),
                pod=decision.pod,
                evidence=decision.evidence,
                heartbeat_age_seconds=None if beat is None else round(max(0.0, monotonic - beat), 3),
            )
        )
    return NodeVerdicts(not_answering=view.why_not(), nodes=nodes)


def merged(snapshot: Snapshot) -> dict[str, Decision]:
    """By node: what the first gate says that refuses it, or where none does, the first gate."""
    found: dict[str, Decision] = {}
    states = list(reversed(list(snapshot.gates.values())))
    for state in states:
        found.update(state.decisions)
    for state in states:
        if state.refuses:
            found.update((name, state.decisions[name]) for name in state.closed)
    return found


class NodesPage:
    """The encoded answer, made when it is asked for and the snapshot, what is said of it or the second is another.

    With thousands of nodes it takes as long to make as hundreds of requests do.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._lock = threading.Lock()  # over memory only: who comes meanwhile waits for the same answer
        self._of: tuple[object, ...] = ()
        self._body = b""

    def body(self) -> bytes:
        view = self._view
        of = (view.board.snapshot, view.why_not(), int(view.monotonic()))
        with self._lock:
            if self._of != of:
                self._body, self._of = msgspec.json.encode(node_verdicts(view)), of
            return self._body


@bp.get("/nodes", provide_automatic_options=False)
def nodes_view() -> Response:
    page: NodesPage = current_app.extensions["readygate-nodes"]
    return Response(page.body(), content_type=JSON)
