"""Reads a request body without letting it hold a thread for ever or fill the memory.

The length is checked here and not by Flask's MAX_CONTENT_LENGTH, which copies the body in 64 KiB pieces and doubles the
time of a large one.
"""

import threading
from collections.abc import Mapping
from typing import Any

from extender.wire import BODY_LIMIT_NAMES_BYTES, BODY_LIMIT_NODES_BYTES

SILENCE_LIMIT_S = 5.0  # between two pieces of a body
DISCARD_LIMIT_BYTES = 4 * BODY_LIMIT_NODES_BYTES
DISCARD_SILENCE_S = 1.0
PIECE_BYTES = 2**20

# Bodies that can only be whole nodes take 150 MiB each while they are answered.
_large_bodies = threading.BoundedSemaphore(2)


class BodyError(Exception):
    """The body was not read; the text says why in a few words."""


class TooLargeError(BodyError):
    pass


class EncodedError(BodyError):
    pass


class StalledError(BodyError):
    pass


class BrokenError(BodyError):
    """The client went away, or its framing is wrong."""


def read(environ: Mapping[str, Any]) -> bytes:
    """The whole body of a WSGI request. Raises BodyError."""
    if environ.get("HTTP_CONTENT_ENCODING", "identity").strip().lower() not in ("identity", ""):
        raise EncodedError("Content-Encoding is not supported")
    length = _length(environ)
    if length is not None and length > BODY_LIMIT_NODES_BYTES:
        _discard(environ, length)
        raise TooLargeError(f"more than {BODY_LIMIT_NODES_BYTES} bytes")
    if length is not None and length <= BODY_LIMIT_NAMES_BYTES:
        return _read(environ, length)
    with _large_bodies:
        body = _read(environ, BODY_LIMIT_NODES_BYTES + 1 if length is None else length)
    if len(body) > BODY_LIMIT_NODES_BYTES:
        _discard(environ, 0)
        raise TooLargeError(f"more than {BODY_LIMIT_NODES_BYTES} bytes")
    return body


def _length(environ: Mapping[str, Any]) -> int | None:
    """None for a chunked body. gunicorn has refused what is not a length."""
    if "HTTP_TRANSFER_ENCODING" in environ:
        return None
    try:
        return int(environ.get("CONTENT_LENGTH") or 0)
    except ValueError as e:
        raise BrokenError("Content-Length is not a number") from e


def _read(environ: Mapping[str, Any], size: int) -> bytes:
    # gunicorn waits without limit for the rest of a body, with a thread that others then miss.
    socket = environ.get("gunicorn.socket")
    if socket is not None:
        socket.settimeout(SILENCE_LIMIT_S)
    try:
        body: bytes = environ["wsgi.input"].read(size)
    except TimeoutError as e:
        raise StalledError(f"no byte of the body for {SILENCE_LIMIT_S:g} s") from e
    except OSError as e:
        raise BrokenError("the connection broke within the body") from e
    return body


def _discard(environ: Mapping[str, Any], length: int) -> None:
    """Read past a body that is too long: a client that is still sending when we close never sees the answer.

    length: what it said it has; 0 if it did not.
    """
    if length > DISCARD_LIMIT_BYTES:
        return
    socket = environ.get("gunicorn.socket")
    if socket is not None:
        socket.settimeout(DISCARD_SILENCE_S)
    stream = environ["wsgi.input"]
    try:
        for _ in range(DISCARD_LIMIT_BYTES // PIECE_BYTES):
            if not stream.read(PIECE_BYTES):
                return
    except OSError:
        return
