"""POST /filter, by the functions that answer kube-scheduler: for curl, for tests, and where no speed is needed.

A refusal here is followed by no kick: that is given by the process that answers kube-scheduler, for its own.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from flask import Blueprint, Response, request
from gunicorn.http.errors import ParseException

from extender.counts import RequestResult
from extender.verbs import wire
from extender.verbs.dispatch import Reply, answer_filter
from extender.web.view import view
from kube.media_types import JSON

bp = Blueprint("filter", __name__)

# What kube-scheduler is to show to a user must come as 200 with `Error`: it does not read the body of anything else.
STATUS = {
    RequestResult.MALFORMED: 400,
    RequestResult.TIMEOUT: 408,
    RequestResult.ENCODED: 415,
}
LARGE_BYTES = 2**20
LARGE_WAIT_S = 5.0
_large = threading.Semaphore(1)  # one large body at a time: it is several times as big while it is answered


class UnreadError(Exception):
    """The body was not read; result says how that is counted and answered."""

    def __init__(self, result: RequestResult, text: str) -> None:
        super().__init__(text)
        self.result = result


@bp.post("/filter", provide_automatic_options=False)
def filter_view() -> Response:
    source = view()
    try:
        with _whole_body() as body:
            began = perf_counter()
            reply = answer_filter(source, body)
            source.counts.answered_in(perf_counter() - began)
    except UnreadError as e:
        reply = Reply(e.result, wire.write_error(str(e)))
    source.counts.count(reply.result)
    return Response(reply.body, STATUS.get(reply.result, 200), content_type=JSON)


@contextmanager
def _whole_body() -> Iterator[bytes]:
    """To be answered within the context. Raises UnreadError."""
    if request.headers.get("Content-Encoding", "identity").strip().lower() not in ("identity", ""):
        raise UnreadError(RequestResult.ENCODED, "readygate: Content-Encoding is not supported")
    limit = wire.BODY_LIMIT_BYTES
    length = request.content_length
    too_large = UnreadError(RequestResult.TOO_LARGE, wire.TOO_LARGE)
    if length is not None and length > limit:
        raise too_large
    if length is not None and length <= LARGE_BYTES:
        yield _read(length)
        return
    if not _large.acquire(timeout=LARGE_WAIT_S):
        raise UnreadError(RequestResult.TIMEOUT, "readygate: other large bodies are being answered")
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
        raise UnreadError(RequestResult.TIMEOUT, "readygate: the body did not come in time") from e
    except OSError as e:
        raise UnreadError(RequestResult.MALFORMED, "readygate: the connection broke within the body") from e
    except ParseException as e:
        text = f"readygate: the body is not framed as chunks are: {type(e).__name__}"
        raise UnreadError(RequestResult.MALFORMED, text) from e
    return body
