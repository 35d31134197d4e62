"""POST /filter, /preempt, /prioritize and /bind, by the functions that answer kube-scheduler: for curl, for tests, and
where no speed is needed.

A refusal here is followed by no kick: that is given by the process that answers kube-scheduler, for its own.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from time import perf_counter

from flask import Blueprint, Response, request
from gunicorn.http.errors import ParseException

from extender.verbs import table, wire
from extender.verbs.reply import Reply
from extender.web.view import view
from kube.media_types import JSON

bp = Blueprint("verbs", __name__)

LARGE_BYTES = 2**20
LARGE_WAIT_S = 5.0
_large = threading.Semaphore(1)  # one large body at a time: it is several times as big while it is answered


class UnreadError(Exception):
    """The body was not read; status says why."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


@bp.post("/filter", provide_automatic_options=False)
@bp.post("/preempt", provide_automatic_options=False)
@bp.post("/prioritize", provide_automatic_options=False)
@bp.post("/bind", provide_automatic_options=False)
def verb_view() -> Response:
    verb = request.path[1:]
    reply = _reply(verb)
    table.count(view().counts, verb, reply.result)
    return Response(reply.body, reply.status, content_type=JSON)


def _reply(verb: str) -> Reply:
    source = view()
    try:
        with _whole_body() as body:
            began = perf_counter()
            reply = table.VERBS[verb](source, body)
            if verb == table.FILTER:
                source.counts.answered_in(perf_counter() - began)
            return reply
    except UnreadError as e:
        return table.answer_unread(verb, e.status, str(e), skipped=True)


@contextmanager
def _whole_body() -> Iterator[bytes]:
    """To be answered within the context. Raises UnreadError."""
    if request.headers.get("Content-Encoding", "identity").strip().lower() not in ("identity", ""):
        raise UnreadError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Content-Encoding is not supported")
    limit = wire.BODY_LIMIT_BYTES
    length = request.content_length
    too_large = UnreadError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {limit} bytes")
    if length is not None and length > limit:
        raise too_large
    if length is not None and length <= LARGE_BYTES:
        yield _read(length)
        return
    if not _large.acquire(timeout=LARGE_WAIT_S):
        raise UnreadError(HTTPStatus.REQUEST_TIMEOUT, "other large bodies are being answered")
    try:
        body = _read(limit + 1)
        if len(body) > limit:
            raise too_large
        yield body
    finally:
        _large.release()


def _read(size: int) -> bytes:
    try:
        body: bytes = request.environ["wsgi.input"].read(size)
    except BlockingIOError as e:  # the time limit of the socket, see people.server
        raise UnreadError(HTTPStatus.REQUEST_TIMEOUT, "the body did not come in time") from e
    except OSError as e:
        raise UnreadError(HTTPStatus.BAD_REQUEST, "the connection broke within the body") from e
    except ParseException as e:
        text = f"the body is not framed as chunks are: {type(e).__name__}"
        raise UnreadError(HTTPStatus.BAD_REQUEST, text) from e
    return body
