"""Blocks cut anywhere become lines."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from kube.lines import Chunks, LineSplitter, LineTooLong


@settings(deadline=None)
@given(st.lists(st.binary(min_size=1).filter(lambda b: b.strip() and b"\n" not in b)), st.data())
def test_lines_do_not_depend_on_where_the_blocks_are_cut(lines, data):
    stream = b"".join(line + b"\n" for line in lines) + b"rest"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    splitter = LineSplitter()
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += splitter.feed(stream[start:end])
    assert lines == found


@pytest.mark.parametrize(
    ("blocks", "fits"),
    [
        pytest.param([b"12345678\n"], True, id="a line as long as the limit"),
        pytest.param([b"1234", b"5678", b"\n"], True, id="the same in pieces"),
        pytest.param([b"123456789\n"], False, id="one byte more"),
        pytest.param([b"1234", b"56789"], False, id="one byte more before the newline came"),
        pytest.param([b"1\n2\n3\n4\n5\n6\n"], True, id="many short lines"),
    ],
)
def test_the_limit_is_for_a_line(blocks, fits):
    splitter = LineSplitter(limit_bytes=8)
    try:
        for block in blocks:
            splitter.feed(block)
        found = True
    except LineTooLong:
        found = False
    assert fits is found


def pieces(stream: bytes, cuts: list[int]) -> list[bytes]:
    return [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


@settings(deadline=None)
@given(st.lists(st.binary(min_size=1)), st.data())
def test_what_was_in_chunks_does_not_depend_on_where_the_blocks_are_cut(parts, data):
    framed = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\nmore"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(framed)))))
    chunks = Chunks()
    found = b"".join(chunks.feed(piece) for piece in pieces(framed, cuts))
    assert (b"".join(parts), True) == (found, chunks.ended)


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        pytest.param(b"3\r\nabc\r\n", (b"abc", False), id="one chunk"),
        pytest.param(b"3;name=value\r\nabc\r\n", (b"abc", False), id="with an extension"),
        pytest.param(b"A \r\n0123456789\r\n", (b"0123456789", False), id="a size in capitals, with a space"),
        pytest.param(b"3\nabc\n0\n", (b"abc", True), id="line ends without a carriage return"),
        pytest.param(b"3\r\nab", (b"ab", False), id="a chunk that is cut"),
        pytest.param(b"3\r\nabcd\r\n", None, id="a chunk longer than its size"),
        pytest.param(b"\r\n", None, id="no size"),
        pytest.param(b"-3\r\n", None, id="a negative size"),
        pytest.param(b"3_0\r\n", None, id="a size as Python writes it"),
        pytest.param(b"x" * 5000, None, id="a size that does not end"),
        pytest.param(b"f" * 13 + b"\r\n", None, id="a size beyond all memory"),
    ],
)
def test_chunks(stream, expected):
    chunks = Chunks()
    try:
        found = (chunks.feed(stream), chunks.ended)
    except ValueError:
        found = None
    assert expected == found
