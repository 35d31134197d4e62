"""The httpGet handler: what is sent for a probe, and what is made of any bytes that come back. No sockets: connections
are in memory on both sides, and close when their bytes are read."""

from random import Random
from typing import Any

import msgspec

from agent.model import Container
from agent.probe import http as handler
from agent.probe.dial import Deadline, DialError
from agent.probe.outcome import HandlerError
from agent.probe.targets import TargetError, http_request, join_host_port
from agent.semantics import Semantics
from agent.wire.pod import _action, _HttpGet, _Probe
from tests.differential.target import Answers, History
from tests.differential.worlds import maybe

HOSTS = (
    *["127.0.0.1"] * 6,
    "::1",
    "localhost",
    "[::1]",
    "a b",
    "127.0.0.1:80",
    "::1%lo",
    "",
    "a/b",
    "ä.example",
    "a_b",
)
PATHS = (
    *["/"] * 4,
    "/healthz?full=1",
    "",
    "x",
    "a:b",
    "http://other/x",
    "http://u:p@h/x?q=1",
    "mailto:x",
    "/%zz",
    "/a b",
    "//h/x",
    "///x",
    "/ü",
    "/a#f",
    "/?",
    "*",
    '/a|b{}"\\',
    "/\x01",
    "?q",
)
NAMES = (
    "X-A",
    "x-a",
    "Host",
    "User-Agent",
    "Accept",
    "Connection",
    "Upgrade",
    "Content-Length",
    "Transfer-Encoding",
    "Trailer",
    "Authorization",
    "Referer",
    "Content-Type",
    "bad name",
    "X-\x01",
    "Cookie",
)
VALUES = (
    "v",
    "",
    " v ",
    "close",
    "Close, x",
    "Upgrade",
    "keep-alive",
    "5",
    "chunked",
    "a.example",
    "a b",
    "[::1%25lo]:80",
    "ä",
    "v\x01",
    "a\tb",
    "a/b",
)
LOCATIONS = (
    "/next",
    "next",
    "../up",
    "/a//b",
    "/d/../e",
    "/d/./e",
    "///x",
    "//127.0.0.1/x",
    "//other/x",
    "http://127.0.0.1/x",
    "http://127.0.0.1:99999/x",
    "http://other/x",
    "https://other/x",
    "myapp://login",
    "mailto:x",
    "http:/x",
    "http:///x",
    "http:x",
    "/%zz",
    ":x",
    "/a\tb",
    "/a b",
    "/a|b",
    "/\xc3\xbc",
    "http://u:p@127.0.0.1/x",
    "?q=1",
    "#f",
    "",
    "/x#f",
    "http://127.0.0.1:/x",
    "HTTP://127.0.0.1/Y",
    "ftp://127.0.0.1/x",
    "/a;b,c",
    "http://LOCALHOST/x",
    "%2e%2e/x",
    "..",
    ".",
    "/..//x",
)
STATUSES = (
    *["200 OK"] * 12,
    "204 No Content",
    "302 Found",
    "301 Moved",
    "303 See",
    "307 Temporary",
    "308 Permanent",
    "304 Not Modified",
    "300 Multiple",
    "404 Not Found",
    "500 Oops",
    "199 Odd",
    "101 Switch",
    "+20 x",
    "20 x",
    "2000 x",
    "abc",
    "200",
    " 200 OK",
    "-20 x",
    "399 x",
    "600 x",
)
VERSIONS = (
    *["HTTP/1.1"] * 12,
    "HTTP/1.0",
    "HTTP/2.0",
    "HTTP/0.9",
    "HTTP/1.10",
    "http/1.1",
    "HTTP/1",
    "HTTP/3.1",
    "HTTX/1.1",
    "HTTP/0.0",
)
HEADERS = (
    "Content-Length: 5",
    "Content-Length: 5",
    "Content-Length: 0",
    "Content-Length: 6",
    "Content-Length: abc",
    "Content-Length: -1",
    "Content-Length: +5",
    "Content-Length:",
    "Content-Length: 5, 5",
    "Content-Length: 99999999999999999999",
    "Content-Length:\t5 ",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: chunked",
    "transfer-encoding: CHUNKED",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding:",
    "Connection: close",
    "Connection: keep-alive",
    "Trailer: X-T",
    "Trailer: Content-Length",
    "X-A: b",
    "X-A : b",
    "Bad Name: x",
    ": x",
    "no colon",
    "X-B: \x01",
    "X-\xe9: x",
    "X-C: \xe9",
    " folded",
    "X-D: a\r\n b",
    "X-D: a\r\n\tb: c",
    "Upgrade: x\r\nConnection: upgrade",
    "X: a\rb",
    "Pragma: no-cache",
)
BODIES = (
    "hello",
    "hello",
    "",
    "hell",
    "hello world",
    "5\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n0\r\n",
    "5\r\nhello\r\n0\r\nX-T: a\r\n\r\n",
    "5\r\nhello\r\n0\r\nbad trailer\r\n\r\n",
    "5;ext=1\r\nhello\r\n0\r\n\r\n",
    "5 \r\nhello\r\n0\r\n\r\n",
    " 5\r\nhello\r\n0\r\n\r\n",
    "0x5\r\nhello\r\n0\r\n\r\n",
    "5\nhello\n0\n\n",
    "5\r\nhello0\r\n\r\n",
    "5\r\nhel",
    "\r\n",
    "00000000000000005\r\nhello\r\n0\r\n\r\n",
    "5;" + "x" * 5000 + "\r\nhello\r\n0\r\n\r\n",
    "2900\r\n" + "y" * 0x2900 + "\r\n0\r\n\r\n",
    "z" * 10239,
    "z" * 12000,
)
INTERIM = ("HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n")


class HttpTarget:
    name = "http"

    def draw(self, random: Random) -> History:
        get: dict[str, Any] = {"port": random.choice((80, 80, 80, 8080, 443, 0)), "path": random.choice(PATHS)}
        get["host"] = random.choice(HOSTS)
        if maybe(random, 0.4):
            count = random.randint(1, 3)
            names = (
                [random.choice(NAMES)] * count if maybe(random, 0.3) else [random.choice(NAMES) for _ in range(count)]
            )
            get["httpHeaders"] = [{"name": name, "value": random.choice(VALUES)} for name in names]
        replies = [_redirect(random) for _ in range(random.choice((0, 0, 0, 0, 1, 1, 2, 3, 11)))]
        if maybe(random, 0.02):  # around the limit of redirects
            replies = ["HTTP/1.1 302 Found\r\nLocation: /next\r\n\r\n"] * random.choice((9, 10, 11))
        replies += [_reply(random) for _ in range(1 - maybe(random, 0.02))]
        return {"get": get, "podIP": random.choice(("10.0.0.1", "::1", "")), "replies": replies}

    def answer(self, history: History, semantics: Semantics) -> Answers:  # noqa: ARG002 - no gate is asked
        network, dialled = _Network(history["replies"]), handler.connect
        handler.connect = network.connect  # type: ignore[assignment]
        try:
            said = self._probed(history)
        finally:
            handler.connect = dialled
        sent = [made.request.decode("latin-1") for made in network.made]
        return {**said, "dialled": network.dialled, "sent": sent}

    def _probed(self, history: History) -> dict[str, Any]:
        get = msgspec.convert(history["get"], _HttpGet)
        action: Any = _action(_Probe(http_get=get))
        try:
            outcome = handler.http_get(http_request(action, Container(name=""), history["podIP"]), 20.0)
        except TargetError:
            return {"result": "unknown", "output": "", "errored": True}
        except HandlerError as e:
            return {"result": str(e.result), "output": "", "errored": True}
        return {"result": str(outcome.result), "output": outcome.output.encode().decode("latin-1"), "errored": False}

    def told(self, answer: Answers) -> Answers:
        """The words of a client's error are Go's own; that there is one is compared. A body is text for people."""
        if "output" in answer:
            text = answer["output"].encode("latin-1").decode(errors="replace")
            answer = {**answer, "output": text}
        if answer.get("result") == "failure" and not answer["output"].startswith("HTTP probe failed"):
            return {**answer, "output": ""}
        return answer


def _redirect(random: Random) -> str:
    status = random.choice(("302 Found", "301 Moved", "303 See", "307 T", "308 P"))
    lines = [f"HTTP/1.1 {status}", f"Location: {random.choice(LOCATIONS)}"]
    if maybe(random, 0.1):
        lines.append(f"Location: {random.choice(LOCATIONS)}")
    if maybe(random, 0.5):
        lines.append("Content-Length: 2")
    return "\r\n".join(lines) + "\r\n\r\nhi"


def _reply(random: Random) -> str:
    line = f"{random.choice(VERSIONS)} {random.choice(STATUSES)}"
    headers = [random.choice(HEADERS) for _ in range(random.choice((0, 1, 1, 2, 3)))]
    if maybe(random, 0.02):
        headers += [f"X-{n}: v" for n in range(random.choice((99, 100, 101, 300)))]
    if maybe(random, 0.02):
        headers.append("X-Long: " + "x" * random.choice((4090, 70_000)))
    text = "".join(random.choice(INTERIM) for _ in range(random.choice((0, 0, 0, 0, 1, 2, 7))))
    ending = random.choice(("\r\n", "\r\n", "\r\n", "\n"))
    text += ending.join([line, *headers, "", random.choice(BODIES)])
    if maybe(random, 0.1):
        text = text[: random.randrange(len(text) + 1)]
    if maybe(random, 0.1):
        at = random.randrange(len(text) + 1)
        text = text[:at] + random.choice(("\r", "\n", " ", "\t", ":", "\x00", "\x7f", "\xff", "1", "a")) + text[at:]
    return text


class _Connection:
    """Of a server that has its whole answer ready once the request is there, and then ends."""

    def __init__(self, reply: str) -> None:
        self.request = b""
        self._reply = reply.encode("latin-1")

    def settimeout(self, _seconds: float) -> None:
        pass

    def sendall(self, data: bytes) -> None:
        self.request += data

    def recv(self, size: int) -> bytes:
        block, self._reply = self._reply[:size], self._reply[size:]
        return block

    def close(self) -> None:
        pass


class _Network:
    def __init__(self, replies: list[str]) -> None:
        self.replies = list(replies)
        self.dialled: list[str] = []
        self.made: list[_Connection] = []

    def connect(self, host: str, port: int, _deadline: Deadline) -> _Connection:
        self.dialled.append(join_host_port(host, port))
        if not self.replies:
            raise DialError("connect: connection refused")
        self.made.append(_Connection(self.replies.pop(0)))
        return self.made[-1]
