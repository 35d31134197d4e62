"""httpGet against a real socket: the rows H of kubelet's http_test.go, and peers that never end."""

import socket
import ssl
import struct
import threading
import time
from pathlib import Path

import pytest

from agent.probe import tls
from agent.probe.http import http_get
from agent.probe.result import HandlerError, HandlerResult, Outcome
from agent.probe.targets import TargetError, http_request
from agent.wire.model import Container, HttpGetAction
from tests.agent.probe.http_target import Answer, Call, Target, self_signed
from tools.kit.cases import cases

SUCCESS, WARNING, FAILURE = HandlerResult.SUCCESS, HandlerResult.WARNING, HandlerResult.FAILURE
REDIRECTED = "Probe terminated redirects, Response body: "


def ask(
    target: Target,
    path: str = "/",
    *headers: tuple[str, str],
    timeout_s: float = 2.0,
    scheme: str = "HTTP",
) -> Outcome:
    action = HttpGetAction(target.port, path, "127.0.0.1", scheme, headers)
    return http_get(http_request(action, Container("c"), ""), timeout_s)


def sent(*headers: tuple[str, str]) -> dict[str, str]:
    """The header lines the server gets, without Host."""
    with Target(lambda call: call.reply(200, b"ok body")) as target:
        assert Outcome(SUCCESS, "ok body") == ask(target, "/", *headers)
    return {name: value for name, value in target.calls[0].headers if name != "Host"}


DEFAULTS = {"User-Agent": "kube-probe/1.36", "Accept": "*/*", "Connection": "close"}


@cases(
    "headers, changed",
    ("H1 H5 H42 H43 none: exactly three", [], {}),
    ("H2 own", [("X-Muffins-Or-Cupcakes", "muffins")], {"X-Muffins-Or-Cupcakes": "muffins"}),
    ("H3 user agent", [("User-Agent", "foo/1.0")], {"User-Agent": "foo/1.0"}),
    ("H4 empty user agent: none", [("User-Agent", "")], {"User-Agent": None}),
    ("H4 one of blanks: an empty one", [("User-Agent", " ")], {"User-Agent": ""}),
    ("H6 empty Accept: none", [("Accept", "")], {"Accept": None}),
    ("H6 text/html", [("Accept", "text/html")], {"Accept": "text/html"}),
    ("H6 foo/*", [("Accept", "foo/*")], {"Accept": "foo/*"}),
    ("H44 gzip", [("Accept-Encoding", "gzip")], {"Accept-Encoding": "gzip"}),
    ("H45 empty encoding is sent", [("Accept-Encoding", "")], {"Accept-Encoding": ""}),
    ("H46 two", [("User-Agent", "foo/1.0"), ("Accept", "text/html")], {"User-Agent": "foo/1.0", "Accept": "text/html"}),
)
def test_headers(headers: list[tuple[str, str]], changed: dict[str, str | None]) -> None:
    assert {k: v for k, v in {**DEFAULTS, **changed}.items() if v is not None} == sent(*headers)


def test_h7_a_given_host_is_sent_once() -> None:
    with Target(lambda call: call.reply(200, (call.header("Host") or "").encode())) as target:
        assert Outcome(SUCCESS, "muffins.cupcakes.org") == ask(target, "/", ("Host", "muffins.cupcakes.org"))
        assert Outcome(SUCCESS, f"127.0.0.1:{target.port}") == ask(target)
    assert [1, 1] == [sum(name == "Host" for name, _ in call.headers) for call in target.calls]


def new(path: str, status: int, location: str = "/new") -> Answer:
    """`path` is redirected with `status`; /new answers 200, or 500 when the path says so."""

    def answer(call: Call) -> None:
        if call.path == path:
            call.redirect(location, status)
        else:
            call.reply(500 if "fail" in call.path else 200, b"ok")

    return answer


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(200, Outcome(SUCCESS, "ok"), id="200"),
        pytest.param(299, Outcome(SUCCESS, "ok"), id="299"),
        pytest.param(304, Outcome(WARNING, REDIRECTED), id="304 is a warning"),
        pytest.param(400, Outcome(FAILURE, "HTTP probe failed with statuscode: 400"), id="400"),
        pytest.param(500, Outcome(FAILURE, "HTTP probe failed with statuscode: 500"), id="H9 500"),
    ],
)
def test_status(status: int, expected: Outcome) -> None:
    with Target(lambda call: call.reply(status, b"" if status == 304 else b"ok")) as target:
        assert expected == ask(target)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("location", "expected"), [("/new", SUCCESS), ("/fail", FAILURE)], ids=["H11-H18 ok", "H11-H18 500"]
)
def test_redirects(status: int, location: str, expected: HandlerResult) -> None:
    with Target(new("/", status, location)) as target:
        assert expected is ask(target).result
        assert [("/", None), (location, f"http://127.0.0.1:{target.port}/")] == [
            (call.path, call.header("Referer")) for call in target.calls
        ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(b"", Outcome(WARNING, REDIRECTED), id="H19 no body"),
        pytest.param(b"ok body", Outcome(WARNING, f"{REDIRECTED}ok body"), id="H20 with a body"),
    ],
)
def test_a_redirect_without_location_is_a_warning(body: bytes, expected: Outcome) -> None:
    with Target(lambda call: call.reply(308, body) if call.path == "/new" else call.redirect("/new", 308)) as target:
        assert expected == ask(target)


@pytest.mark.parametrize(
    ("path", "expected"),
    [pytest.param("/success", SUCCESS, id="H25 success"), pytest.param("/fail", FAILURE, id="H27 fail")],
)
def test_another_port_is_the_same_host(path: str, expected: HandlerResult) -> None:
    with (
        Target(lambda call: call.reply(500 if call.path == "/fail" else 200)) as other,
        Target(lambda call: call.redirect(f"http://127.0.0.1:{other.port}{path}")) as target,
    ):
        assert expected is ask(target).result


def test_h29_a_redirect_to_another_host_is_not_followed() -> None:
    with Target(
        lambda call: call.reply(500) if call.path == "/fail" else call.redirect(f"http://0.0.0.0:{target.port}/fail")
    ) as target:
        assert WARNING is ask(target).result


@pytest.mark.parametrize(
    ("path", "expected"),
    [pytest.param("/success", SUCCESS, id="H21 success"), pytest.param("/fail", FAILURE, id="H23 fail")],
)
def test_a_redirect_to_the_same_host_is_followed(path: str, expected: HandlerResult) -> None:
    with Target(new("/", 302, path)) as target:
        assert expected is ask(target).result


def test_h31_a_loop_ends_after_ten() -> None:
    with Target(lambda call: call.redirect("/again")) as target:
        assert Outcome(FAILURE, 'Get "/again": stopped after 10 redirects') == ask(target)
    assert len(target.calls) == 10


@pytest.mark.parametrize(
    ("host", "expected"),
    [pytest.param("www.success.com", SUCCESS, id="H33"), pytest.param("www.fail.com", FAILURE, id="H35")],
)
def test_a_given_host_survives_a_relative_redirect(host: str, expected: HandlerResult) -> None:
    def answer(call: Call) -> None:
        if call.path == "/":
            call.redirect("/next")
        else:
            call.reply(200 if call.header("Host") == "www.success.com" else 500)

    with Target(answer) as target:
        assert expected is ask(target, "/", ("Host", host)).result


@pytest.mark.parametrize(
    ("sent_bytes", "kept_bytes"),
    [
        pytest.param(10241, 10240, id="H37 one too many"),
        pytest.param(10239, 10239, id="H38 one less"),
        pytest.param(10240, 10240, id="H47 exactly"),
    ],
)
def test_the_body_is_cut_at_10_kib(sent_bytes: int, kept_bytes: int) -> None:
    with Target(lambda call: call.reply(200, b"x" * sent_bytes)) as target:
        assert Outcome(SUCCESS, "x" * kept_bytes) == ask(target)


def test_h39_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with Target(lambda call: call.reply(200)) as target:
        assert ask(target).result is SUCCESS


def test_h41_a_certificate_nobody_knows_is_fine(tmp_path: Path) -> None:
    with Target(lambda call: call.reply(200, b"tls"), tls=self_signed(tmp_path)) as target:
        assert Outcome(SUCCESS, "tls") == ask(target, scheme="HTTPS")


def test_h48_a_handshake_has_a_limit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "HANDSHAKE_LIMIT_S", 0.2)
    begun = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        action = HttpGetAction(silent.getsockname()[1], "/", "127.0.0.1", "HTTPS")
        assert http_get(http_request(action, Container("c"), ""), 60).result is FAILURE
    assert time.monotonic() - begun < 10


def dripping(target: list[Target], data: bytes, before: bytes = b"") -> Answer:
    def answer(call: Call) -> None:
        call.send(before)
        while not target[0].stopped.wait(0.02):
            call.send(data)

    return answer


NEVER_ENDING = [
    ("H10 no answer at all", b"", b"", FAILURE),
    ("headers byte by byte", b"x", b"HTTP/1.1 200 OK\r\nX: ", FAILURE),
    ("headers without end", b"a: b\r\n", b"HTTP/1.1 200 OK\r\n", FAILURE),
    ("early hints without end", b"HTTP/1.1 103 Early\r\n\r\n", b"", FAILURE),
    ("H40 headers, then a stalled body", b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", None),
    ("a body byte by byte", b"x", b"HTTP/1.1 200 OK\r\n\r\n", None),
    ("a body without end: 10 KiB are enough", b"x" * 9999, b"HTTP/1.1 200 OK\r\n\r\n", SUCCESS),
    ("chunks without end", b"1\r\nx\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", None),
]


@pytest.mark.parametrize(
    ("framing", "timeout_s", "expected"),
    [
        pytest.param("Content-Length: 9", 0.5, FAILURE, id="up to 2 KiB are read first"),
        pytest.param("Transfer-Encoding: chunked", 0.5, FAILURE, id="as is one of unknown length"),
        pytest.param("Content-Length: 2049", 20.0, SUCCESS, id="a longer one is left alone"),
    ],
)
def test_a_redirect_whose_body_stalls(framing: str, timeout_s: float, expected: HandlerResult) -> None:
    def answer(call: Call) -> None:
        if call.path == "/":
            call.send(f"HTTP/1.1 302 X\r\nLocation: /there\r\n{framing}\r\n\r\n".encode())
            target.stopped.wait()
        else:
            call.reply(200)

    with Target(answer) as target:
        assert expected is ask(target, timeout_s=timeout_s).result


@cases("data, before, expected", *NEVER_ENDING)
def test_a_peer_that_never_ends_costs_the_timeout_and_no_more(
    data: bytes, before: bytes, expected: HandlerResult | None
) -> None:
    target: list[Target] = []
    begun = time.monotonic()
    with Target(dripping(target, data, before)) as made:
        target.append(made)
        if expected is None:
            with pytest.raises(HandlerError):
                ask(made, timeout_s=0.3)
        else:
            assert expected is ask(made, timeout_s=20.0 if expected is SUCCESS else 0.3).result
    assert time.monotonic() - begun < 10


@cases(
    "data, expected",
    ("H8 the connection is dropped", b"", "EOF"),
    ("no HTTP", b"nonsense\r\n\r\n", "transport connection broken"),
    ("a broken Location", b"HTTP/1.1 302 Found\r\nLocation: http://[::1\r\n\r\n", "parse Location"),
    ("to another scheme", b"HTTP/1.1 302 Found\r\nLocation: ftp://127.0.0.1/\r\n\r\n", "protocol scheme"),
)
def test_answers_that_fail(data: bytes, expected: str) -> None:
    with Target(lambda call: call.send(data)) as target:
        outcome = ask(target)
    assert outcome.result is FAILURE
    assert expected in outcome.output


def test_a_body_that_breaks_off_is_errored() -> None:
    with (
        Target(lambda call: call.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nxy")) as target,
        pytest.raises(HandlerError, match="unexpected EOF"),
    ):
        ask(target)


def test_early_hints_come_before_the_answer() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    with Target(lambda call: call.send(early)) as target:
        assert Outcome(SUCCESS, "ok") == ask(target)


def test_a_header_value_with_a_line_break_is_not_sent() -> None:
    with Target(lambda call: call.reply(200)) as target:
        outcome = ask(target, "/", ("X-A", "b\r\nHost: evil"))
    assert (FAILURE, []) == (outcome.result, target.calls)
    assert 'invalid header field value for "X-A"' in outcome.output


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    action = HttpGetAction(port, "/x", "127.0.0.1")
    expected = f'Get "http://127.0.0.1:{port}/x": dial tcp 127.0.0.1:{port}: connect: connection refused'
    assert Outcome(FAILURE, expected) == http_get(http_request(action, Container("c"), ""), 1)


def test_h51_an_event_shows_no_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    action = HttpGetAction(port, "http://user:secret@h/x", "127.0.0.1")
    outcome = http_get(http_request(action, Container("c"), ""), 1)
    assert outcome.output.startswith(f'Get "http://user:***@127.0.0.1:{port}/x": dial tcp')


def test_h52_a_bad_location_is_told_with_the_url_that_was_asked() -> None:
    with Target(lambda call: call.redirect("/%zz")) as target:
        why = 'failed to parse Location header "/%zz": parse "/%zz": invalid URL escape "%zz"'
        expected = f'Get "http://127.0.0.1:{target.port}/": {why}'
        assert Outcome(FAILURE, expected) == ask(target)


def test_h53_a_connection_that_is_reset_in_a_body() -> None:
    def answer(call: Call) -> None:
        call.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")
        call.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        call.connection.close()

    with Target(answer) as target, pytest.raises(HandlerError, match=r"^connection reset by peer$"):
        ask(target)


@pytest.mark.parametrize(
    ("location", "result"),
    [
        pytest.param("myapp://login", WARNING, id="an app's own scheme"),
        pytest.param("mailto:x", WARNING, id="mailto"),
        pytest.param("http:///x", WARNING, id="no host"),
        pytest.param("http://other:99999/x", WARNING, id="another host, whatever its port"),
        pytest.param("/%zz", FAILURE, id="a broken escape"),
        pytest.param(":x", FAILURE, id="no URL"),
    ],
)
def test_a_redirect_that_is_not_followed(location: str, result: HandlerResult) -> None:
    with Target(lambda call: call.redirect(location)) as target:
        assert result is ask(target).result


def test_of_two_locations_the_first_counts() -> None:
    def answer(call: Call) -> None:
        if call.path == "/a":
            call.reply(200, b"there")
        else:
            call.reply(302, b"", "Location: /a", "Location: /b")

    with Target(answer) as target:
        assert Outcome(SUCCESS, "there") == ask(target)


def test_headers_that_would_make_a_server_wait_for_a_body_are_not_sent() -> None:
    headers = (("Content-Length", "5"), ("Transfer-Encoding", "chunked"), ("Trailer", "x"))
    with Target(lambda call: call.reply(200)) as target:
        assert ask(target, "/", *headers).result is SUCCESS
        assert [None, None, None] == [target.calls[0].header(name) for name, _ in headers]


@pytest.mark.parametrize("host", ["[::1]", "[127.0.0.1]", "127.0.0.1:80"])
def test_a_host_that_cannot_be_in_a_url_is_no_result_at_all(host: str) -> None:
    with pytest.raises(TargetError):
        http_request(HttpGetAction(80, host=host), Container(name="c"), "127.0.0.1")


@pytest.mark.parametrize(
    ("ciphers", "expected"),
    [
        pytest.param("AES128-SHA:AES128-GCM-SHA256", FAILURE, id="RSA key exchange, which Go has given up"),
        pytest.param("ECDHE-RSA-AES128-SHA256", FAILURE, id="CBC with SHA-256, which Go does not offer"),
        pytest.param("ECDHE-RSA-AES128-SHA", SUCCESS, id="CBC with SHA-1, which Go offers"),
        pytest.param("ECDHE-RSA-AES128-GCM-SHA256", SUCCESS, id="GCM"),
    ],
)
def test_what_a_server_of_tls_12_must_speak(tmp_path: Path, ciphers: str, expected: HandlerResult) -> None:
    tls = self_signed(tmp_path)
    tls.maximum_version = ssl.TLSVersion.TLSv1_2
    tls.set_ciphers(f"{ciphers}:@SECLEVEL=0")
    with Target(lambda call: call.reply(200), tls=tls) as target:
        assert expected is ask(target, scheme="HTTPS", timeout_s=20.0).result


def test_https_on_a_plain_port_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with listener.accept()[0] as connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        action = HttpGetAction(listener.getsockname()[1], "/", "127.0.0.1", "HTTPS")
        outcome = http_get(http_request(action, Container("c"), ""), 20.0)
    assert outcome.output.endswith("server gave HTTP response to HTTPS client")
