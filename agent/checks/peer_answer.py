"""What agents ask one another, and what this one answers: how it is itself, and how many others have reached it.

A request is GET /peer with the name of who asks and bytes that fill a packet. The answer is JSON and has as many bytes
more, so that both ways carry packets of full size. Whoever reaches the port may ask, and names are as given: they are
used only for nodes that are in the list of the API server.
"""

import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from agent.checks.peer_verdict import Answer
from agent.wire.histogram import Histogram

PATH = "/peer"
PADDING_LIMIT_BYTES = 9 * 2**10  # a frame of 9,000 bytes is the largest in use
VISITORS_LIMIT = 64  # names that are remembered
LATELY_S = 60.0
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)  # seconds
_NODE, _PADDING = "X-Readygate-Node", "X-Readygate-Padding"
_answers = msgspec.json.Decoder(Answer)


class Tried(NamedTuple):
    """Connections of one leg by one family, by how they ended."""

    leg: str
    family: str
    result: str


class Board:
    """What check and server share; any thread. `answer`: of the last run."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._visits: dict[str, float] = {}
        self._tried: dict[Tried, int] = {}
        self._seconds: dict[tuple[str, str], Histogram] = {}
        self.answer = Answer()

    def page(self, request: bytes) -> str:
        """The answer to a request, which counts as a visit."""
        node = header_of(request, _NODE)
        if node:
            self._visited(node)
        visitors = len(self.visitors(self._monotonic() - LATELY_S))
        answer = msgspec.structs.replace(self.answer, visitors=visitors, received=len(request))
        padding = " " * len(header_of(request, _PADDING))  # behind a JSON document blanks say nothing
        return msgspec.json.encode(answer).decode() + padding

    def visitors(self, since: float) -> list[str]:
        """Nodes that have reached this one since then (monotonic)."""
        with self._lock:
            return sorted(node for node, at in self._visits.items() if at >= since)

    def tried(self, leg: str, family: str, result: str, seconds: float | None) -> None:
        """seconds: of what was reached."""
        with self._lock:
            key = Tried(leg, family, result)
            self._tried[key] = self._tried.get(key, 0) + 1
            if seconds is not None:
                self._seconds.setdefault((leg, family), Histogram(BOUNDS)).observe(seconds)

    def counts(self) -> Mapping[Tried, int]:
        with self._lock:
            return dict(self._tried)

    def seconds(self) -> Mapping[tuple[str, str], Histogram]:
        with self._lock:
            return dict(self._seconds)

    def _visited(self, node: str) -> None:
        with self._lock:
            self._visits.pop(node, None)
            self._visits[node] = self._monotonic()  # in order of time
            if len(self._visits) > VISITORS_LIMIT:
                del self._visits[next(iter(self._visits))]


def request_for(host: str, own: str, padding_bytes: int) -> bytes:
    """Without padding it fits into the smallest packet."""
    head = f"GET {PATH} HTTP/1.1\r\nHost: {host}\r\n{_NODE}: {own}\r\nConnection: close\r\n"
    padding = f"{_PADDING}: {'x' * min(padding_bytes, PADDING_LIMIT_BYTES)}\r\n" if padding_bytes else ""
    return f"{head}{padding}\r\n".encode()


def header_of(request: bytes, name: str) -> str:
    """ "" where there is none."""
    for line in request.decode("latin-1").splitlines()[1:]:
        key, colon, value = line.partition(":")
        if colon and key.strip().lower() == name.lower():
            return value.strip()
    return ""


def whole(reply: bytes) -> bytes | None:
    """The body of an HTTP reply once all of it is there."""
    head, blank, body = reply.partition(b"\r\n\r\n")
    if not blank:
        return None
    length = header_of(head, "Content-Length")
    return body if length.isdigit() and len(body) >= int(length) else None


def answer_of(body: bytes) -> Answer | None:
    """None for what is no answer, as of an agent of an earlier version."""
    try:
        return _answers.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
