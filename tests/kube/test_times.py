"""Times as the API and HTTP write and read them, at the ends of the calendar too."""

import msgspec
import pytest

from kube.times import format_micro_time, format_time, parse_http_date, parse_time


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("0001-01-01T00:00:00Z", id="Go's zero"),
        pytest.param("0999-12-31T23:59:59Z", id="a year of three figures"),
        pytest.param("1677-09-21T00:12:43Z", id="the first that 64 bits of nanoseconds hold"),
        pytest.param("1970-01-01T00:00:00Z", id="the epoch"),
        pytest.param("2262-04-11T23:47:16Z", id="the last that 64 bits of nanoseconds hold"),
        pytest.param("9999-12-31T23:59:59Z", id="the last"),
    ],
)
def test_what_is_read_is_written_again(text):
    assert text == format_time(parse_time(text) or 0.0)
    assert text.replace("Z", ".000000Z") == format_micro_time(parse_time(text) or 0.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59Z", id="before 1970"),
        pytest.param("1960-01-01T00:00:00.999Z", "1960-01-01T00:00:00Z", id="long before"),
        pytest.param("1970-01-01T00:00:01.75Z", "1970-01-01T00:00:01Z", id="after"),
    ],
)
def test_a_part_of_a_second_is_cut_off(text, expected):
    assert expected == format_time(parse_time(text) or 0.0)


@pytest.mark.parametrize("text", ["", "soon", "2026-13-45T00:00:00Z", "10000-01-01T00:00:00Z"])
def test_what_is_no_time(text):
    with pytest.raises(msgspec.ValidationError):
        parse_time(text)


def test_no_time_is_none():
    assert None is parse_time(None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Thu, 01 Jan 2026 00:00:10 GMT", 1_767_225_610.0, id="as servers write it"),
        pytest.param(None, None, id="no header"),
        pytest.param("", None, id="an empty one"),
        pytest.param("soon", None, id="no time"),
        pytest.param("Thu, 01 Jan 99999 00:00:10 GMT", None, id="beyond all times"),
        pytest.param("Thu, 32 Jan 2026 00:00:10 GMT", None, id="no day"),
    ],
)
def test_the_date_of_an_answer(text, expected):
    assert expected == parse_http_date(text)
