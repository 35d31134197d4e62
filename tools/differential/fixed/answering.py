"""Rows P, V, E, T, G and H: what a probe makes of commands, ports, and answers byte by byte."""

from typing import Any

from tools.differential.target import History
from tools.differential.targets.grpc import (
    DATA,
    END_HEADERS,
    END_STREAM,
    GREETING,
    HEADERS,
    PORT,
    _fields,
    _frame,
    _text,
)
from tools.differential.targets.handlers import BOTH, LATE_S
from tools.differential.worlds import Json

_PORTS = [{"name": "found", "containerPort": int(BOTH)}, {"name": "refused", "containerPort": 1}]
_ENDED: Json = {"code": 0, "stdout": "", "stderr": "", "fault": ""}


def _pod(handler: Json, env: list[Json]) -> Json:
    probe = {"timeoutSeconds": LATE_S, "periodSeconds": 1, "successThreshold": 1, "failureThreshold": 1, **handler}
    container = {"name": "a", "livenessProbe": probe, "ports": _PORTS, "env": env}
    meta = {"uid": "u", "name": "pod", "namespace": "default"}
    return {"metadata": meta, "spec": {"containers": [container]}, "status": {"podIP": "127.0.0.1"}}


def _handled(handler: Json, *runs: Json, env: list[Json] | None = None) -> History:
    return {"pod": _pod(handler, env or []), "type": "Liveness", "runs": [_ENDED | run for run in runs or ({},)]}


def _ran(*command: str) -> Json:
    return {"exec": {"command": list(command)}}


_EXEC: dict[str, History] = {
    "P2: no handler": _handled({}),
    "P3 E5: a command fails": _handled(_ran("true"), {"code": 1, "stdout": "no"}),
    "P4 E1: a command succeeds": _handled(_ran("true"), {"stdout": "OK"}),
    "P6: the runtime is gone, three times": _handled(_ran("true"), {"fault": "gone"}),
    "P6: the runtime is gone, then there": _handled(_ran("true"), {"fault": "gone"}, {"fault": "gone"}, {}),
    "E3: more output than is read": _handled(_ran("true"), {"stdout": "x" * 11 * 1024}),
    "E3: more output of a failure": _handled(_ran("true"), {"code": 1, "stdout": "x" * 11 * 1024}),
    "E6: a command that takes too long": _handled(_ran("sleep", "9"), {"fault": "timeout"}),
    "E9: both outputs": _handled(_ran("true"), {"code": 1, "stdout": "so", "stderr": "no"}),
    "P24: a command as it is": _handled(_ran("/bin/bash", "-c", "some script")),
    "P25: a command with names": _handled(_ran("some", "$(A) $(B)"), env=[{"name": "A", "value": "script"}]),
}
_CONNECTED: dict[str, History] = {
    f"{rows}: {kind} to port {port!r}": _handled({kind: {"port": port, **more}})
    for kind, more in (("tcpSocket", {}), ("httpGet", {"path": "/", "scheme": "HTTP"}))
    for rows, port in (
        ("P8 P16 T2", -1),
        ("P9 P17", ""),
        ("P10 P18", "-1"),
        ("P11 P19 V2", "not-found"),
        ("P12 P20 V1 V5 T1", "found"),
        ("P12 P20 T1", "refused"),
        ("P13 P21 V3", int(BOTH)),
        ("P14 P22", BOTH),
        ("V4", 66666),
    )
}
HANDLERS: dict[str, History] = _EXEC | _CONNECTED


def _served(reply: bytes, greeting: bytes = GREETING) -> History:
    pod = _pod({"grpc": {"port": PORT, "service": "s"}}, [])
    return {
        "pod": pod,
        "type": "Liveness",
        "runs": [],
        "script": {"greeting": _text(greeting), "reply": [_text(reply)]},
    }


def _answered(status: int | None, code: int = 0) -> bytes:
    head = _frame(HEADERS, END_HEADERS, _fields([(":status", "200"), ("content-type", "application/grpc")]))
    body = b"" if status is None else _frame(DATA, 0, b"\0\0\0\0\2\x08" + bytes((status,)))
    return head + body + _frame(HEADERS, END_HEADERS | END_STREAM, _fields([("grpc-status", str(code))]))


GRPC: dict[str, History] = {
    "G3: NOT_SERVING": _served(_answered(2)),
    "G5: SERVING": _served(_answered(1)),
    "G6: a service that is not known": _served(_answered(None, 5)),
    "G7: Unimplemented": _served(_answered(None, 12)),
}


def _got(*replies: str | Json, headers: tuple[tuple[str, str], ...] = (), **get: Any) -> History:
    action = {"port": 80, "path": "/", "host": "127.0.0.1", **get}
    if headers:
        action["httpHeaders"] = [{"name": name, "value": value} for name, value in headers]
    return {"get": action, "podIP": "10.0.0.1", "replies": list(replies)}


def _reply(status: str, body: str = "", location: str = "") -> str:
    lines = [f"HTTP/1.1 {status}", *([f"Location: {location}"] if location else []), f"Content-Length: {len(body)}"]
    return "\r\n".join(lines) + "\r\n\r\n" + body


def _serving(*parts: tuple[float, str], tls: str = "", ending: str = "close", handshake: float = 0.0) -> Json:
    """A server that sends each part so many seconds after the one before."""
    told = [{"after": after, "text": text} for after, text in parts]
    return {"tls": tls, "handshake": handshake, "parts": told, "ending": ending}


_OK, _OOPS = _reply("200 OK", "ok body"), _reply("500 Internal Server Error")
_LOOP = _reply("302 Found", location="/")
_CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: a\r\n\r\n"
HTTP: dict[str, History] = {
    "H1 H42 H43: it succeeds": _got(_OK),
    "H2 V12: a header": _got(_OK, headers=(("X-Muffins-Or-Cupcakes", "muffins"),)),
    "H3: a User-Agent": _got(_OK, headers=(("User-Agent", "foo/1.0"),)),
    "H4: no User-Agent": _got(_OK, headers=(("User-Agent", ""),)),
    "H6: no Accept": _got(_OK, headers=(("Accept", ""),)),
    "H6 V15: another Accept": _got(_OK, headers=(("Accept", "text/html"),)),
    "V16: accept in small letters": _got(_OK, headers=(("accept", "json"),)),
    "V13: names as Go writes them": _got(_OK, headers=(("HOST", "h"), ("FOO-bAR", "x"))),
    "V17 V18: a name more than once": _got(_OK, headers=(("accept", "json"), ("Accept", "*/*"), ("pragma", "x"))),
    "H7: a Host": _got(_OK, headers=(("Host", "muffins.cupcakes.org"),)),
    "H8: no answer": _got(""),
    "H8: nobody listens": _got(),
    "H9: an error": _got(_OOPS),
    **{
        f"H11-H18: {status.partition(' ')[0]}, then {told}": _got(_reply(status, location="/new"), then)
        for status in ("301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect")
        for told, then in (("ok", _OK), ("an error", _OOPS))
    },
    "H19: a redirect without a place, empty": _got(_reply("308 P", location="/new"), _reply("308 P")),
    "H20: a redirect without a place": _got(_reply("308 P", location="/new"), _reply("308 P", "ok body")),
    "H21: a redirect on this host": _got(_reply("302 Found", location="/success"), _OK),
    "H23: a redirect on this host to a failure": _got(_reply("302 Found", location="/fail"), _OOPS),
    "H25: a redirect to another port": _got(_reply("302 Found", location="http://127.0.0.1:81/success"), _OK),
    "H27: a redirect to another port, a failure": _got(_reply("302 Found", location="http://127.0.0.1:81/"), _OOPS),
    "H29: a redirect to another host": _got(_reply("302 Found", location="http://0.0.0.0/fail"), _OOPS),
    "H31: redirects without an end": _got(*[_LOOP] * 12),
    "H33: a Host over a redirect": _got(
        _reply("302 Found", location="/success"), _OK, headers=(("Host", "www.success.com"),)
    ),
    "H37: a body that is too long": _got(_reply("200 OK", "b" * 10241)),
    "H38: a body that is nearly too long": _got(_reply("200 OK", "b" * 10239)),
    "H47: a body just as long as is read": _got(_reply("200 OK", "b" * 10240)),
    "H44: an Accept-Encoding": _got(_OK, headers=(("Accept-Encoding", "gzip"),)),
    "H45: an empty Accept-Encoding": _got(_OK, headers=(("Accept-Encoding", ""),)),
    "V10: a query alone": _got(_OK, path="?foo"),
    "V11: a path and a query": _got(_OK, path="/path?bar"),
    "V8: no path": _got(_OK, path=""),
    "H10: an answer that comes too late": _got(_serving((20.5, _OK))),
    "H10: one that comes in time": _got(_serving((19.5, _OK))),
    "H10: nothing, ever": _got(_serving(ending="silent")),
    "H10: half a head": _got(_serving((0.0, "HTTP/1.1 200 OK\r\nContent-"), ending="silent")),
    "H10: each byte in time, all of them too late": _got(_serving(*[(1.5, one) for one in _OK])),
    "H10: the timeout is of all redirects together": _got(
        _serving((11.5, _reply("302 Found", location="/next"))), _serving((11.5, _OK))
    ),
    "H40: half a body": _got(_serving((0.0, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"), ending="silent")),
    "H40: a redirect whose body stalls": _got(
        _serving((0.0, "HTTP/1.1 302 F\r\nLocation: /next\r\nContent-Length: 5\r\n\r\n"), ending="silent"), _OK
    ),
    "H40: all of a body, from one that stays": _got(_serving((0.0, _OK), ending="silent")),
    "H40: a trailer behind the chunks, from one that stays": _got(_serving((0.0, _CHUNKED), ending="silent")),
    "H41: a certificate that nobody signed": _got(_serving((0.0, _OK), tls="self-signed"), scheme="HTTPS"),
    "H41: one that is expired": _got(_serving((0.0, _OK), tls="expired"), scheme="HTTPS"),
    "H41: a short key": _got(_serving((0.0, _OK), tls="short key"), scheme="HTTPS"),
    "H8: HTTPS to a server without it": _got(_OK, scheme="HTTPS"),
    "H8: HTTPS to one that is too old": _got(_serving((0.0, _OK), tls="1.1"), scheme="HTTPS"),
    "H8: HTTP to a server with TLS": _got(_serving((0.0, _OK), tls="self-signed")),
    "H48: a handshake of nine seconds": _got(_serving((0.0, _OK), tls="1.2", handshake=9.5), scheme="HTTPS"),
    "H48: one of more than ten": _got(_serving((0.0, _OK), tls="1.2", handshake=10.5), scheme="HTTPS"),
    "H49: a name with a dot at its end": _got(_serving((0.0, _OK), tls="1.2"), host="a.", scheme="HTTPS"),
    "H49: a name of other letters": _got(_serving((0.0, _OK), tls="1.2"), host="ä.example", scheme="HTTPS"),
    "H50: two codings": _got("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "H50: two lengths": _got("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
    "H50: a control character in an answer": _got("HTTP/1.1 200 OK\r\nX-A: \x01\r\n more\r\n\r\n"),
    "H50: a control character in a header": _got(_OK, headers=(("X-\x01", "v"),)),
    "H50: no length": _got("HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n"),
    "H51: a password": _got("", path="http://u:p@h/x"),
    "H52: a Location with a broken escape": _got(_reply("302 Found", location="/%zz")),
    "H52: a Location that is no URL": _got(
        _reply("302 Found", location="/next"), _reply("302 Found", location=":x\x01")
    ),
    "H53: a connection that is reset in a body": _got(
        _serving((0.0, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"), ending="reset")
    ),
    "H53: one that is reset in a head": _got(_serving((0.0, "HTTP/1.1 200 OK\r\nContent-"), ending="reset")),
    "H54: a host that is an address and a port": _got(_OK, host="127.0.0.1:80"),
    "H21: from HTTPS to HTTP and back": _got(
        _serving((0.0, _reply("302 Found", location="http://127.0.0.1/plain")), tls="self-signed"),
        _reply("302 Found", location="https://127.0.0.1/secret"),
        _serving((0.0, _OK), tls="self-signed"),
        scheme="HTTPS",
    ),
}
