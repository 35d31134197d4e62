"""GET /api/v1/nodes: every verdict and what it was made of, for `readygate status` and other people's tools.

Made from the index when asked, in the thread of that request; a filter request never waits for it.
"""

import msgspec
from flask import Blueprint, Response

from extender.policy.verdict import OPEN
from extender.services import Services, services
from extender.web.report import NodeVerdict, NodeVerdicts
from kube.media_types import JSON

bp = Blueprint("explain", __name__, url_prefix="/api/v1")


def node_verdicts(bundle: Services) -> NodeVerdicts:
    now = bundle.now()
    ages_s = bundle.index.heartbeat_ages_s()
    nodes = []
    for name, state in sorted(bundle.index.states().items()):
        verdict, age_s = state.verdict, ages_s.get(name)
        nodes.append(
            NodeVerdict(
                node=name,
                open=verdict.reason == OPEN,
                reason=verdict.reason,
                since_seconds=round(now - state.since, 3),
                pod=verdict.pod,
                evidence=verdict.evidence,
                heartbeat_age_seconds=None if age_s is None else round(age_s, 3),
            )
        )
    return NodeVerdicts(blind=bundle.blind(), nodes=nodes)


@bp.get("/nodes", provide_automatic_options=False)
def nodes_view() -> Response:
    return Response(msgspec.json.encode(node_verdicts(services())), content_type=JSON)
