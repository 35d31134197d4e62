"""The application of the verbs' process: POST /filter before Flask, the pages behind it."""

from flask import Flask

from extender.services import Services
from extender.verbs import dispatch
from extender.web import app as web


def create_app(services: Services) -> Flask:
    app = web.create_app(services)
    flask: dispatch.Wsgi = app.wsgi_app  # type: ignore[assignment]
    app.wsgi_app = web.one_spelling(dispatch.answering_filter(services, flask))  # type: ignore[method-assign, assignment]
    return app
