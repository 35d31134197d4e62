"""GET /livez: the threads run. GET /readyz: verdicts can be given. GET /metrics.

/livez never depends on another process: a restart of this one would not bring that one back.
"""

import math

import msgspec
from flask import Blueprint, Response, current_app
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from extender.web.view import view
from kube.media_types import JSON

bp = Blueprint("health", __name__)


@bp.get("/livez", provide_automatic_options=False)
def livez_view() -> Response:
    stuck = view().unhealthy()
    return Response(msgspec.json.encode({"live": not stuck, "stuck": stuck}), 503 if stuck else 200, content_type=JSON)


@bp.get("/readyz", provide_automatic_options=False)
def readyz_view() -> Response:
    shown = view()
    why = shown.why_not()
    status = shown.status()
    caches = {}
    if status is not None:
        for name, age_s in status.ages_s(shown.monotonic()).items():
            age = None if math.isinf(age_s) else round(age_s, 3)
            caches[name] = {"synced": status.caches[name].synced, "ageSeconds": age}
            lag_s = status.caches[name].lag_s
            if lag_s is not None:
                caches[name]["lagSeconds"] = round(lag_s, 3)
    answer = {"ready": not why, "why": why, "caches": caches}
    return Response(msgspec.json.encode(answer), 503 if why else 200, content_type=JSON)


@bp.get("/metrics", provide_automatic_options=False)
def metrics_view() -> Response:
    registry = current_app.extensions["readygate-metrics"].registry
    return Response(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
