import logging

import pytest

from extender.logs import LineFormatter


def line(message="node closed", **extra):
    record = logging.LogRecord("extender.cluster.index", logging.INFO, "f", 1, message, None, None)
    vars(record).update(extra)
    return LineFormatter().format(record)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param('a"b', r'node="a\"b"', id="quotes"),
        pytest.param("a\nb\r\x1b[31m", r'node="a\nb\r\u001b[31m"', id="newlines and escapes"),
        pytest.param("n\u00f6de\u2028x", r'node="n\u00f6de\u2028x"', id="runes beyond ASCII"),
        pytest.param("n" * 253, f'node="{"n" * 253}"', id="the longest name"),
        pytest.param(5, "node=5", id="a number"),
        pytest.param(None, 'node="None"', id="nothing"),
    ],
)
def test_x59_a_name_stays_in_its_line(value, expected):
    written = line(node=value)
    assert expected in written
    assert len(written.splitlines()) == 1


def test_a_message_of_others_stays_in_its_line():
    assert line("bad\nrequest\x1b[0m").endswith("INFO extender.cluster.index bad request [0m")
