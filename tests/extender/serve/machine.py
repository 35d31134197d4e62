"""Clients that do anything to the loop, drawn by chance, over real sockets and by a clock that a test moves.

The machine has no model of HTTP: a client may send any piece at any time, so most of what it sends is nonsense. What
must hold does not depend on that (see Clients.check_*).
"""

import socket
import struct
import sys
from contextlib import ExitStack, suppress
from unittest import mock

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from extender.serve import eviction, limits
from extender.serve.error_log import ErrorLog
from extender.serve.http import Answer
from extender.serve.loop import Loop
from tools.kit.clock import Clock

# In proportion, as the limits that they stand for.
PLACES, NEWCOMERS, KEPT = 16, 4, 4
ACCEPTS, EVENTS = 2, 4
HELD_MAX_BYTES = 600_000
LARGE_BYTES = 200_000
ANSWER_BYTES = 800_000  # more than the buffers of both sockets
KNOWN_VERDICTS = 100  # more than any other client gets
CALLS_MAX = 60_000  # of functions in one turn; the busiest one that was seen had 7,000
TURNS_MAX = 60  # until a known client is answered
RESET = struct.pack("ii", 1, 0)
SIZES = (10, 5_000, 150_000, 195_000, 400_000, 99_000_000)
POST = b"POST /%b HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n%b\r\n"
GET = b"GET /%b HTTP/1.1\r\nHost: h\r\n\r\n"


class Spins(BaseException):
    """A turn has called more functions than it may. No Exception: the loop goes on after those."""


class Fault(BaseException):
    """The loop has caught an exception. No Exception either: it would be caught again."""


def fail(_faults, what):
    """In the place of Faults.may_tell()."""
    raise Fault(what) from sys.exception()


class Bounded:
    """Counts the calls of functions in a block, and ends it where there are too many."""

    def __init__(self, calls_max):
        self._calls_max, self._calls = calls_max, 0

    def __enter__(self):
        sys.setprofile(self._count)

    def __exit__(self, *_):
        sys.setprofile(None)

    def _count(self, _frame, event, _argument):
        if event in {"call", "c_call"}:
            self._calls += 1
            if self._calls > self._calls_max:
                sys.setprofile(None)
                raise Spins(f"more than {self._calls_max} calls in a turn")


class Routes:
    """/verdict is answered with one, /much with more than the kernel takes."""

    def answer(self, request, *, may_ask):
        body = bytes(ANSWER_BYTES) if request.target == b"/much" else request.target
        return Answer(200, body), request.target == b"/verdict" and may_ask, None

    def refuse(self, refusal):
        return Answer(refusal.status, b"{}")

    def account(self, *_):
        raise AssertionError("nothing here is accounted for")

    def lost(self, cause, number=1):
        pass


class Handshake:
    """A stream with a handshake of two bytes: `h` or, of a client that may ask nothing, `n`, and `f`."""

    def __init__(self):
        self.ready, self.done, self.may_ask = False, False, False
        self._hello, self._pending = b"", b""

    def receive(self, data):
        data = bytes(data)
        if not self.ready and not self._hello:
            self._hello, data = data[:1], data[1:]
            self._pending = b"s"
        if not self.ready and data:
            self.ready, data = True, data[1:]
            self.may_ask = self._hello != b"n"
        return data

    def send(self, plain):
        return plain

    def pending(self):
        wire, self._pending = self._pending, b""
        return wire

    def ended(self):
        return b""


def connected(address):
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**20)
    sock.settimeout(10)
    sock.connect(address)
    sock.setblocking(False)
    return sock


def head(target, size, expects, begun):
    return POST % (target, size, b"Expect: 100-continue\r\n" if expects else b"") + bytes(begun)


# What is sent, each as a few words: a test that fails shows them.
HEADS = st.tuples(
    st.sampled_from([b"none", b"verdict", b"much"]),
    st.sampled_from(SIZES),
    st.booleans(),
    st.sampled_from([0, 1, 10, 60_000, 190_000]),
    st.booleans(),
).map(lambda words: ("head", words))
CALLS = st.sampled_from([b"none", b"verdict", b"much"]).map(lambda target: ("calls", (target, 1)))
PIPELINED = st.sampled_from([b"none", b"much"]).map(lambda target: ("calls", (target, 40)))
PIECES = st.sampled_from([1, 1_000, 150_000, 400_000, 400_000]).map(lambda size: ("body", size))
NEXT = HEADS.map(lambda words: ("all go on", words[1]))
CROWDS = st.tuples(st.sampled_from([3, 9, 20]), HEADS).map(lambda crowd: ("crowd", crowd))
WORDS = st.sampled_from([b"\r\n", b"POST /none HT"]).map(lambda word: ("word", word))
ENDS = st.sampled_from(["finish", "reset", "read"]).map(lambda end: (end, None))
NEW = st.sampled_from([b"", b"h", b"n", b"hf", b"nf", b"hf"]).map(lambda hello: ("connect", hello))
SENDS = st.one_of(HEADS, CALLS, PIPELINED, PIECES, WORDS)
ACTIONS = st.one_of(
    NEW, HEADS, PIECES, SENDS, CROWDS, NEXT, ENDS, st.tuples(HEADS, ENDS).map(lambda both: ("both", both))
)


class Clients(RuleBasedStateMachine):
    """stream: as that of Loop."""

    stream = None

    @initialize()
    def begin(self):
        self.stack = ExitStack()
        for module, name, value in (
            (eviction, "NEWCOMERS_MIN", NEWCOMERS),
            (eviction, "KEPT_MAX", KEPT),
            (limits, "LARGE_BODY_BYTES", LARGE_BYTES),
            (limits, "ACCEPTS_MAX", ACCEPTS),
            (ErrorLog, "may_tell", fail),
            (limits, "EVENTS_MAX", EVENTS),
        ):
            self.stack.enter_context(mock.patch.object(module, name, value))
        self.clock = Clock(1000.0)
        listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        listener.setblocking(False)
        self.address = listener.getsockname()
        self.loop = Loop(
            Routes(),
            chores=lambda _: 0.0,
            stream=self.stream,
            connections_max=PLACES,
            held_max_bytes=HELD_MAX_BYTES,
            monotonic=self.clock,
            sleep=lambda _: None,
        )
        self.stack.callback(self.loop._epoll.close)
        self.loop.open([listener])
        self.stack.callback(self.close)
        self.socks = []
        self.done = []
        self.due = {}  # how much is still to come of a body, where a client goes on with it
        self.known = connected(self.address)
        if self.stream is not None:
            self.known.sendall(b"hf")
            self.turns(3)
            self.known.recv(1)
        for _ in range(KNOWN_VERDICTS):
            self.is_answered()

    def close(self):
        self.loop._entrance.close(self.clock())
        for client in list(self.loop._clients.values()):
            self.loop._places.close(client)
        for sock in (self.known, *self.socks):
            sock.close()

    def teardown(self):
        if hasattr(self, "stack"):
            self.stack.close()

    # What may happen.

    @rule(actions=st.lists(st.tuples(st.integers(0, 20), ACTIONS), min_size=1, max_size=25), turns=st.integers(1, 3))
    def act(self, actions, turns):
        """All of them before the loop looks."""
        self.done.append((actions, turns))
        for number, (action, detail) in actions:
            self.do(number, action, detail)
        self.turns(turns)

    @rule(seconds=st.sampled_from([0.03, 0.06, 0.6, 1.1, 5.1, 10.1, 21.0]))
    def time_passes(self, seconds):
        self.done.append(seconds)
        self.clock.time += seconds
        self.turns(2)

    def do(self, number, action, detail):
        if action == "connect" or not self.socks:
            self.connect(detail if action == "connect" else b"hf")
        index = number % len(self.socks)
        sock = self.socks[index]
        with suppress(OSError):
            match action:
                case "both":
                    for one, its in detail:
                        self.do(number, one, its)
                case "crowd":
                    count, (_, words) = detail
                    for _ in range(count):
                        self.connect(b"hf")
                        self.send_head(self.socks[-1], *words)
                case "head":
                    self.send_head(sock, *detail)
                case "calls":
                    target, count = detail
                    sock.send(GET % target * count)
                case "body":
                    due = self.due.get(sock, 0)
                    sent = sock.send(bytes(min(detail, due) or detail))
                    self.due[sock] = max(0, due - sent)
                case "all go on":
                    for one in self.socks:
                        with suppress(OSError):
                            self.send_head(one, *detail[:-1], True)
                case "word":
                    sock.send(detail)
                case "finish":
                    sock.shutdown(socket.SHUT_WR)
                case "read":
                    sock.recv(2**20)
                case "reset":
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    sock.close()
                    del self.socks[index]

    def send_head(self, sock, target, size, expects, begun, ends):
        """ends: whether the body of before ends in the same packet."""
        before = bytes(min(self.due.get(sock, 0), 400_000)) if ends else b""
        sent = sock.send(before + head(target, size, expects, begun))
        self.due[sock] = max(0, size - min(max(0, sent - len(before)), begun))

    def connect(self, hello):
        sock = connected(self.address)
        if self.stream is not None:
            sock.send(hello)
        self.socks.append(sock)

    def turns(self, number):
        """As run() does, but for the waiting."""
        for _ in range(number):
            with Bounded(CALLS_MAX):
                if self.clock() >= self.loop._look_at:
                    self.loop._look(self.clock())
                self.loop._turn(0.0)

    # What must hold.

    @invariant()
    def check_bytes_are_counted_of_open_clients_alone_and_exactly(self):
        loop = getattr(self, "loop", None)
        if loop is None:
            return
        opened = set(loop._clients.values())
        self.must(set(loop._held._bytes) <= opened, "bytes of a closed client are counted")
        held_bytes = {one: one.held_bytes for one in opened if one.held_bytes}
        self.must(held_bytes == loop._held._bytes, "not counted exactly")
        self.must(sum(held_bytes.values()) == loop._held.sum_bytes, "not summed up exactly")

    @invariant()
    def check_limits(self):
        loop = getattr(self, "loop", None)
        if loop is None:
            return
        large = loop._places.large
        opened = set(loop._clients.values())
        self.must(len(opened) <= PLACES, "more clients than places")
        self.must(loop._held.sum_bytes <= HELD_MAX_BYTES, "more bytes than may be held")
        self.must({large._holder, *large.waiting} - {None} <= opened, "a closed client has or awaits a turn")
        self.must(set(large.waiting) == {one for one in opened if one.waits}, "a client waits for nothing")

    @invariant()
    def check_known_idle_client_is_answered(self):
        if hasattr(self, "known"):
            self.is_answered()

    def is_answered(self):
        self.known.sendall(GET % b"verdict")
        answer = b""
        for _ in range(TURNS_MAX):
            self.turns(1)
            with suppress(BlockingIOError):
                piece = self.known.recv(65536)
                self.must(piece, "the known client was closed")
                answer += piece
            if answer.endswith(b"/verdict"):
                return
        self.must(False, f"not answered after {TURNS_MAX} turns")

    def must(self, condition, text):
        """What was done is printed where it fails: the kernel may not do the same again when hypothesis repeats it."""
        if not condition:
            print(text, *self.done, sep="\n")
            raise AssertionError(text)
