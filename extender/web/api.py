"""GET /api/v1/nodes: every verdict and what it was made of, for `readygate status` and other people's tools.

Made from the newest snapshot when asked, in the thread of that request; a filter request never waits for it.
"""

import msgspec
from flask import Blueprint, Response

from extender.policy.reasons import OPEN
from extender.services import Services, services
from extender.web.report import NodeVerdict, NodeVerdicts
from kube.media_types import JSON

bp = Blueprint("api", __name__, url_prefix="/api/v1")


def node_verdicts(bundle: Services) -> NodeVerdicts:
    monotonic = bundle.monotonic()
    ages_s = bundle.index.heartbeat_ages_s()
    nodes = []
    for name, decision in sorted(bundle.decisions().items()):
        age_s = ages_s.get(name)
        nodes.append(
            NodeVerdict(
                node=name,
                open=decision.reason == OPEN,
                reason=decision.reason,
                since_seconds=round(monotonic - decision.since_monotonic, 3),
                pod=decision.pod,
                evidence=decision.evidence,
                heartbeat_age_seconds=None if age_s is None else round(age_s, 3),
            )
        )
    return NodeVerdicts(not_answering=bundle.sync().value, nodes=nodes)


@bp.get("/nodes", provide_automatic_options=False)
def nodes_view() -> Response:
    return Response(msgspec.json.encode(node_verdicts(services())), content_type=JSON)
