"""Names in other letters, as Go asks for them and as it writes them into a Host line; `tools/differential` compares."""

import pytest

from agent.probe.hosts import is_domain_name, punycode, punycode_with_port, to_ascii

NONE = "no name"


def asked(name: str) -> str:
    try:
        return to_ascii(name)
    except ValueError:
        return NONE


@pytest.mark.parametrize(
    ("name", "expected", "in_host_line"),
    [
        pytest.param("A_b.Example", "A_b.Example", "A_b.Example", id="none stays as it is"),
        pytest.param("ä.example", "xn--4ca.example", "xn--4ca.example", id="a letter"),
        pytest.param("Ä.Example", "xn--4ca.example", "xn--7ba.Example", id="capitals are mapped where it is looked up"),
        pytest.param("straße.de", "xn--strae-oqa.de", "xn--strae-oqa.de", id="sharp s is one of its own today"),
        pytest.param("a。ü", "a.xn--tda", "xn--a-eha7227a", id="another kind of dot"),
        pytest.param("💩.la", "xn--ls8h.la", "xn--ls8h.la", id="no letter at all"),
        pytest.param("ü_a", NONE, "xn--_a-wka", id="an underscore beside one"),
        pytest.param("-ü", NONE, "xn----eha", id="a hyphen at the beginning"),
        pytest.param("a\u200db.ü", NONE, "xn--ab-m1t.xn--tda", id="a joiner"),
        pytest.param("\u0301a", NONE, "xn--a-wbb", id="a mark without a letter"),
        pytest.param("xn--4ca.ü", "xn--4ca.xn--tda", "xn--4ca.xn--tda", id="one that is encoded already"),
        pytest.param("xn--a-.ü", NONE, NONE, id="one that says nothing but what it hides"),
    ],
)
def test_a_name_in_other_letters(name: str, expected: str, in_host_line: str) -> None:
    try:
        line = punycode(name)
    except ValueError:
        line = NONE
    assert (expected, in_host_line) == (asked(name), line)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        pytest.param("ä:80", "xn--4ca:80", id="a port"),
        pytest.param("ä:", "xn--4ca", id="none behind its colon"),
        pytest.param("[ä]:80", "xn--4ca:80", id="brackets that are not needed"),
        pytest.param("a]ä:80", "xn--a]:80-hra", id="one that is out of place: all of it is the name"),
    ],
)
def test_a_host_line(host: str, expected: str) -> None:
    assert expected == punycode_with_port(host)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("a-b.example.", True, id="with a dot at its end"),
        pytest.param(".", True, id="the root"),
        pytest.param("_http.a", True, id="an underscore"),
        pytest.param("1.a", True, id="a number and a letter"),
        pytest.param("1.2", False, id="numbers alone"),
        pytest.param("a..b", False, id="nothing between dots"),
        pytest.param("-a", False, id="a hyphen first"),
        pytest.param("a-.b", False, id="a hyphen last"),
        pytest.param("x" * 64, False, id="a part of 64"),
        pytest.param(".".join(["x" * 63] * 4)[:253], True, id="253 in all"),
        pytest.param(".".join(["x" * 63] * 4)[:254], False, id="254 in all"),
        pytest.param("ä", False, id="another letter"),
        pytest.param("a b", False, id="a blank"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_what_a_name_server_is_asked_for(name: str, expected: bool) -> None:
    assert expected is is_domain_name(name)
