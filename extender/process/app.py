"""The Flask application: routes and error handlers. Starts no thread and opens no connection."""

import logging
from collections.abc import Iterable
from typing import Any

import msgspec
from flask import Flask
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response

from extender.services import Services
from extender.verbs import dispatch
from extender.web import api, health
from kube.media_types import JSON

log = logging.getLogger(__name__)


def create_app(services: Services) -> Flask:
    """The application around a bundle of services, which it finds in `app.extensions["readygate"]`."""
    app = Flask("extender", static_folder=None)
    app.extensions["readygate"] = services
    app.url_map.merge_slashes = False
    for blueprint in (health.bp, api.bp):
        app.register_blueprint(blueprint)
    app.register_error_handler(HTTPException, _refused)
    app.register_error_handler(Exception, _failed)  # after the former in Flask's order: by class, the closest wins
    flask: dispatch.Wsgi = app.wsgi_app  # type: ignore[assignment]
    app.wsgi_app = _one_spelling(dispatch.answering_filter(services, flask))  # type: ignore[method-assign, assignment]
    return app


def _one_spelling(application: dispatch.Wsgi) -> dispatch.Wsgi:
    """`//filter` and `/filter/` are `/filter`: a redirect would turn kube-scheduler's POST into a GET.

    A verb with a leading slash in the scheduler configuration gives two.
    """

    def normalised(environ: dict[str, Any], start_response: dispatch.StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if "//" in path or path.endswith("/"):
            environ["PATH_INFO"] = "/" + "/".join(part for part in path.split("/") if part)
        return application(environ, start_response)

    return normalised


def _refused(error: HTTPException) -> Response:
    """404, 405 with its Allow header, and the like, as short JSON."""
    response = error.get_response()
    response.content_type = JSON
    response.data = msgspec.json.encode({"Error": error.name})
    return Response(response.data, error.code, response.headers)


def _failed(error: Exception) -> Response:
    log.error("request failed", exc_info=error)
    return Response(msgspec.json.encode({"Error": "internal error"}), 500, content_type=JSON)
