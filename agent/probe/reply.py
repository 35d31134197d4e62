"""A response as Go's net/http reads it: strict where a lenient reader takes a broken answer for a good one.

Pure: bytes come from a callable. Texts hold one character a byte (latin-1).

A parser of others would be less code and another verdict: of 20,000 random answers httptools refuses 19 % that the
kubelet takes and takes 3 % that it refuses.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from agent.probe.go_quoting import quoted_bytes, quoted_list
from agent.probe.targets import canonical, has_token

HEADER_LIMIT_BYTES = 10 * 2**20  # of all headers of a response, those of interim ones included
LINE_BYTES = 64 * 2**10  # so much of a line is held at most; the rest is looked at and passed over
HELD_BYTES = 2**20  # of the headers of a response that are held
VALUE_BYTES = 64  # what a value takes beside its text
# What a verdict is made of. Any other header has to be of the right form, and is not held: a server that sends ten
# megabytes of them would take thirty times that.
HELD_NAMES = frozenset({"Connection", "Content-Length", "Location", "Trailer", "Transfer-Encoding", "Upgrade"})
BUFFER_BYTES = 4096  # Go's: a line of the chunked coding, or a trailer, has to fit
CHUNK_EXCESS_BYTES = 16 * 2**10
NAMES, NAME_LENGTH = 256, 64  # of headers that are remembered
SHOWN = 1024  # characters of a client's error, so that no server fills an Event
_INITIAL_LINE = 80
_BLANKS, _BLANKS_TEXT = b" \t", " \t"
_NEWLINE, _RETURN = b"\n\r"
_DIGITS = re.compile(r"[0-9]+")
_NAME = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z ]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_VERSION = re.compile(r"HTTP/([0-9])\.([0-9])")
_STATUS = re.compile(r"\+?[0-9]+")

Receive = Callable[[], bytes]
"""More bytes, none at the end of the stream. Raises OSError, TimeoutError."""


class ReplyError(Exception):
    """The response is broken off or malformed; the text is like Go's."""


class Reader:
    """What came and was not yet read."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._data = bytearray()
        self._at = 0
        self.taken = 0  # bytes, since the start
        self.cut = False  # the rest of this line comes from rest_of_line

    def peek(self, size: int) -> bytes:
        """So many bytes, fewer at the end of the stream."""
        while len(self._data) - self._at < size and self._fill():
            pass
        return bytes(self._data[self._at : self._at + size])

    def sees(self, mark: bytes, size: int) -> bool:
        """Whether it comes within so many bytes; waits for none behind it."""
        while self._data.find(mark, self._at, self._at + size) < 0:
            if len(self._data) - self._at >= size or not self._fill():
                return False
        return True

    def take(self, size: int) -> bytes:
        """At least one byte and at most so many; none at the end of the stream."""
        if self._at == len(self._data) and not self._fill():
            return b""
        block = bytes(self._data[self._at : self._at + size])
        self._skip(len(block))
        return block

    def line(self) -> bytes | None:
        """With its end, if it has one; None at the end of the stream."""
        end = self._data.find(b"\n", self._at)
        if end < 0:
            end = self._line_end()
        line = bytes(self._data[self._at : end + 1])
        self._skip(len(line))
        return line or None

    def text_line(self) -> str | None:
        """Without its end, or `cut`; None at the end of the stream."""
        data, at = self._data, self._at
        end = data.find(b"\n", at)
        if end < 0:
            end = self._line_end()
            data, at = self._data, self._at
            if end < at:
                return None
            if self.cut:
                self._skip(end - at - (data[end - 1] == _RETURN))  # that may be half of the line's end
                return data[at : self._at].decode("latin-1")
            if data[end] != _NEWLINE:  # the stream has ended
                end += 1
        self._at = min(end + 1, len(data))
        self.taken += self._at - at
        if end < len(data) and end > at and data[end - 1] == _RETURN:
            end -= 1
        return data[at:end].decode("latin-1")

    def continues(self) -> bool:
        """Whether a blank comes next, which makes a line the rest of the one before."""
        return (self._data[self._at] in _BLANKS) if self._at < len(self._data) else self.peek(1) in (b" ", b"\t")

    def rest_of_line(self) -> Iterator[str]:
        """Of one that is cut, in blocks, without its end. Raises ReplyError."""
        held = ""
        while self.cut and (self._at < len(self._data) or self._fill()):
            end = self._data.find(b"\n", self._at)
            self.cut = end < 0
            block = self._data[self._at :] if self.cut else self._data[self._at : end]
            self._skip(len(block) + (not self.cut))
            if self.taken > HEADER_LIMIT_BYTES:
                raise _too_large()
            text = held + block.decode("latin-1")
            held = "\r" if text.endswith("\r") else ""
            yield text.removesuffix("\r")
        self.cut = False

    def _line_end(self) -> int:
        """Where the line ends that has no end yet; where what there is of it ends, if it is cut."""
        searched = len(self._data)
        while (end := self._data.find(b"\n", searched)) < 0:
            searched = len(self._data)
            if searched - self._at > LINE_BYTES:
                self.cut = True
                return searched
            before = self._at
            if not self._fill():
                return len(self._data) - 1
            searched -= before - self._at
        return end

    def _skip(self, size: int) -> None:
        self._at += size
        self.taken += size

    def _fill(self) -> bool:
        try:
            block = self._receive()
        except TimeoutError:
            raise
        except OSError:
            if self._at == len(self._data):
                raise
            block = b""  # bufio's: what is there is a line, and the next read says what has happened
        if self._at:
            del self._data[: self._at]
            self._at = 0
        self._data += block
        return bool(block)


@dataclass(slots=True)
class Head:
    """`headers`: canonical name -> values in order, of HELD_NAMES. `length`: of the body; -1: to the end of the
    stream. `chunked` bodies have a length of their own."""

    status: int
    headers: dict[str, list[str]] = field(default_factory=dict)
    length: int = -1
    chunked: bool = False

    def first(self, name: str) -> str:
        return self.headers.get(name, [""])[0]


def read_head(reader: Reader) -> Head:
    """The head of the response after all interim ones. Raises ReplyError, OSError, TimeoutError."""
    while True:
        head = _read_head(reader)
        if not 100 <= head.status < 200 or head.status == 101:
            return head


def _read_head(reader: Reader) -> Head:
    line = reader.text_line()
    if line is None:
        raise ReplyError("unexpected EOF" if reader.taken else "EOF")
    for _ in reader.rest_of_line():
        pass
    version, blank, rest = line.partition(" ")
    if not blank:
        raise ReplyError(f"malformed HTTP response {quoted_bytes(line)}")
    code = rest.lstrip(" ").partition(" ")[0]
    if len(code) != 3 or not _STATUS.fullmatch(code):
        raise ReplyError(f"malformed HTTP status code {quoted_bytes(code)}")
    match = _VERSION.fullmatch(version)
    if match is None:
        raise ReplyError(f"malformed HTTP version {quoted_bytes(version)}")
    major, minor = int(match[1]), int(match[2])
    if (major, minor) == (0, 0):
        major, minor = 1, 1
    head = Head(int(code), read_headers(reader))
    _settle_length(head, major, minor)
    return head


def read_headers(reader: Reader) -> dict[str, list[str]]:
    """Up to the empty line, of HELD_NAMES. Raises ReplyError, OSError, TimeoutError."""
    if reader.continues():
        first = reader.text_line() or ""
        if len(first) > _INITIAL_LINE:
            raise ReplyError("message too large")
        raise ReplyError(f"malformed MIME header initial line: {quoted_bytes(first)}")
    headers: dict[str, list[str]] = {}
    held = 0
    while (line := reader.text_line()) != "":
        if line is None:
            raise ReplyError("unexpected EOF")
        name, value = _header(reader, line)
        if name in HELD_NAMES:
            headers.setdefault(name, []).append(value)
            held += VALUE_BYTES + len(value)
        if reader.taken > HEADER_LIMIT_BYTES or held > HELD_BYTES:
            raise _too_large()
    return headers


def _header(reader: Reader, first: str) -> tuple[str, str]:
    """Name and value of the header that begins with this line; its lines are read. Of a name that is not held the value
    is not, either."""
    shown = first.strip(_BLANKS_TEXT)
    name, colon, value = shown.partition(":")
    named, is_valid = _NAME.fullmatch(name) is not None, _VALUE.fullmatch(value) is not None
    if reader.cut and not colon:
        colon, named, is_valid = _rest_of_name(reader, named=named)
    if not colon:
        raise ReplyError(f"malformed MIME header: missing colon: {quoted_bytes(first[:SHOWN])}")
    key = _canonical_again(name) if len(name) <= NAME_LENGTH else ""
    is_held = key in HELD_NAMES
    while True:
        if reader.taken > HEADER_LIMIT_BYTES or (is_held and (reader.cut or len(value) > LINE_BYTES)):
            raise _too_large()
        is_valid = all(map(_VALUE.fullmatch, reader.rest_of_line())) and is_valid
        if not reader.continues():
            break
        more = reader.text_line() or ""
        is_valid = is_valid and _VALUE.fullmatch(more) is not None
        shown = f"{shown[:SHOWN]} {more.strip(_BLANKS_TEXT)}"
        if is_held:
            value += " " + more.strip(_BLANKS_TEXT)
    if not named or not is_valid:
        if named:  # as Go has written it in its place by then
            shown = canonical(name) + shown[len(name) :]
        raise ReplyError(f"malformed MIME header line: {quoted_bytes(shown[:SHOWN])}")
    return key, value.lstrip(_BLANKS_TEXT)


def _rest_of_name(reader: Reader, *, named: bool) -> tuple[str, bool, bool]:
    """Of a name that is too long to be one of those that are held: the colon behind it, if there is one, and whether
    name and value are of the right form. Its line is read."""
    colon, is_valid = "", True
    for block in reader.rest_of_line():
        value = block
        if not colon:
            name, colon, value = block.partition(":")
            named = named and (not name or _NAME.fullmatch(name) is not None)
        is_valid = is_valid and _VALUE.fullmatch(value) is not None
    return colon, named, is_valid


def _too_large() -> ReplyError:
    return ReplyError(f"net/http: server response headers exceeded {HEADER_LIMIT_BYTES} bytes; aborted")


_canonical_again = lru_cache(maxsize=NAMES)(canonical)  # servers send the same names again and again


def body_allowed(status: int) -> bool:
    return not (100 <= status < 200 or status in (204, 304))


def read_at_most(reader: Reader, head: Head, limit: int) -> bytes:
    """The body, cut at the limit. Raises ReplyError for one that breaks off or is malformed, OSError, TimeoutError."""
    body = bytearray()
    blocks = _chunks(reader, limit) if head.chunked else _plain(reader, head.length, limit)
    for block in blocks:
        body += block
        if len(body) >= limit:
            break
    return bytes(body[:limit])


def _plain(reader: Reader, length: int, limit: int) -> Iterator[bytes]:
    left = limit if length < 0 else length
    while left > 0:
        block = reader.take(left)
        if not block:
            if length >= 0:
                raise ReplyError("unexpected EOF")
            return
        left -= len(block)
        yield block


def _chunks(reader: Reader, limit: int) -> Iterator[bytes]:
    excess = 0
    while True:
        line = _chunk_line(reader)
        excess += len(line) + 2
        size = _chunk_size(line.rstrip(b" \t").partition(b";")[0])
        excess = max(0, excess - 16 - 2 * size)
        if excess > CHUNK_EXCESS_BYTES:
            raise ReplyError("chunked encoding contains too much non-data")
        if size == 0:
            _trailer(reader)
            return
        left = size
        while left:
            block = reader.take(min(left, limit))
            if not block:
                raise ReplyError("unexpected EOF")
            left -= len(block)
            yield block
        if (end := reader.peek(2)) != b"\r\n":
            raise ReplyError("malformed chunked encoding" if len(end) == 2 else "unexpected EOF")
        reader.take(2)


def _chunk_line(reader: Reader) -> bytes:
    """Without its end."""
    line = reader.line() or b""
    if not line.endswith(b"\n"):
        raise ReplyError("header line too long" if len(line) >= BUFFER_BYTES else "unexpected EOF")
    if len(line) > BUFFER_BYTES:
        raise ReplyError("header line too long")
    if line.find(b"\r") != len(line) - 2:
        raise ReplyError("chunked line ends with bare LF" if b"\r" not in line else "invalid CR in chunked line")
    return line[:-2]


def _chunk_size(text: bytes) -> int:
    if not text:
        raise ReplyError("empty hex number for chunk length")
    if not re.fullmatch(rb"[0-9A-Fa-f]+", text):
        raise ReplyError("invalid byte in chunk length")
    if len(text) > 16:
        raise ReplyError("http chunk length too large")
    return int(text, 16)


def _trailer(reader: Reader) -> None:
    start = reader.peek(2)
    if start == b"\r\n":
        reader.take(2)
        return
    if len(start) < 2:
        raise ReplyError("http: unexpected EOF reading trailer")
    if not reader.sees(b"\r\n\r\n", BUFFER_BYTES):
        raise ReplyError("http: suspiciously long trailer after chunked body")
    read_headers(reader)


def _settle_length(head: Head, major: int, minor: int) -> None:
    """What the body is read by, as transfer.go has it."""
    codings = head.headers.pop("Transfer-Encoding", None)
    chunked = False
    if codings is not None and (major, minor) >= (1, 1):
        if len(codings) != 1:
            raise ReplyError(f"too many transfer encodings: {quoted_list(codings)}")
        if codings[0].lower() != "chunked":
            raise ReplyError(f"unsupported transfer encoding: {quoted_bytes(codings[0])}")
        chunked = True
    length = _content_length(head.headers)
    if chunked:
        _check_trailer_names(head.headers)
    if not body_allowed(head.status):
        head.length = -1 if head.status == 101 and _switches(head.headers) else 0
    else:
        head.chunked, head.length = chunked, -1 if chunked else length


def _content_length(headers: Mapping[str, list[str]]) -> int:
    """-1 without one."""
    values = headers.get("Content-Length", [])
    given = [value.strip(" \t\r\n") for value in values]
    if not given:
        return -1
    if any(value != given[0] for value in given):
        raise ReplyError(f"http: message cannot contain multiple Content-Length headers; got {quoted_list(values)}")
    if not _DIGITS.fullmatch(given[0]) or int(given[0]) >= 2**63:
        raise ReplyError(f"{'bad' if given[0] else 'invalid empty'} Content-Length {quoted_bytes(given[0])}")
    return int(given[0])


def _check_trailer_names(headers: Mapping[str, list[str]]) -> None:
    for value in headers.get("Trailer", ()):
        for word in value.split(","):
            key = canonical(word.strip(" \t\r\n"))
            if key in ("Transfer-Encoding", "Trailer", "Content-Length"):
                raise ReplyError(f"bad trailer key {quoted_bytes(key)}")


def _switches(headers: Mapping[str, list[str]]) -> bool:
    return bool(headers.get("Upgrade", [""])[0]) and has_token(headers.get("Connection", []), "upgrade")
