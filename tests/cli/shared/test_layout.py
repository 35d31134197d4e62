"""Pages: text of a cluster is made safe, paragraphs and tables fit their width."""

import pytest

from cli.shared.layout import (
    Column,
    Span,
    Style,
    age,
    columns_of,
    count,
    flowed,
    line,
    painted,
    span,
    table,
    text_of,
    wrapped,
)

HOSTILE = [
    pytest.param("\x1b[2J\x1b]0;owned\x07red", "[2J ]0;owned red", id="sequences of a terminal"),
    pytest.param("a\u202egnp.exe\u2066b", "a gnp.exe b", id="text from right to left"),
    pytest.param("one\r\ntwo\x00\x9b31mthree", "one two 31mthree", id="line ends, nulls, an eight bit escape"),
    pytest.param("zero\u200bwidth", "zero width", id="characters without width"),
    pytest.param("x" * 5_000_000, "x" * 253 + "...", id="megabytes"),
    pytest.param("\ud800", "", id="half a character"),
]


@pytest.mark.parametrize(("text", "expected"), HOSTILE)
def test_text_of_the_cluster_is_one_printable_line(text, expected):
    assert expected == span(text).text


@pytest.mark.parametrize(("text", "expected"), HOSTILE[:4])
def test_text_in_a_line_is_printable(text, expected):
    assert f"  {expected} " == line(f"  {text} ")[0].text


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        pytest.param("one two three", 9, "one two\n  three\n", id="at blanks"),
        pytest.param("abcdefghij k", 6, "abcd\n  efgh\n  ij k\n", id="a long word in its middle"),
        pytest.param("", 6, "\n", id="nothing"),
        pytest.param("日本 語", 5, "日本\n  語\n", id="wide characters"),
    ],
)
def test_a_paragraph_is_wrapped_at_blanks(text, width, expected):
    assert expected == text_of(wrapped((Span(text),), width, hang=2))


def test_flowed_spans_stay_in_one_piece():
    assert "a b   c d\nlong fact\n" == text_of(flowed([Span("a b"), Span("c d"), Span("long fact")], 10))


COLUMNS = (Column("A"), Column("N", right=True), Column("TEXT", flexible=True, label="because"))
ROWS = [
    (Span("one"), Span("7"), Span("the quick brown fox jumps over the lazy dog")),
    (Span("two"), Span("12"), Span("")),
]


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        pytest.param(
            60,
            "A     N  TEXT\none   7  the quick brown fox jumps over the lazy dog\ntwo  12\n",
            id="it fits",
        ),
        pytest.param(
            40,
            "A     N  TEXT\none   7  the quick brown fox jumps over\n         the lazy dog\ntwo  12\n",
            id="its free text is broken",
        ),
        pytest.param(
            33,
            "A     N  TEXT\none   7  the quick brown fox\n         jumps over the lazy dog\ntwo  12\n",
            id="its free text has just the least width",
        ),
        pytest.param(
            32,
            "A     N\none   7\n  because the quick brown fox\n    jumps over the lazy dog\ntwo  12\n",
            id="its free text stands below",
        ),
    ],
)
def test_a_table_fits_the_width(width, expected):
    assert expected == text_of(table(COLUMNS, ROWS, width))


def test_colours_do_not_change_the_text():
    page = [line(Span("closed", Style.BAD), " since")]
    assert ("\x1b[31mclosed\x1b[0m since\n", "closed since\n") == (painted(page), text_of(page))


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-1, "0s"),
        (0.9, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (252, "4m12s"),
        (7200, "2h"),
        (7260, "2h1m"),
        (183_600, "2d3h"),
    ],
)
def test_age_has_at_most_two_units(seconds, expected):
    assert expected == age(seconds)


@pytest.mark.parametrize(("number", "expected"), [(0, "0 nodes"), (1, "1 node"), (5000, "5,000 nodes")])
def test_count_adds_the_noun(number, expected):
    assert expected == count(number, "node")


@pytest.mark.parametrize(("text", "expected"), [("abc", 3), ("日本", 4), ("e\u0301", 1)])
def test_wide_characters_take_two_columns(text, expected):
    assert expected == columns_of(text)
