"""POST /filter, /preempt, /prioritize and /bind, by the functions that answer kube-scheduler: for curl, for tests, and
where speed does not matter.

A refusal here causes no kick: the process that answers kube-scheduler kicks for its own refusals.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from http import HTTPStatus
from time import perf_counter

from flask import Blueprint, Response, request
from gunicorn.http.errors import ParseException

from extender.verbs import table
from extender.verbs.reply import Reply
from extender.web.api import api
from extender.web.parameters import BODY_LIMIT_BYTES, LARGE_BODY_BYTES, LARGE_BODY_LIMIT_S, LARGE_BODY_WAIT_S
from extender.web.view import view
from kube.media_types import JSON

bp = Blueprint("verbs", __name__)

PIECE_BYTES = 2**16
TOO_LATE = "the body did not come in time"
TOO_LARGE = f"more than {BODY_LIMIT_BYTES} bytes"
_large = threading.Semaphore(1)


class UnreadError(Exception):
    """The body was not read; status is the reason."""

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
    response = Response(reply.body, reply.status, content_type=JSON)
    if reply.status == HTTPStatus.SERVICE_UNAVAILABLE:
        response.headers["Retry-After"] = "1"
    return response


def _reply(verb: str) -> Reply:
    source = view()
    try:
        with _whole_body() as body, api().making if len(body) > LARGE_BODY_BYTES else nullcontext():
            began = perf_counter()
            reply = table.VERBS[verb](source, body)
            if verb == table.FILTER:
                source.counts.answered_in(perf_counter() - began)
            return reply
    except UnreadError as e:
        return table.answer_unread(verb, e.status, str(e), skipped=False)


@contextmanager
def _whole_body() -> Iterator[bytes]:
    """Returns the body, to be answered within the context. Raises UnreadError."""
    if request.headers.get("Content-Encoding", "identity").strip().lower() not in ("identity", ""):
        raise UnreadError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Content-Encoding is not supported")
    length = request.content_length
    if length is not None and length > BODY_LIMIT_BYTES:
        raise UnreadError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, TOO_LARGE)
    if length is not None and length <= LARGE_BODY_BYTES:
        yield _read(length)
        return
    if not _large.acquire(timeout=LARGE_BODY_WAIT_S):
        raise UnreadError(HTTPStatus.SERVICE_UNAVAILABLE, "another large body is being answered")
    try:
        yield _read_in_time(length)
    finally:
        _large.release()


def _read_in_time(length: int | None) -> bytes:
    """Reads a large body within LARGE_BODY_LIMIT_S: the socket's own limit is for one receive. Raises UnreadError.

    length: None for chunks.
    """
    late = threading.Event()
    client: socket.socket = request.environ["gunicorn.socket"]

    def cut() -> None:
        late.set()
        with suppress(OSError):
            client.shutdown(socket.SHUT_RD)  # the read ends; the answer can still be sent

    timer = threading.Timer(LARGE_BODY_LIMIT_S, cut)
    timer.daemon = True
    timer.start()
    try:
        body = _read_chunks() if length is None else _read(length)
    except UnreadError as e:
        if late.is_set():
            raise UnreadError(HTTPStatus.REQUEST_TIMEOUT, TOO_LATE) from e
        raise
    finally:
        timer.cancel()
    if late.is_set():
        del body  # as in _read_chunks()
        raise UnreadError(HTTPStatus.REQUEST_TIMEOUT, TOO_LATE)
    return body


def _read_chunks() -> bytes:
    """Reads a body of unknown length in small pieces: in one read gunicorn would hold it four times. Raises
    UnreadError."""
    body = bytearray()
    while piece := _read(PIECE_BYTES):
        body += piece
        if len(body) > BODY_LIMIT_BYTES:
            body.clear()  # the error's traceback holds it until the next garbage collection
            raise UnreadError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, TOO_LARGE)
    return bytes(body)


def _read(size: int) -> bytes:
    try:
        body: bytes = request.environ["wsgi.input"].read(size)
    except BlockingIOError as e:  # the time limit of the socket, see web.server
        raise UnreadError(HTTPStatus.REQUEST_TIMEOUT, TOO_LATE) from e
    except OSError as e:
        raise UnreadError(HTTPStatus.BAD_REQUEST, "the connection broke within the body") from e
    except ParseException as e:
        text = f"the body is not framed as chunks are: {type(e).__name__}"
        raise UnreadError(HTTPStatus.BAD_REQUEST, text) from e
    return body
