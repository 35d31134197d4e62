"""Blocks cut anywhere become lines."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kube.lines import LineSplitter, LineTooLong


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
