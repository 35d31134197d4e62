"""The httpGet handler: what is sent for a probe, and what is made of any bytes that come back. No sockets: connections
are in memory on both sides, and close when their bytes are read, or stall, in a time that is the history's own."""

import re
from itertools import pairwise
from random import Random
from typing import Any
from unittest.mock import patch

import msgspec

from agent.probe import http as handler
from agent.probe.reply import SHOWN
from agent.probe.result import HandlerError
from agent.probe.targets import TargetError, http_request
from agent.wire.model import Container
from agent.wire.pod import _action, _HttpGet, _Probe
from agent.wire.semantics import Semantics
from tools.differential.places import HOSTS, LOCATIONS, PATHS, TLS_HOSTS, composed
from tools.differential.servers import KINDS, Network
from tools.differential.target import Answers, History
from tools.differential.worlds import maybe

NAMES = (
    "X-A",
    "x-a",
    "Host",
    "User-Agent",
    "Accept",
    "Accept-Encoding",
    "Range",
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
PAUSES_S = (0.0137731, 0.0137731, 0.4173297, 0.4173297, 1.3391713, 3.7191371, 9.2371319, 11.2371191, 70.1137913)
"""No sum of them is a timeout: which of two things at the same moment is the first is nobody's rule."""
OTHERWISE = (
    # Which of two clocks is the first to tell is chance in Go.
    (
        re.compile(r"(net/http: request canceled[a-z ]*|context deadline exceeded)( \(Client\.Timeout [a-z ]+\))?\Z"),
        "late",
    ),
    # A connection in memory whose server has refused its client.
    (re.compile(r"remote error: tls: certificate required\Z"), "io: read/write on closed pipe"),
    (re.compile(r": invalid host: .*", re.DOTALL), ": invalid host"),
)
"""What is said in other words, and what is compared instead."""
_TOKEN, _CONTROL = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+"), re.compile("[\x00-\x08\n-\x1f\x7f]")
SWITCHES = " 101"  # the status, wherever it stands
SOUND = (
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: 12000\r\n\r\n" + "z" * 12000,
    "HTTP/1.1 200 OK\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: a\r\n\r\n",
    "HTTP/1.1 503 Busy\r\nContent-Length: 5\r\n\r\nhello",
)


class HttpTarget:
    name = "http"

    def draw(self, random: Random) -> History:
        get: dict[str, Any] = {"port": random.choice((80, 80, 80, 8080, 443, 0)), "path": random.choice(PATHS)}
        get["host"] = random.choice(HOSTS)
        if maybe(random, 0.2):
            get["path"] = composed(random)
        if maybe(random, 0.05):
            get["host"] = composed(random)
        if maybe(random, 0.4):
            count = random.randint(1, 3)
            names = (
                [random.choice(NAMES)] * count if maybe(random, 0.3) else [random.choice(NAMES) for _ in range(count)]
            )
            get["httpHeaders"] = [
                {"name": name, "value": composed(random) if maybe(random, 0.1) else random.choice(VALUES)}
                for name in names
            ]
            broken = [header for header in get["httpHeaders"] if _is_broken(header)]
            for header in broken[1:]:  # of several Go names any
                get["httpHeaders"].remove(header)
        replies = [_redirect(random) for _ in range(random.choice((0, 0, 0, 0, 1, 1, 2, 3, 11)))]
        if maybe(random, 0.02):  # around the limit of redirects
            replies = ["HTTP/1.1 302 Found\r\nLocation: /next\r\n\r\n"] * random.choice((9, 10, 11))
        replies += [_reply(random) for _ in range(1 - maybe(random, 0.02))]
        history = {"get": get, "podIP": random.choice(("10.0.0.1", "::1", "")), "replies": replies}
        if maybe(random, 0.05):
            with_tls(random, history)
        if maybe(random, 0.05):
            history["timeoutSeconds"] = random.choice((1, 2, 20, 61))
            history["replies"] = [
                _taking_time(random, r) if isinstance(r, str) and maybe(random, 0.7) else r for r in history["replies"]
            ]
        return history

    def answer(self, history: History, semantics: Semantics) -> Answers:  # noqa: ARG002 - no gate is asked
        network = Network(history["replies"])
        with (
            patch.object(handler, "connect", network.connect),
            patch.object(handler, "Deadline", network.deadline),
        ):
            said = self._probed(history)
        return {**said, "dialled": network.dialled, "sent": [made.sent for made in network.made]}

    def _probed(self, history: History) -> dict[str, Any]:
        get = msgspec.convert(history["get"], _HttpGet)
        action: Any = _action(_Probe(http_get=get))
        try:
            outcome = handler.http_get(
                http_request(action, Container(name=""), history["podIP"]),
                history.get("timeoutSeconds") or 20,  # a changed history may have 0, which the API server makes 1
            )
        except TargetError as e:
            return {"result": "unknown", "output": _one_byte(str(e)), "errored": True}
        except HandlerError as e:
            return {"result": str(e.result), "output": _one_byte(str(e)), "errored": True}
        return {"result": str(outcome.result), "output": _one_byte(outcome.output), "errored": False}

    def told(self, answer: Answers) -> Answers:
        """A body is text for people. Of the words of an error no more is compared than is shown."""
        if "output" not in answer:
            return answer
        text = answer["output"].encode("latin-1").decode(errors="replace")
        if answer["errored"] or answer["result"] == "failure":
            for words, instead in OTHERWISE:
                text = words.sub(instead, text)
            text = text[:SHOWN]
        return {**answer, "output": text}


def _one_byte(text: str) -> str:
    """One character a byte, as the driver writes it."""
    return text.encode(errors="surrogateescape").decode("latin-1")


def _is_broken(header: dict[str, str]) -> bool:
    return not _TOKEN.fullmatch(header["name"]) or bool(_CONTROL.search(header["value"]))


def _redirect(random: Random) -> str:
    status = random.choice(("302 Found", "301 Moved", "303 See", "307 T", "308 P"))
    made = composed(random).encode().decode("latin-1")
    lines = [f"HTTP/1.1 {status}", f"Location: {made if maybe(random, 0.3) else random.choice(LOCATIONS)}"]
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
        headers.append(_long(random))
    text = "".join(random.choice(INTERIM) for _ in range(random.choice((0, 0, 0, 0, 1, 2, 7))))
    ending = random.choice(("\r\n", "\r\n", "\r\n", "\n"))
    text += ending.join([line, *headers, "", random.choice(BODIES)])
    if maybe(random, 0.1):
        text = text[: random.randrange(len(text) + 1)]
    if maybe(random, 0.1):
        at = random.randrange(len(text) + 1)
        text = text[:at] + random.choice(("\r", "\n", " ", "\t", ":", "\x00", "\x7f", "\xff", "1", "a")) + text[at:]
    return text


def _long(random: Random) -> str:
    """Around what is held of a line, by itself or folded."""
    text = "x" * random.choice((4090, 65_520, 65_527, 65_528, 65_529, 65_536, 70_000, 200_000))
    name, end = (
        random.choice(("X-Long: ", "X-Long: a\r\n ", "X-Long: a\r\n")),
        random.choice(("", "", "\r", "\x01", " ", "\xe9")),
    )
    return f"{name}{text}{end}{random.choice(('', '', ': y'))}"


def _taking_time(random: Random, reply: str, tls: str = "") -> dict[str, Any]:
    """The reply of a server that pauses somewhere, or from somewhere on before each byte, and may never end. A kubelet
    waits for ever for one that has changed the protocol and then says nothing: no deadline holds for it any more."""
    if SWITCHES in reply:
        return at_once(reply, tls)
    pause_s = random.choice(PAUSES_S)
    if maybe(random, 0.3) and not reply.startswith("HTTP/1.1 30"):
        reply = random.choice(SOUND)
    cuts = sorted(random.choice(_places(random, reply)) for _ in range(random.choice((0, 0, 1, 1, 2, 3))))
    if maybe(random, 0.2):
        first = random.choice(_places(random, reply))
        cuts = list(range(first, min(len(reply), first + 12)))
    bounds = [0, *cuts, len(reply)]
    parts = [
        {"after": pause_s if maybe(random, 0.7) else random.choice(PAUSES_S), "text": reply[a:b]}
        for a, b in pairwise(bounds)
    ]
    parts[0]["after"] = random.choice((0.0, 0.0, pause_s))
    ending = random.choice((*["close"] * 4, *["silent"] * 4, "reset", *(["drop", "drop"] if tls else [])))
    return {"tls": tls, "handshake": random.choice((0.0, 0.0, pause_s, PAUSES_S[-2])), "parts": parts, "ending": ending}


def _places(random: Random, reply: str) -> tuple[int, ...]:
    """Where a server may pause: anywhere, in the middle of its headers' end, before its body or in it."""
    body = reply.find("\r\n\r\n") + 4
    places = (random.randrange(len(reply) + 1), body - 1, body, body + 1, body + 10239, body + 10240, body + 10241)
    return tuple(min(place, len(reply)) for place in places)


def at_once(reply: str, tls: str) -> dict[str, Any]:
    return {"tls": tls, "handshake": 0.0, "parts": [{"after": 0.0, "text": reply}], "ending": "close"}


def with_tls(random: Random, history: History) -> None:
    """Servers with TLS of some kind, one without it, redirects from one to the other and back."""
    get = history["get"]
    get |= {"scheme": random.choice(("HTTPS", "HTTPS", "HTTPS", "HTTP", "https")), "path": random.choice(PATHS[:5])}
    get["host"] = random.choice((*["127.0.0.1"] * 3, *TLS_HOSTS))
    host = f"[{get['host']}]" if ":" in get["host"] and get["host"][0] != "[" else get["host"]
    secured, replies = get["scheme"] != "HTTP", list[Any]()
    texts = [_reply(random)] if maybe(random, 0.3) else [random.choice(SOUND)]
    for _ in range(random.choice((0, 0, 0, 1, 1, 2, 3))):
        place = random.choice((f"http://{host}/x", f"https://{host}/x", f"https://{host}/x", "/next", "http://b/"))
        texts.insert(len(replies), f"HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 2\r\n\r\nhi")
        replies.append(_secured(random, texts[len(replies)], secured=secured))
        secured = place.startswith("https") if ":" in place else secured
    history["replies"] = [*replies, _secured(random, texts[-1], secured=secured)]


def _secured(random: Random, text: str, *, secured: bool) -> str | dict[str, Any]:
    tls = random.choice(KINDS) if secured != maybe(random, 0.1) else ""
    if maybe(random, 0.2):
        return _taking_time(random, text, tls)
    return at_once(text, tls) if tls else text
