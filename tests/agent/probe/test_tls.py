"""Whom a probe over TLS names as the one it wants to speak to."""

import socket
import ssl
from pathlib import Path

import pytest

from agent.probe import http, tls
from agent.probe.dial import Deadline
from agent.probe.result import HandlerResult
from agent.probe.targets import http_request
from agent.wire.model import Container, HttpGetAction
from tests.agent.probe.http_target import Target, self_signed
from tools.kit.cases import cases


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        pytest.param("a.example", "a.example", id="a name"),
        pytest.param("a.example.", "a.example", id="the dot at its end is no part of it"),
        pytest.param("ä.example", "xn--4ca.example", id="one of other letters as name servers know it"),
        pytest.param("x" * 64 + ".example", "x" * 64 + ".example", id="a label that no name server has"),
        pytest.param(".example", None, id="a dot first: OpenSSL says none"),
        pytest.param(".", None, id="a dot alone"),
        pytest.param("127.0.0.1", None, id="an address is no name"),
        pytest.param("::1", None, id="nor is one of IPv6"),
    ],
)
def test_h49_the_server_is_told_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, expected: str | None
) -> None:
    named: list[str | None] = []
    context = self_signed(tmp_path)
    context.sni_callback = lambda _tls, name, _context: named.append(name)
    with Target(lambda call: call.reply(200), tls=context) as target:

        def connect(_host: str, _port: int, deadline: Deadline) -> socket.socket:
            return socket.create_connection(("127.0.0.1", target.port), deadline.left_s())

        monkeypatch.setattr(http, "connect", connect)
        outcome = http.http_get(http_request(HttpGetAction(443, "/", host, "HTTPS"), Container("c"), ""), 20.0)
    assert (HandlerResult.SUCCESS, [expected]) == (outcome.result, named), outcome.output


@cases(
    "reason, expected",
    (
        "a server that does not speak TLS",
        "WRONG_VERSION_NUMBER",
        "tls: first record does not look like a TLS handshake",
    ),
    ("the server ends it", "TLSV1_ALERT_ACCESS_DENIED", "remote error: tls: access denied"),
    ("Go has other words", "TLSV13_ALERT_CERTIFICATE_REQUIRED", "remote error: tls: certificate required"),
    ("an old version", "TLSV1_ALERT_PROTOCOL_VERSION", "remote error: tls: protocol version not supported"),
    ("a name that the server does not have", "TLSV1_UNRECOGNIZED_NAME", "remote error: tls: unrecognized name"),
    ("any other reason is named", "BAD_SIGNATURE", "tls: BAD_SIGNATURE"),
)
def test_an_error_of_tls_has_the_words_of_go(reason: str, expected: str) -> None:
    error = ssl.SSLError(1, "failed")
    error.reason = reason
    assert expected == tls.fault(error)
