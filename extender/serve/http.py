"""Bytes to requests, and answers to bytes. Pure. The parser is llhttp, by httptools; no other module of this room uses
it.

The parser limits nothing but syntax. So this module counts heads, headers, pieces of bodies, framing and pipelined
requests, and refuses excess in the middle of a packet.

One decision bypasses the parser: `Heads` looks up the bytes of a head, up to the first empty line, among heads that the
parser has read before. A head is in it only if the parser made of it, between two requests, one whole request with a
Content-Length and a connection that goes on. It is used only between two requests, for equal bytes, and if as many
bytes follow as the parser reported. The parser reads everything else.
"""

from collections import deque
from http import HTTPStatus
from typing import NamedTuple

import msgspec
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from extender.serve import limits
from extender.verbs.wire import BODY_LIMIT_BYTES
from kube.media_types import JSON


class Request(msgspec.Struct, frozen=True, gc=False):
    """A request. method and target: as they came. keep: whether the connection may go on after the answer."""

    method: bytes
    target: bytes
    host: bytes
    body: bytes | bytearray
    keep: bool


class Refusal(NamedTuple):
    """Why a request is answered without being read completely; the connection ends with it.

    rest_bytes: how many of its bytes may still come.
    """

    status: HTTPStatus
    text: str
    method: bytes
    target: bytes
    rest_bytes: int


class Head(msgspec.Struct, frozen=True, gc=False):
    """What the parser read in a head with a Content-Length whose connection goes on."""

    method: bytes
    target: bytes
    host: bytes
    body_bytes: int


class Heads:
    """Heads of whole requests in one packet, by their bytes, for all connections. kube-scheduler sends equal heads,
    except for the length. The parser would read equal bytes between two requests in the same way again."""

    def __init__(self) -> None:
        self._heads: dict[bytes, Head] = {}

    def __len__(self) -> int:
        return len(self._heads)

    def find(self, data: bytes | memoryview) -> Request | None:
        """Returns the request if the data are exactly one request with a known head."""
        start = bytes(data[: limits.KNOWN_HEAD_BYTES]).partition(_HEAD_END)[0]
        head = self._heads.get(start)
        if head is None:
            return None
        begin = len(start) + _HEAD_END_BYTES
        if len(data) - begin != head.body_bytes:
            return None
        return Request(head.method, head.target, head.host, bytes(data[begin:]), True)  # the only copy

    def learn(self, data: bytes | memoryview, request: Request) -> None:
        """Saves a head. The data were exactly this request, without chunks."""
        start, end, body = bytes(data).partition(_HEAD_END)
        if len(start) + len(end) <= limits.KNOWN_HEAD_BYTES and end and len(body) == len(request.body):
            if len(self._heads) >= limits.KNOWN_HEADS_MAX:
                del self._heads[next(iter(self._heads))]
            self._heads[start] = Head(request.method, request.target, request.host, len(body))


_HEAD_END = b"\r\n\r\n"
_HEAD_END_BYTES = len(_HEAD_END)
_READ = frozenset({b"host", b"content-length", b"transfer-encoding", b"content-encoding", b"expect"})


class _Stop(Exception):  # noqa: N818 - not an error: ends the parser's run through a packet
    pass


class Reader:
    """Turns the bytes of one connection into requests.

    complete: requests for the owner to take. refusal: once it is set, nothing is read any more. within: whether bytes
    of an unfinished message have come. in_body: whether its head has ended. fed_bytes: bytes before its head, of its
    head, or since its head ended; a packet with the end of another message counts as a whole.
    """

    __slots__ = (
        *("complete", "refusal", "within", "in_body", "body_bytes", "announced_bytes", "fed_bytes", "expects"),
        *("_parser", "_target", "_host", "_hosts", "_encoding", "_chunked", "_pieces", "_large", "_count"),
        *("_head_bytes", "_headers", "_ended", "_method", "_heads"),
    )

    def __init__(self, heads: Heads | None = None) -> None:
        """heads: the known heads of all connections."""
        self._heads = Heads() if heads is None else heads
        self.complete: deque[Request] = deque()
        self.refusal: Refusal | None = None
        self.within = False
        self._ended = False  # the client asked for the end, or sent too much at once: the rest is not read
        self._parser = HttpRequestParser(self)
        self._begin()

    def _begin(self) -> None:
        self.in_body = False
        self.expects = False
        self.body_bytes = 0
        self.announced_bytes = 0
        self._method = b""
        self._target = b""
        self._host = b""
        self._hosts = 0
        self._encoding = b""
        self._chunked = False
        self._pieces: list[bytes] = []
        self._large: bytearray | None = None
        self._count = 0
        self._head_bytes = 0
        self._headers = 0
        self.fed_bytes = 0

    def feed(self, data: bytes | memoryview) -> None:
        """Reads bytes of the connection. The attributes hold the results."""
        if self.refusal is not None or self._ended:
            return
        between = not self.within  # the parser is between two requests now
        if between:
            request = self._heads.find(data)
            if request is not None:
                self.complete.append(request)
                self.fed_bytes = 0
                return
        count = len(self.complete)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self.complete.pop()  # as if it had been read completely
            self._refuse(HTTPStatus.BAD_REQUEST, "another protocol is asked for")
        except HttpParserError:
            if not self._ended and self.refusal is None:
                self._refuse(HTTPStatus.BAD_REQUEST, "not HTTP/1.1 as RFC 9112 has it")
        else:
            if self.within:
                self.fed_bytes += len(data)
                self._check_fed()
            elif len(self.complete) == count:
                self.fed_bytes += len(data)
                self._check_blank()
            elif between and len(self.complete) == count + 1 and self.complete[count].keep and not self._chunked:
                self._heads.learn(data, self.complete[count])

    def _check_blank(self) -> None:
        """Reads past blank lines before a head, as the parser does: no request has begun, so no deadline of a request
        runs."""
        if self.fed_bytes > limits.HEAD_LIMIT_BYTES:
            self._begin()
            self._refuse(HTTPStatus.BAD_REQUEST, "blank lines without an end")

    def _check_fed(self) -> None:
        if not self.in_body:
            if self.fed_bytes > limits.HEAD_LIMIT_BYTES + limits.RECEIVE_BYTES:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the head is too large")
        elif self._chunked and self.fed_bytes - self.body_bytes > self._framing_limit_bytes():
            self._refuse(HTTPStatus.BAD_REQUEST, "more framing than body")

    def _framing_limit_bytes(self) -> int:
        return limits.FRAMING_MAX_BYTES + limits.RECEIVE_BYTES + self.body_bytes // 8

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        self._pieces.clear()
        self._large = None
        self.body_bytes = 0
        rest_bytes = limits.DISCARD_MAX_BYTES if self._chunked else self.announced_bytes
        self.refusal = Refusal(status, text, self._method, self._target, rest_bytes)

    def fail(self, status: HTTPStatus, text: str) -> None:
        """Stops reading for a reason of the owner."""
        if self.refusal is None:
            self._refuse(status, text)

    def drop(self) -> None:
        """Releases reader and parser, which refer to each other and would else stay until a garbage collection."""
        self._ended = True
        self._pieces.clear()
        self._large = None
        self.complete.clear()
        del self._parser

    # Callbacks of the parser. An exception ends its run; feed() distinguishes it from a syntax error.

    def on_message_begin(self) -> None:
        if self._ended:
            raise _Stop
        self._begin()
        self.within = True

    def on_url(self, piece: bytes) -> None:
        self._target += piece
        self._head_bytes += len(piece)
        if self._head_bytes > limits.HEAD_LIMIT_BYTES:
            self._refuse(HTTPStatus.REQUEST_URI_TOO_LONG, "the target is too long")
            raise _Stop

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers += 1
        self._head_bytes += len(name) + len(value)
        if self._headers > limits.HEADERS_MAX or self._head_bytes > limits.HEAD_LIMIT_BYTES:
            if self.in_body:
                self._refuse(HTTPStatus.BAD_REQUEST, "too many trailers")
            else:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "too many headers")
            raise _Stop
        if self.in_body:
            return
        name = name.lower()
        if name not in _READ:
            return
        match name:
            case b"host":
                self._host = value
                self._hosts += 1
            case b"content-length":
                self.announced_bytes = int(value) if len(value) < 20 else limits.DISCARD_MAX_BYTES + 1
            case b"transfer-encoding":
                self._chunked = True
            case b"content-encoding":
                self._encoding = value.strip().lower()
            case b"expect":
                self.expects = value.strip().lower() == b"100-continue"

    def on_headers_complete(self) -> None:
        self.in_body = True
        self.fed_bytes = 0
        self._method = self._parser.get_method()
        version = self._parser.get_http_version()
        if version not in {"1.1", "1.0"}:
            self._refuse(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "not HTTP/1.1")
        elif self._hosts > 1 or (self._hosts == 0 and version == "1.1"):
            self._refuse(HTTPStatus.BAD_REQUEST, "not exactly one Host")
        elif self._encoding not in {b"", b"identity"}:
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Content-Encoding is not supported")
        elif self.announced_bytes > BODY_LIMIT_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {BODY_LIMIT_BYTES} bytes")
        else:
            return
        raise _Stop

    def on_body(self, piece: bytes) -> None:
        self.body_bytes += len(piece)
        self._count += 1
        if self.body_bytes > BODY_LIMIT_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {BODY_LIMIT_BYTES} bytes")
            raise _Stop
        if self._count > limits.PIECES_MAX + self.body_bytes // limits.PIECE_MIN_BYTES:
            self._refuse(HTTPStatus.BAD_REQUEST, "the body comes in too many pieces")
            raise _Stop
        if self._large is not None:
            self._large += piece
        elif (
            self.body_bytes > limits.LARGE_BODY_BYTES
        ):  # one growing buffer: pieces and their sum would take twice the memory
            self._large = bytearray().join((*self._pieces, piece))
            self._pieces.clear()
        else:
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        self.within = False
        pieces, keep = self._pieces, self._parser.should_keep_alive()
        if len(self.complete) + 1 >= limits.PIPELINED_MAX:
            keep = False
        self._ended = not keep
        body = self._large if self._large is not None else pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self.complete.append(Request(self._method, self._target, self._host, body, keep))
        self.body_bytes = 0
        self._large = None
        self._pieces = []
        self.fed_bytes = 0


CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_STATUS_LINES = {status: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}


class Answer(msgspec.Struct, frozen=True, gc=False):
    """The answer to a request. allow: methods, for status 405."""

    status: HTTPStatus
    body: bytes
    allow: bytes = b""
    media_type: str = JSON


def head_of(answer: Answer, date: bytes, *, keep: bool) -> bytes:
    """Returns the head of an answer. date: as RFC 9110 writes it."""
    lines = b"%bDate: %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n" % (
        _STATUS_LINES[answer.status],
        date,
        answer.media_type.encode(),
        len(answer.body),
    )
    if answer.allow:
        lines += b"Allow: %b\r\n" % answer.allow
    return lines + (b"\r\n" if keep else b"Connection: close\r\n\r\n")


def usual_head(date: bytes) -> bytes:
    """Returns the head of an answer with status 200 after which the connection goes on, with %d for its length. Nearly
    all answers share it."""
    return head_of(Answer(HTTPStatus.OK, b""), date, keep=True).replace(b"Length: 0", b"Length: %d")
