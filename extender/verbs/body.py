"""Reads a request body without letting it fill the memory. How long it may take is the worker's business.

The length is checked here and not by Flask's MAX_CONTENT_LENGTH, which copies the body in 64 KiB pieces and doubles the
time of a large one.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gunicorn.http.errors import ParseException

from extender.verbs.wire import BODY_LIMIT_NAMES_BYTES, BODY_LIMIT_NODES_BYTES

DISCARD_LIMIT_BYTES = 4 * BODY_LIMIT_NODES_BYTES  # beyond it the connection just ends: nobody honest sends that
PIECE_BYTES = 2**20

# Bodies that can only be whole nodes: one of 60 MiB (5,000 Nodes of 12 kB) takes 120 MiB while it is answered, and 60
# more while it is sent (measured as VmHWM). One is already more than all else the process needs.
LARGE_BODIES_MAX = 2
LARGE_BODIES_WAIT_S = 5.0  # as long as kube-scheduler waits by default; a longer wait would be for nobody
_large_bodies = threading.BoundedSemaphore(LARGE_BODIES_MAX)


class BodyError(Exception):
    """The body was not read; the text says why in a few words."""


class TooLargeError(BodyError):
    pass


class EncodedError(BodyError):
    pass


class StalledError(BodyError):
    """Timed out reading the body, or waiting for one of the two large-body slots."""


class BrokenError(BodyError):
    """The client went away, or its framing is wrong."""


@contextmanager
def whole_body(environ: Mapping[str, Any]) -> Iterator[bytes]:
    """The whole body of a WSGI request, to be answered within the context. Raises BodyError."""
    if environ.get("HTTP_CONTENT_ENCODING", "identity").strip().lower() not in ("identity", ""):
        raise EncodedError("Content-Encoding is not supported")
    length = _length(environ)
    if length is not None and length <= BODY_LIMIT_NAMES_BYTES:
        yield _read(environ, length)
        return
    if length is not None and length > BODY_LIMIT_NODES_BYTES:
        _discard(environ, length)
        raise TooLargeError(f"more than {BODY_LIMIT_NODES_BYTES} bytes")
    if not _large_bodies.acquire(timeout=LARGE_BODIES_WAIT_S):
        raise StalledError("other large bodies are being answered")
    try:
        body = _read(environ, BODY_LIMIT_NODES_BYTES + 1 if length is None else length)
        if len(body) > BODY_LIMIT_NODES_BYTES:
            _discard(environ, 0)
            raise TooLargeError(f"more than {BODY_LIMIT_NODES_BYTES} bytes")
        yield body
    finally:
        _large_bodies.release()


def _length(environ: Mapping[str, Any]) -> int | None:
    """None for a chunked body. gunicorn has refused what is not a length."""
    if "HTTP_TRANSFER_ENCODING" in environ:
        return None
    try:
        return int(environ.get("CONTENT_LENGTH") or 0)
    except ValueError as e:
        raise BrokenError("Content-Length is not a number") from e


def _read(environ: Mapping[str, Any], size: int) -> bytes:
    try:
        body: bytes = environ["wsgi.input"].read(size)
    except TimeoutError as e:
        raise StalledError("the body did not come in time") from e
    except OSError as e:
        raise BrokenError("the connection broke within the body") from e
    except ParseException as e:
        raise BrokenError(f"the body is not framed as chunks are: {type(e).__name__}") from e
    return body


def _discard(environ: Mapping[str, Any], length: int) -> None:
    """Read past a body that is too long: a client that is still sending when we close never sees the answer.

    length: what it said it has; 0 if it did not.
    """
    if length > DISCARD_LIMIT_BYTES:
        return
    stream = environ["wsgi.input"]
    try:
        for _ in range(DISCARD_LIMIT_BYTES // PIECE_BYTES):
            if not stream.read(PIECE_BYTES):
                return
    except (OSError, ParseException):
        return
