"""The Flask application: routes and error handlers. Starts no thread and opens no connection."""

import logging
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from flask import Flask, request
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response

from extender.web import api, health, verbs
from extender.web.metrics import Metrics
from extender.web.pace import Pace
from extender.web.report import NO_BROWSER_HEADER
from extender.web.rests import Rests
from extender.web.view import View
from kube.media_types import JSON

log = logging.getLogger(__name__)

NO_BROWSER_KEY = "HTTP_" + NO_BROWSER_HEADER.upper().replace("-", "_")
PROBES = ("/livez", "/readyz")
StartResponse = Callable[..., object]
Wsgi = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


def create_app(
    view: View,
    *,
    is_ours: Callable[[str], bool] = lambda _: True,
    pace: Pace | None = None,
) -> Flask:
    """The application around a View. is_ours: whether a Host header names us; others are refused with 421.

    pace: what all requests together may take of a processor, None for no bound.
    """
    app = Flask("extender", static_folder=None)
    app.extensions["readygate"] = view
    rests = Rests(pace)
    app.extensions["readygate-api"] = api.Api(view, rest=rests.within)
    app.extensions["readygate-metrics"] = Metrics(view)
    app.url_map.merge_slashes = False
    for blueprint in (health.bp, api.bp, verbs.bp):
        app.register_blueprint(blueprint)
    app.register_error_handler(HTTPException, _refused)
    app.register_error_handler(Exception, _failed)  # after the former in Flask's order: by class, the closest wins
    flask: Wsgi = app.wsgi_app  # type: ignore[assignment]
    app.wsgi_app = _of_this_host(_one_spelling(_paced(flask, rests)), is_ours)  # type: ignore[method-assign, assignment]
    return app


def _of_this_host(application: Wsgi, is_ours: Callable[[str], bool]) -> Wsgi:
    """A page of somebody else's name in a browser on this machine must not read what is here."""

    def refusing(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if is_ours(environ.get("HTTP_HOST", "")) or NO_BROWSER_KEY in environ:
            return application(environ, start_response)
        body = b'{"Error":"Misdirected Request"}'
        headers = [("Content-Type", JSON), ("Content-Length", str(len(body))), ("Connection", "close")]
        start_response("421 Misdirected Request", headers)
        return (body,)

    return refusing


def _paced(application: Wsgi, rests: Rests) -> Wsgi:
    """Requests wait while more of the processor was taken than is due. Probes do not: they are cheap, and asked about
    life and death.
    """

    def waiting(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] in PROBES:
            return application(environ, start_response)
        rests.before()
        return rests.in_pieces(application(environ, start_response))

    return waiting


def _one_spelling(application: Wsgi) -> Wsgi:
    """`//filter` and `/filter/` are `/filter`: a redirect would turn kube-scheduler's POST into a GET.

    A verb with a leading slash in the scheduler configuration gives two.
    """

    def normalised(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if "//" in path or path.endswith("/"):
            environ["PATH_INFO"] = "/" + "/".join(part for part in path.split("/") if part)
        return application(environ, start_response)

    return normalised


def _refused(error: HTTPException) -> Response:
    """404, 405 with its Allow header, and the like, as short JSON."""
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
    }.get(error.code or 500, error.name)
    refused = api.problem(error.code or 500, error.name.replace(" ", ""), cause)
    allow = error.get_response().headers.get("Allow")
    if allow:
        refused.headers["Allow"] = allow
    return refused


def _failed(error: Exception) -> Response:
    log.error("request failed", exc_info=error)
    if request.path.startswith(api.bp.url_prefix or ""):
        return api.problem(500, "InternalError", "a fault of readygate's own; its log says more")
    return Response(msgspec.json.encode({"Error": "internal error"}), 500, content_type=JSON)
