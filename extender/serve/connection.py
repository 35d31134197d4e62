"""The state of one HTTP connection: bytes in, requests out, answers in, bytes out. Pure: time is an argument."""

import math
from collections import deque
from enum import Enum
from http import HTTPStatus

from extender.serve import limits
from extender.serve.http import Heads, Reader, Refusal, Request


class Stage(Enum):
    """What a connection waits for: a word, and the limit in seconds."""

    IDLE = ("a request", limits.IDLE_LIMIT_S)
    HEAD = ("the rest of a head", limits.HEAD_LIMIT_S)
    BODY = ("the rest of a body", limits.BODY_LIMIT_S)
    ASKED = ("the answer", math.inf)
    ANSWERING = ("the client to read", limits.ANSWER_LIMIT_S)
    CLOSING = ("the client to close", limits.CLOSE_LIMIT_S)

    def __init__(self, what: str, limit_s: float) -> None:
        self.what = what
        self.limit_s = limit_s


_IDLE, _HEAD, _BODY, _ASKED, _ANSWERING, _CLOSING = Stage  # local names, because each call looks them up


class Connection:
    """The server's side of one HTTP connection.

    out: bytes to send, in order. verdicts: how many verdicts the client has received; with one it may be
    kube-scheduler. since: when the current wait began (for a request, for the rest of one, for the answer, or for the
    client to read). deadline: when this wait is too long. waits: it must not be read, because another client's large
    body has the turn. expects: the client waits for `100 Continue`. gone: the client sends no more.
    """

    __slots__ = (
        *("deadline", "discard_bytes", "expects", "gone", "last", "out", "reader", "refused", "requests"),
        *("since", "stage", "verdicts", "waits"),
    )

    def __init__(self, monotonic: float, heads: Heads | None = None) -> None:
        self.reader = Reader(heads)
        self.requests = self.reader.complete
        self.refused = False  # whether the refusal of the reader was answered
        self.last = False  # whether the last answer was given
        self.out: deque[bytes | memoryview] = deque()
        self.verdicts = 0
        self.gone = False
        self.expects = False
        self.waits = False
        self.discard_bytes = 0
        self.since = monotonic
        self.stage = _IDLE
        self.deadline = monotonic + limits.IDLE_LIMIT_S

    def receive(self, data: bytes | memoryview, monotonic: float) -> None:
        """Takes bytes of the client, in any pieces. Afterwards next() may have a request."""
        if self.last:
            self.discard_bytes -= len(data)
            return
        reader = self.reader
        reader.feed(data)
        if self.requests:
            if not self.out:  # the result of settle(), inlined because each call of kube-scheduler passes here
                self.stage, self.since, self.deadline = _ASKED, monotonic, math.inf
                return
        elif reader.expects and reader.in_body and reader.refusal is None:
            reader.expects = False
            self.expects = True
        self.settle(monotonic)

    def next(self) -> Request | Refusal | None:
        """Returns what to answer next: requests in their order, then the refusal that ended reading."""
        if self.requests:
            return self.requests.popleft()
        if self.reader.refusal is not None and not self.refused:
            self.refused = True
            return self.reader.refusal
        return None

    @property
    def asked(self) -> bool:
        """Returns whether next() has something."""
        return bool(self.requests) or (self.reader.refusal is not None and not self.refused)

    @property
    def wants_bytes(self) -> bool:
        """Returns whether the connection should be read: not while it has answers to read or requests to answer."""
        return not (self.out or self.gone or self.waits or self.asked)

    @property
    def large(self) -> bool:
        """Returns whether its body is a large one. Large bodies are read one at a time."""
        reader = self.reader
        if reader.in_body and reader.within and reader.refusal is None:
            return max(reader.announced_bytes, reader.body_bytes) > limits.LARGE_BODY_BYTES
        return any(len(request.body) > limits.LARGE_BODY_BYTES for request in self.requests)

    @property
    def held_bytes(self) -> int:
        """Returns how many bytes of memory it holds."""
        reader = self.reader
        partial = max(reader.body_bytes, reader.fed_bytes) if reader.within else 0
        return partial + sum(len(one.body) + 500 for one in self.requests) + sum(map(len, self.out))

    def end(self) -> None:
        """Makes the answer in `out` the last one. Later bytes of the client are dropped."""
        self.last = True
        refusal = self.reader.refusal
        rest_bytes = 0 if refusal is None else refusal.rest_bytes
        self.discard_bytes = limits.RECEIVE_BYTES + min(rest_bytes, limits.DISCARD_MAX_BYTES)
        self.requests.clear()

    def drop(self) -> None:
        """Releases everything that it holds."""
        self.requests.clear()
        self.out.clear()
        self.reader.drop()

    def fail(self, status: HTTPStatus, text: str, monotonic: float) -> None:
        """Stops reading and answers with this text."""
        self.expects = False
        self.reader.fail(status, text)
        self.settle(monotonic)

    def granted(self, monotonic: float) -> None:
        """Gives it the turn for a large body. Turns extend the wait for a body to twice its limit at most."""
        self.waits = False
        longest = self.since + 2 * limits.BODY_LIMIT_S
        self.deadline = max(self.deadline, min(monotonic + limits.LARGE_BODY_TURN_S, longest))

    @property
    def finished(self) -> bool:
        """Returns whether nothing more will ever be sent."""
        return (self.last and not self.out) or (self.gone and not self.out and not self.asked)

    @property
    def ended(self) -> bool:
        """Returns whether it can be closed: it is finished, and the client has closed or sent more than is read and
        dropped."""
        return self.finished and (self.gone or self.discard_bytes < 0)

    def settle(self, monotonic: float) -> None:
        """Determines the stage after a change of `out`. All other changes set the stage themselves."""
        reader = self.reader
        if self.out:
            stage = _ANSWERING
        elif self.last:
            stage = _CLOSING
        elif self.requests or (reader.refusal is not None and not self.refused):  # a request waits for its answer
            stage = _ASKED
        elif reader.within:
            stage = _BODY if reader.in_body else _HEAD
        else:
            stage = _IDLE
        if stage is not self.stage:
            if stage is not _BODY or self.stage is not _HEAD:  # the wait for a body began with its head
                self.since = monotonic
            self.stage = stage
            self.deadline = monotonic + stage.limit_s
            if stage is _CLOSING and self.discard_bytes > limits.RECEIVE_BYTES:  # for a refused body
                self.deadline = monotonic + limits.BODY_LIMIT_S
