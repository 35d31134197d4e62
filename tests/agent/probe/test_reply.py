"""Answers that a lenient reader takes for good ones, and some that a strict one would refuse: as net/http has them.

`tools/differential` compares any bytes with Go; here is what a user can meet, to be read aloud.
"""

import tracemalloc
from collections.abc import Iterator
from itertools import repeat

import pytest

from agent.probe import reply
from agent.probe.reply import LINE_BYTES, Reader, ReplyError, read_at_most, read_head

OK = "HTTP/1.1 200 OK\r\n"
CHUNKED = OK + "Transfer-Encoding: chunked\r\n\r\n"
NO_ANSWER, NO_BODY = "no answer", "no body"


def read(text: str, block: int = 7) -> object:
    """Status and body of a stream that comes in small blocks and ends; or what breaks."""
    blocks = [text.encode("latin-1")[at : at + block] for at in range(0, len(text), block)]
    reader = Reader(lambda: blocks.pop(0) if blocks else b"")
    try:
        head = read_head(reader)
    except ReplyError:
        return NO_ANSWER
    try:
        return head.status, read_at_most(reader, head, 10240).decode("latin-1")
    except ReplyError:
        return NO_BODY


@pytest.mark.parametrize("block", [1, 7, 100_000], ids=["byte by byte", "in small blocks", "at once"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(OK + "Content-Length: 5\r\n\r\nhello", (200, "hello"), id="a length"),
        pytest.param(OK + "\r\nhello", (200, "hello"), id="a body up to the end"),
        pytest.param(OK, NO_ANSWER, id="cut behind the status line"),
        pytest.param("HTTP/1.1 200 OK", NO_ANSWER, id="cut in the status line"),
        pytest.param(OK + "Content-Type: te", NO_ANSWER, id="cut in a header"),
        pytest.param("", NO_ANSWER, id="nothing"),
        pytest.param(
            "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", (204, ""), id="204 has no chunks"
        ),
        pytest.param("HTTP/1.1 304 N\r\nContent-Length: 9\r\n\r\n", (304, ""), id="304 has no body"),
        pytest.param("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhi", (200, "hi"), id="1.0 has no chunks"),
        pytest.param("HTTP/1.1 103 E\r\n\r\n" * 7 + OK + "\r\nhi", (200, "hi"), id="seven interim answers"),
        pytest.param("HTTP/2.0 200 OK\r\n\r\nhi", (200, "hi"), id="another version"),
        pytest.param("HTTP/1.10 200 OK\r\n\r\nhi", NO_ANSWER, id="no version"),
        pytest.param("HTTP/1.1 +20 OK\r\n\r\nhi", (20, "hi"), id="a status with a sign"),
        pytest.param(OK + "X: " + "x" * 70_000 + "\r\n\r\nhi", (200, "hi"), id="a header of 70 kB"),
        pytest.param(OK + "X-A: b\r\n" * 300 + "\r\nhi", (200, "hi"), id="300 headers"),
        pytest.param(OK + "Bad Name: x\r\nContent-Length: 2\r\n\r\nhi!", (200, "hi"), id="a name with a blank"),
        pytest.param(OK + "X: a\r\n b\r\n\r\nhi", (200, "hi"), id="a folded header"),
        *(
            pytest.param(f"{OK}{header}\r\n\r\nhello", NO_ANSWER, id=header or "an empty name")
            for header in (
                "Content-Length: abc",
                "Content-Length: -1",
                "Content-Length: +5",
                "Content-Length: 0x5",
                "Content-Length:",
                "Content-Length: 5, 5",
                "Content-Length: 5\r\nContent-Length: 6",
                "Content-Length: 99999999999999999999",
                "Transfer-Encoding: identity",
                "Transfer-Encoding: gzip, chunked",
                "Transfer-Encoding:",
                "no colon",
                ": no name",
                "X\x01: a control character in a name",
                "X: a \x00 in a value",
                " first header line that begins with a blank",
            )
        ),
        pytest.param(CHUNKED + "5\r\nhello\r\n0\r\n\r\n", (200, "hello"), id="chunks"),
        pytest.param(CHUNKED + "5;x=1 \r\nhello\r\n0\r\nX-T: a\r\n\r\n", (200, "hello"), id="extension and trailer"),
        pytest.param(CHUNKED + "5\r\nhello\r\n0\r\n", NO_BODY, id="no last line"),
        pytest.param(CHUNKED + "5\r\nhello0\r\n\r\n", NO_BODY, id="nothing between chunks"),
        pytest.param(CHUNKED + "0x5\r\nhello\r\n0\r\n\r\n", NO_BODY, id="0x"),
        pytest.param(CHUNKED + " 5\r\nhello\r\n0\r\n\r\n", NO_BODY, id="a blank before the size"),
        pytest.param(CHUNKED + "5\nhello\n0\n\n", NO_BODY, id="bare line feeds"),
        pytest.param(CHUNKED + "5\r\nhello\r\n0\r\nno colon\r\n\r\n", NO_BODY, id="a bad trailer"),
        pytest.param(CHUNKED + "5;" + "x" * 5000 + "\r\nhello\r\n0\r\n\r\n", NO_BODY, id="an extension of 5 kB"),
        pytest.param(CHUNKED + "5\r\nhel", NO_BODY, id="cut in a chunk"),
        pytest.param(OK + "Content-Length: 6\r\n\r\nhello", NO_BODY, id="cut in the body"),
    ],
)
def test_answers(text: str, expected: object, block: int) -> None:
    assert expected == read(text, block)


def test_headers_without_end_are_given_up_at_ten_megabytes() -> None:
    head = [b"HTTP/1.1 200 OK\r\n"]
    endless = Reader(lambda: head.pop() if head else b"X: " + b"y" * 10_000 + b"\r\n")
    with pytest.raises(ReplyError, match="headers exceeded 10485760 bytes"):
        read_head(endless)


LONG = 3 * LINE_BYTES


@pytest.mark.parametrize("block", [4093, 16_384])
@pytest.mark.parametrize(
    ("head", "expected"),
    [
        pytest.param(f"X: {'x' * LONG}\r\n", (200, "hi"), id="a value"),
        pytest.param(f"X: {'x' * LONG}\n", (200, "hi"), id="that a line feed ends"),
        *(
            pytest.param(f"X: {'x' * (LINE_BYTES - 10 + more)}\r\n", (200, "hi"), id=f"around the limit, {more}")
            for more in range(20)
        ),
        pytest.param(f"X: {'x' * LONG}\x01\r\n", NO_ANSWER, id="a control character at its end"),
        pytest.param(f"X: {'x' * LONG}\ry\r\n", NO_ANSWER, id="a carriage return in it"),
        pytest.param(f"X: {'x' * LONG}", NO_ANSWER, id="cut in it"),
        pytest.param(f"X: a\r\n {'x' * LONG}\r\n b\r\n", (200, "hi"), id="a folded line"),
        pytest.param(f"X: a\r\n {'x' * LONG}\x01\r\n b\r\n", NO_ANSWER, id="a control character in a folded line"),
        pytest.param(f"X: {'x' * LONG}\r\n b\r\nContent-Length: 1\r\n", (200, "h"), id="what comes behind it counts"),
        pytest.param(f"Location: {'x' * LONG}\r\n", NO_ANSWER, id="a place: differs from Go on purpose"),
        pytest.param(f"{'x' * LONG}: y\r\n", (200, "hi"), id="a name"),
        pytest.param(f"{'x' * LONG}:\r\n y\r\n", (200, "hi"), id="a name before a folded line"),
        pytest.param(f"{'x' * LONG}(: y\r\n", NO_ANSWER, id="a name with what no name has"),
        pytest.param(f"{'x' * LONG}: y\x01\r\n", NO_ANSWER, id="a name before a control character"),
        pytest.param(f"{'x' * LONG}\r\n", NO_ANSWER, id="no colon"),
        pytest.param("Connection: x\r\n" * 20_000, NO_ANSWER, id="20,000 that count: differs from Go on purpose"),
    ],
)
def test_lines_that_are_longer_than_what_is_held(head: str, expected: object, block: int) -> None:
    assert expected == read(f"{OK}{head}\r\nhi", block)


def test_a_status_line_that_is_longer_than_what_is_held() -> None:
    assert (200, "hi") == read(f"HTTP/1.1 200 {'x' * LONG}\r\nContent-Length: 2\r\n\r\nhi", 16_384)


@pytest.mark.parametrize(
    ("first", "again"),
    [
        pytest.param(b"X: ", b"x" * 16_384, id="one long line"),
        pytest.param(b"", b"a:b\r\n" * 3000, id="headers of one name"),
        pytest.param(b"", "", id="headers of a name each"),
        pytest.param(b"", b"Connection: abc\r\n" * 1000, id="headers that count"),
        pytest.param(b"Connection: a\r\n", b" b\r\n" * 4000, id="one that counts, folded without end"),
        pytest.param(b"X: a\r\n", b" b\r\n" * 4000, id="one that does not"),
        pytest.param(b"HTTP/1.1 200 ", b"x" * 16_384, id="a status line"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n5;", b"x" * 16_384, id="the line of a chunk"),
    ],
)
def test_what_is_held_of_a_server_that_sends_without_end(
    first: bytes, again: bytes | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent has 64 MiB for all of its probes. With limits of an eighth."""
    monkeypatch.setattr(reply, "HEADER_LIMIT_BYTES", 10 * 2**17)
    monkeypatch.setattr(reply, "HELD_BYTES", 2**17)

    def blocks() -> Iterator[bytes]:
        yield b"" if first.startswith(b"HTTP") else OK.encode()
        yield first
        names = (b"".join(b"n%x: v\r\n" % (1000 * n + m) for m in range(1000)) for n in range(10_000))
        yield from names if isinstance(again, str) else repeat(again)

    coming = blocks()
    reader = Reader(lambda: next(coming) or next(coming))
    tracemalloc.start()
    try:
        with pytest.raises(ReplyError):
            read_at_most(reader, read_head(reader), 10240)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 2**19


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(OK + "Content-Length: 5\r\n\r\nhello", "hello", id="a length"),
        pytest.param(CHUNKED + "5\r\nhello\r\n0\r\n\r\n", "hello", id="chunks"),
        pytest.param(CHUNKED + "5\r\nhello\r\n0\r\nX-T: a\r\n\r\n", "hello", id="a trailer behind the chunks"),
        pytest.param(OK + "\r\n" + "x" * 10240, "x" * 10240, id="as much as is read"),
    ],
)
def test_nothing_is_waited_for_behind_the_end(text: str, expected: str) -> None:
    """A server may keep its connection open, whatever it is asked for."""
    blocks = [text.encode()]

    def receive() -> bytes:
        if not blocks:
            raise TimeoutError("timed out")
        return blocks.pop()

    reader = Reader(receive)
    assert expected == read_at_most(reader, read_head(reader), 10240).decode()
