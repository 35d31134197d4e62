"""Whom the extender answers by the Host header of the request: a page of a foreign name is no caller of ours."""

import pytest

GOOD = b'{"Pod":{"metadata":{"name":"a","namespace":"b"}},"NodeNames":["h1"]}'


def ask(extender, host, *, method=b"POST /filter", version=b"1.1", more=b""):
    """Status line of the answer. host: the value of the header, None for no header."""
    lines = [method + b" HTTP/" + version, *([] if host is None else [b"Host: " + host])]
    lines += [b"Connection: close", *([b"Content-Length: %d" % len(GOOD)] if method.startswith(b"POST") else [])]
    head = b"\r\n".join(lines) + b"\r\n" + more + b"\r\n"
    return int(extender.raw(head + (GOOD if method.startswith(b"POST") else b"")).split()[1])


@pytest.mark.parametrize(
    ("host", "status"),
    [
        pytest.param(b"127.0.0.1:9376", 200, id="by address"),
        pytest.param(b"localhost", 200, id="by localhost"),
        pytest.param(b"[::1]:9376", 200, id="by an address of IPv6"),
        pytest.param(b"evil.example.com:9376", 421, id="a foreign name that resolves to us"),
        pytest.param(b"192.0.2.1:9376", 421, id="a foreign address"),
        pytest.param(b"localhost:http", 421, id="a port that is none"),
    ],
)
@pytest.mark.parametrize("method", [b"POST /filter", b"GET /livez", b"GET /readyz", b"GET /nothing"])
def test_a_host_that_is_not_ours_is_refused_everywhere(extender, method, host, status):
    found = ask(extender, host, method=method)
    assert (404 if status == 200 and method == b"GET /nothing" else status) == found


def test_a_request_without_a_host(extender):
    assert [400, 200] == [ask(extender, None), ask(extender, None, version=b"1.0")]


def test_a_request_with_two_hosts(extender):
    assert 400 == ask(extender, b"localhost", more=b"Host: evil.example.com\r\n")
