"""What is remembered of a probe that comes again, and what is not."""

import pytest

from agent.probe import dial
from agent.probe.http import _plan
from agent.probe.targets import HttpRequest, http_request
from agent.wire.model import Container, HttpGetAction


def request(**fields: object) -> HttpRequest:
    return http_request(HttpGetAction(**{"port": 80, "host": "10.0.0.1", **fields}), Container(name=""), "")


def test_requests_that_are_equal_are_planned_once() -> None:
    assert _plan(request(path="/a")) is _plan(request(path="/a"))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"path": "/b"}, (b"GET /b HTTP", "10.0.0.1", 80), id="another path"),
        pytest.param({"port": 81}, (b"GET / HTTP", "10.0.0.1", 81), id="another port"),
        pytest.param({"host": "::1"}, (b"GET / HTTP", "::1", 80), id="another host"),
        pytest.param({"headers": (("A", "1"),)}, (b"A: 1\r\n", "10.0.0.1", 80), id="a header"),
        pytest.param({"headers": (("A", "2"),)}, (b"A: 2\r\n", "10.0.0.1", 80), id="another value of it"),
    ],
)
def test_requests_that_differ_are_planned_anew(fields: dict[str, object], expected: tuple[bytes, str, int]) -> None:
    assert _plan(request(path="/a")) != _plan(request(**fields))
    head, host, port = _plan(request(**fields))
    assert (True, *expected[1:]) == (expected[0] in head, host, port)


@pytest.mark.parametrize(
    ("host", "remembered"),
    [
        pytest.param("127.0.0.1", True, id="an address"),
        pytest.param("::1", True, id="one of the other family"),
        pytest.param("fe80::1%eth0", False, id="one with a zone, whose number may change"),
        pytest.param("localhost", False, id="a name"),
    ],
)
def test_only_what_cannot_change_is_remembered_of_a_host(host: str, remembered: bool) -> None:
    assert remembered == (dial._of_address(host, 80) is not None)
