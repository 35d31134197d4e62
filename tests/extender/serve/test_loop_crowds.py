"""The loop while more connections have sent something than a turn looks at: all have, as it stood still meanwhile."""

import threading
import time
from contextlib import ExitStack, contextmanager
from http import HTTPStatus

from extender.serve import limits
from extender.serve.http import Answer
from tests.extender.serve.serving import GET, Routes, asked, connected, serving

CROWD = 60
BODY = b"POST %b HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200_000


class Standing(Routes):
    """An answer to /stand is given when `go` is set; /verdict is answered with one. order: what was answered."""

    def __init__(self):
        super().__init__()
        self.order = []
        self.stands, self.go = threading.Event(), threading.Event()

    def answer(self, request, *, may_ask):
        assert may_ask
        self.order.append(request.target)
        if request.target == b"/stand":
            self.stands.set()
            assert self.go.wait(30)
        return Answer(HTTPStatus.OK, request.target), request.target == b"/verdict", None

    @contextmanager
    def standing(self, sock):
        """sock: whose question it stands at."""
        sock.sendall(GET % b"/stand")
        assert self.stands.wait(30)
        try:
            yield
        finally:
            self.order.clear()
            self.go.set()


def received(sock, end):
    answer = b""
    while not answer.endswith(end):
        piece = sock.recv(1000)
        assert piece
        answer += piece


def test_who_has_been_answered_for_longest_is_read_from_first_though_a_crowd_has_sent_large_bodies_before():
    routes = Standing()
    with serving(routes) as listener, ExitStack() as stack:
        kept, other, *crowd = [stack.enter_context(connected(listener)) for _ in range(CROWD + 2)]
        for sock in (kept, *crowd):
            asked(sock, b"/verdict" if sock is kept else b"/none")
        with routes.standing(other):
            for sock in (*crowd, kept):
                sock.sendall(BODY % (b"/kept" if sock is kept else b"/crowd"))
        for sock in (*crowd, kept):
            received(sock, b"/kept" if sock is kept else b"/crowd")
    assert CROWD + 1 == len(routes.order)
    assert routes.order.index(b"/kept") <= limits.FEW


class TwoFlights:
    """A stream whose handshake is a byte, dear to us, an answer of ours, and one more byte."""

    took_s = 2 * limits.SLICE_S
    hellos = 0  # of all of them

    def __init__(self):
        self.ready, self.done, self.may_ask = False, False, True
        self._pending = b""

    def receive(self, data):
        if self.ready:
            return bytes(data)
        if data[:1] == b"h":
            time.sleep(self.took_s)
            type(self).hellos += 1
            self._pending = b"s"
            return b""
        self.ready = True
        return bytes(data[1:])

    def send(self, plain):
        return plain

    def pending(self):
        wire, self._pending = self._pending, b""
        return wire

    def ended(self):
        return b""


def test_who_goes_on_with_a_handshake_waits_for_few_of_a_crowd_that_begins_one():
    """A crowd can send one hello again and again, which costs it nothing and us a signature each time."""
    routes, before = Standing(), TwoFlights.hellos
    with serving(routes, stream=TwoFlights) as listener, ExitStack() as stack:
        new, other, *crowd = [stack.enter_context(connected(listener)) for _ in range(CROWD + 2)]
        for sock in (other, new):
            sock.send(b"h")
            received(sock, b"s")
        other.send(b"f")
        asked(other, b"/none")
        with routes.standing(other):
            for sock in crowd:
                sock.send(b"h")
            new.sendall(b"f" + GET % b"/new")
        received(new, b"/new")
        hellos = TwoFlights.hellos - before - 2
        for sock in crowd:
            received(sock, b"s")
    assert hellos <= 4  # of a turn or two, in each of which is time for one
