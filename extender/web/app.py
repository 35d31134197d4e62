"""The Flask application: routes and error handlers. Starts no thread and opens no connection."""

import logging
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
from flask import Flask, request
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge
from werkzeug.wrappers import Response

from extender.web import api, health, verbs
from extender.web.metrics import Metrics
from extender.web.page_budget import PageBudget
from extender.web.parameters import BODY_LIMIT_BYTES
from extender.web.schema import NO_BROWSER_HEADER
from extender.web.throttle import Throttle
from extender.web.view import View
from kube.media_types import JSON

log = logging.getLogger(__name__)

NO_BROWSER_KEY = "HTTP_" + NO_BROWSER_HEADER.upper().replace("-", "_")
PROBES = ("/livez", "/readyz")
METRICS = "/metrics"
StartResponse = Callable[..., object]
Wsgi = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


class MetricsListener(NamedTuple):
    """The listener that serves /metrics and nothing else. port: no other listener of this process has it.

    is_ours: as for create_app, for the requests to this listener.
    """

    port: int
    is_ours: Callable[[str], bool]


def create_app(
    view: View,
    *,
    is_ours: Callable[[str], bool] = lambda _: True,
    metrics: MetricsListener | None = None,
    pace: PageBudget | None = None,
) -> Flask:
    """Returns the application around a View. is_ours: whether a Host header is accepted; others are refused with 421.

    metrics: the listener for Prometheus, None if there is none. pace: the share of a processor that all requests
    together may take, None for no limit.
    """
    app = Flask("extender", static_folder=None)
    app.extensions["readygate"] = view
    app.extensions["readygate-metrics-port"] = None if metrics is None else metrics.port
    rests = Throttle(pace)
    app.extensions["readygate-api"] = api.Api(view, rest=rests.within)
    app.extensions["readygate-metrics"] = Metrics(view)
    app.url_map.merge_slashes = False
    for blueprint in (health.bp, api.bp, verbs.bp):
        app.register_blueprint(blueprint)
    app.register_error_handler(HTTPException, _refused)
    app.register_error_handler(Exception, _failed)  # after the others: Flask chooses the closest class
    app.before_request(_refuse_large_body)
    flask: Wsgi = app.wsgi_app  # type: ignore[assignment]
    paced = _paced(flask, rests)
    whole = _of_this_host(_one_spelling(paced), is_ours)
    if metrics is not None:
        whole = _by_listener(whole, _of_this_host(_metrics_only(paced), metrics.is_ours), metrics.port)
    app.wsgi_app = whole  # type: ignore[method-assign, assignment]
    return app


def _by_listener(whole: Wsgi, metrics_only: Wsgi, metrics_port: int) -> Wsgi:
    """Separates the listeners by SERVER_PORT: gunicorn takes it from the socket, and no header changes it."""

    def choosing(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        application = metrics_only if environ["SERVER_PORT"] == str(metrics_port) else whole
        return application(environ, start_response)

    return choosing


def _metrics_only(application: Wsgi) -> Wsgi:
    def refusing(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] == METRICS and environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            return application(environ, start_response)
        return _short(start_response, HTTPStatus.NOT_FOUND)

    return refusing


def _short(start_response: StartResponse, status: HTTPStatus) -> Iterable[bytes]:
    body = msgspec.json.encode({"Error": status.phrase})
    start_response(f"{status.value} {status.phrase}", [("Content-Type", JSON), ("Content-Length", str(len(body)))])
    return (body,)


def _of_this_host(application: Wsgi, is_ours: Callable[[str], bool]) -> Wsgi:
    """Refuses foreign Host headers: a rebinding page in a browser of this machine must not read the answers."""

    def refusing(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if is_ours(environ.get("HTTP_HOST", "")) or NO_BROWSER_KEY in environ:
            return application(environ, start_response)
        return _short(start_response, HTTPStatus.MISDIRECTED_REQUEST)

    return refusing


def _paced(application: Wsgi, rests: Throttle) -> Wsgi:
    """Makes requests wait while more than the budget was taken. Probes do not wait: they are cheap, and kubelet
    restarts the container by them."""

    def waiting(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] in PROBES:
            return application(environ, start_response)
        rests.before()
        return rests.in_pieces(application(environ, start_response))

    return waiting


def _one_spelling(application: Wsgi) -> Wsgi:
    """Serves `//filter` and `/filter/` as `/filter`: a redirect would turn kube-scheduler's POST into a GET.

    A verb with a leading slash in the scheduler configuration gives two slashes.
    """

    def normalised(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if "//" in path or path.endswith("/"):
            environ["PATH_INFO"] = "/" + "/".join(part for part in path.split("/") if part)
        return application(environ, start_response)

    return normalised


def _refuse_large_body() -> None:
    """Lets only the verbs receive large bodies; they refuse and count them themselves."""
    if request.blueprint != verbs.bp.name and (request.content_length or 0) > BODY_LIMIT_BYTES:
        raise RequestEntityTooLarge


def _refused(error: HTTPException) -> Response:
    """Returns 404, 405 with its Allow header, and others, as short JSON."""
    if request.path.startswith(api.bp.url_prefix or ""):
        return _refused_in_api(error)
    response = error.get_response()
    response.content_type = JSON
    response.data = msgspec.json.encode({"Error": error.name})
    return Response(response.data, error.code, response.headers)


def _refused_in_api(error: HTTPException) -> Response:
    cause = {
        404: "there is no such path; docs/openapi.yaml lists all",
        405: "nothing here takes that method; use GET",
        413: f"the body has more than {BODY_LIMIT_BYTES} bytes; a GET needs none",
    }.get(error.code or 500, error.name)
    refused = api.problem(error.code or 500, error.name.replace(" ", ""), cause)
    allow = error.get_response().headers.get("Allow")
    if allow:
        refused.headers["Allow"] = allow
    return refused


def _failed(error: Exception) -> Response:
    log.error("request failed", exc_info=error)
    if request.path.startswith(api.bp.url_prefix or ""):
        return api.problem(500, "InternalError", "a bug in readygate; its log has the details")
    return Response(msgspec.json.encode({"Error": "internal error"}), 500, content_type=JSON)
