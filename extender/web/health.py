"""GET /livez: our threads run. GET /readyz: verdicts can be given. GET /metrics.

livez never depends on the API server: a restart would not bring it back, and would end with an empty cache.
"""

import math

import msgspec
from flask import Blueprint, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from extender.services import services
from kube.media_types import JSON

bp = Blueprint("health", __name__)


@bp.get("/livez", provide_automatic_options=False)
def livez_view() -> Response:
    stuck = services().unhealthy()
    return Response(msgspec.json.encode({"live": not stuck, "stuck": stuck}), 503 if stuck else 200, content_type=JSON)


@bp.get("/readyz", provide_automatic_options=False)
def readyz_view() -> Response:
    bundle = services()
    why = "stopping" if bundle.stopping else bundle.sync().value
    monotonic = bundle.monotonic()
    caches = {}
    for name, cache in bundle.caches.items():
        age_s = cache.age_s(monotonic)
        caches[name] = {"synced": cache.synced, "ageSeconds": None if math.isinf(age_s) else round(age_s, 3)}
    answer = {"ready": not why, "why": why, "caches": caches}
    return Response(msgspec.json.encode(answer), 503 if why else 200, content_type=JSON)


@bp.get("/metrics", provide_automatic_options=False)
def metrics_view() -> Response:
    return Response(generate_latest(services().metrics.registry), content_type=CONTENT_TYPE_LATEST)
