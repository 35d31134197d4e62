"""One printable line of any text, and references in it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from component.text import expand, one_line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("as it is", "as it is", id="plain text"),
        pytest.param(" a\n\tb\r\n\r\nc ", "a b c", id="white space is one space"),
        pytest.param("a\x00b\x1b[31mc", "a b [31mc", id="control characters are spaces"),
        pytest.param("a\u2028b\u202ec\ud800", "a b c", id="line separators, direction marks and surrogates too"),
        pytest.param("n\u00f6de", "n\u00f6de", id="letters of any language stay"),
        pytest.param(ValueError("a\nb"), "a b", id="an error"),
        pytest.param("x" * 300, "x" * 256, id="256 characters by default"),
    ],
)
def test_one_line(text: object, expected: str) -> None:
    assert expected == one_line(text)


@pytest.mark.parametrize(
    ("text", "limit_bytes", "expected"),
    [
        pytest.param("abcdef", 4, "abcd", id="a byte a character"),
        pytest.param("\u00e4\u00e4\u00e4", 5, "\u00e4\u00e4", id="no character is cut in two"),
        pytest.param("\U0001f600", 3, "", id="none fits"),
    ],
)
def test_cut_in_bytes(text: str, limit_bytes: int, expected: str) -> None:
    assert expected == one_line(text, limit_bytes=limit_bytes)


@given(st.text(st.characters(), max_size=60), st.integers(0, 20))
def test_whatever_comes_in_it_is_one_line_of_at_most_so_much(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert (True, True) == (len(line) <= limit, line.isprintable())
    assert len(one_line(text, limit_bytes=limit).encode()) <= limit


VALUES = {"A": "1", "B": "$(A)", "": "empty", "a b": "2"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("x$(A)y", "x1y", id="a reference"),
        pytest.param("$(C)", "$(C)", id="one without a value stays"),
        pytest.param("$(B)", "$(A)", id="a value is not expanded again"),
        pytest.param("$$(A)", "$(A)", id="an escaped one"),
        pytest.param("$$$(A)", "$1", id="an escape and a reference"),
        pytest.param("$A $", "$A $", id="any other dollar stays"),
        pytest.param("$(A", "$(A", id="one that is not closed"),
        pytest.param("$($(A))", "$($(A))", id="one in a name: the name is `$(A`"),
        pytest.param("$()$(a b)", "empty2", id="any name"),
    ],
)
def test_references(text: str, expected: str) -> None:
    assert expected == expand(text, VALUES)


def by_hand(text: str, values: dict[str, str]) -> str:
    """third_party/forked/golang/expansion, character by character."""
    out, i = "", 0
    while i < len(text):
        if text[i] != "$" or i + 1 == len(text):
            out, i = out + text[i], i + 1
        elif text[i + 1] == "$":
            out, i = out + "$", i + 2
        elif text[i + 1] == "(" and ")" in text[i:]:
            end = text.index(")", i)
            out, i = out + values.get(text[i + 2 : end], text[i : end + 1]), end + 1
        else:
            out, i = out + text[i], i + 1
    return out


@given(st.text(st.sampled_from("$(AB) \n"), max_size=30))
def test_references_are_found_as_kubernetes_finds_them(text: str) -> None:
    assert by_hand(text, VALUES) == expand(text, VALUES)
    assert re.search(r"\$", text) or text == expand(text, VALUES)
