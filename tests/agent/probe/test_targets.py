"""Ports, URLs, headers, commands: rows P8 to P22 and V1 to V18 of kubelet's prober and probe tests."""

import pytest

from agent.probe.targets import (
    TargetError,
    expand_command,
    format_url,
    header_map,
    http_request,
    resolve_port,
)
from agent.wire.model import Container, ContainerPort, EnvVar, HttpGetAction

POD_IP = "10.0.0.9"
CONTAINER = Container("c", ports=(ContainerPort(93, "found"), ContainerPort(8080, "foo")))


@pytest.mark.parametrize(
    ("port", "expected"),
    [
        pytest.param(-1, None, id="P8 P16 -1"),
        pytest.param("", None, id="P9 P17 empty"),
        pytest.param("-1", None, id="P10 P18 text -1"),
        pytest.param("not-found", None, id="P11 P19 V2 V6 a name that is not there"),
        pytest.param("found", 93, id="P12 P20 a name"),
        pytest.param(76, 76, id="P13 P21 V3 a number"),
        pytest.param("118", 118, id="P14 P22 a number as text"),
        pytest.param("foo", 8080, id="V1 V5 another name"),
        pytest.param(66666, None, id="V4 too large"),
        pytest.param(2.0, None, id="V7 of no known kind"),
        pytest.param("1 8", None, id="no number"),
    ],
)
def test_ports(port: int | str, expected: int | None) -> None:
    if expected is None:
        with pytest.raises(TargetError):
            resolve_port(port, CONTAINER)
        with pytest.raises(TargetError):
            http_request(HttpGetAction(port), CONTAINER, POD_IP)
    else:
        assert expected == resolve_port(port, CONTAINER)
        assert f"http://{POD_IP}:{expected}/" == str(http_request(HttpGetAction(port), CONTAINER, POD_IP).url)


def test_p15_host_and_path_are_taken() -> None:
    request = http_request(HttpGetAction(76, "path", "hostname"), CONTAINER, POD_IP)
    assert str(request.url) == "http://hostname:76/path"


@pytest.mark.parametrize(
    ("port", "expected"),
    [
        pytest.param("+", "invalid syntax", id="a sign alone"),
        pytest.param("0" * 5000 + "e", "invalid syntax", id="zeros, and then none"),
        pytest.param("18446744073709551615e", "invalid syntax", id="as much as 64 bits have, and then none"),
        pytest.param("18446744073709551616e", "value out of range", id="more than that, before what is none is seen"),
        pytest.param("-65535700016553570001e", "value out of range", id="a sign, and more than that"),
        pytest.param("9223372036854775808", "value out of range", id="more than an integer has"),
        pytest.param("-9223372036854775809", "value out of range", id="less than one has"),
    ],
)
def test_what_is_said_of_a_text_that_is_no_number(port: str, expected: str) -> None:
    with pytest.raises(TargetError) as raised:
        resolve_port(port, CONTAINER)
    assert f'strconv.Atoi: parsing "{port}": {expected}' == str(raised.value)


@pytest.mark.parametrize(
    ("scheme", "host", "path", "expected"),
    [
        pytest.param("http", "localhost", "", "http://localhost:93", id="V8 empty path"),
        pytest.param("https", "localhost", "/path", "https://localhost:93/path", id="V9 a path"),
        pytest.param("http", "localhost", "?foo", "http://localhost:93?foo", id="V10 a query alone"),
        pytest.param("https", "localhost", "/path?bar", "https://localhost:93/path?bar", id="V11 path and query"),
        pytest.param("http", "fd00::1", "/", "http://[fd00::1]:93/", id="an IPv6 host gets brackets"),
        pytest.param("http", "h", "/a b", "http://h:93/a%20b", id="a space is escaped"),
        pytest.param("http", "h", "/a%20b", "http://h:93/a%20b", id="what is escaped stays"),
        pytest.param("http", "h", "/100%", "http://h:93/100%25", id="a path that does not parse is passed on escaped"),
        pytest.param("http", "h", "/a%zz?b", "http://h:93/a%25zz%3Fb", id="also its query"),
        pytest.param("http", "h", "//other/p", "http://h:93/p", id="an authority is dropped"),
        pytest.param("http", "h", "/p#frag", "http://h:93/p#frag", id="a fragment stays in the URL; it is not sent"),
        pytest.param("http", "", "/", "http://:93/", id="an empty host stays empty"),
    ],
)
def test_urls(scheme: str, host: str, path: str, expected: str) -> None:
    assert expected == str(format_url(scheme, host, 93, path))


@pytest.mark.parametrize("host", ["a b", "a/b", "a\nb", "u@h"])
def test_a_host_that_cannot_be_in_a_url_errors(host: str) -> None:
    with pytest.raises(TargetError):
        format_url("http", host, 93, "/")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param([("A", "1"), ("B", "2"), ("C", "3")], {"A": ("1",), "B": ("2",), "C": ("3",)}, id="V12 distinct"),
        pytest.param([("HOST", "h"), ("FOO-bAR", "x")], {"Host": ("h",), "Foo-Bar": ("x",)}, id="V13 canonical"),
        pytest.param([], {}, id="V14 none"),
        pytest.param([("Accept", "json")], {"Accept": ("json",)}, id="V15 Accept"),
        pytest.param([("accept", "json")], {"Accept": ("json",)}, id="V16 accept"),
        pytest.param(
            [("accept", "json"), ("Accept", "*/*"), ("pragma", "p"), ("X-forwarded-for", "f")],
            {"Accept": ("json", "*/*"), "Pragma": ("p",), "X-Forwarded-For": ("f",)},
            id="V17 mixed",
        ),
        pytest.param([("X", "1"), ("X", "2")], {"X": ("1", "2")}, id="V18 the same name twice"),
    ],
)
def test_headers(given: list[tuple[str, str]], expected: dict[str, tuple[str, ...]]) -> None:
    assert expected == header_map(given)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        pytest.param("$(A)", "script", id="a name"),
        pytest.param("$(B)", "$(B)", id="an unknown name stays"),
        pytest.param("$(F)", "", id="a value from a field is empty here"),
    ],
)
def test_expand_command(word: str, expected: str) -> None:
    env = (EnvVar("A", "script"), EnvVar("F", field_path="metadata.name"))
    assert (expected,) == expand_command((word,), env)
