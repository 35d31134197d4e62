"""The loop over loopback sockets, with routes of its own."""

import socket
import threading
from collections import Counter
from contextlib import contextmanager
from http import HTTPStatus

from extender.serve.http import Answer
from extender.serve.loop import Loop

GET = b"GET %b HTTP/1.1\r\nHost: h\r\n\r\n"


class Routes:
    """counted: the times that answers to /counted took. received: what account() waits for. losses: connections that
    were closed for want of something, by cause."""

    def __init__(self):
        self.counted = []
        self.losses = Counter()
        self.received = threading.Event()

    def account(self, target, took_s):
        if target == b"/miscounted":
            raise KeyError("a bug of ours")
        assert self.received.wait(30)
        self.counted.append(took_s)

    def lost(self, cause, number=1):
        self.losses[cause] += number

    def answer(self, request, *, may_ask):
        assert may_ask
        if request.target == b"/bug":
            raise MemoryError("a bug of ours")
        return Answer(HTTPStatus.OK, request.target), False, request.target if b"counted" in request.target else None

    def refuse(self, refusal):
        if refusal.target == b"/bug":
            raise ValueError("a bug of ours")
        return Answer(refusal.status, b"{}")


class Listener:
    """A real one, of which accept fails as it is told. given: what stands for the next new connections."""

    def __init__(self):
        self._sock = socket.create_server(("127.0.0.1", 0))
        self._sock.setblocking(False)
        self.failures = []
        self.given = []

    def __getattr__(self, name):
        return getattr(self._sock, name)

    def accept(self):
        if self.failures:
            raise OSError(self.failures.pop(), "of the test")
        sock, address = self._sock.accept()
        return (self.given.pop()(sock) if self.given else sock), address


@contextmanager
def serving(routes=None, **options):
    ended = threading.Event()
    listener = Listener()

    def chores(monotonic):
        if ended.is_set() and not loop.draining:
            loop.drain(idle_s=0.0, limit_s=0.2)
        return monotonic + 0.02

    loop = Loop(routes or Routes(), chores=chores, **options)
    loop.open([listener])
    thread = threading.Thread(target=loop.run)
    thread.start()
    listener.address = listener.getsockname()
    try:
        yield listener
    finally:
        ended.set()
        thread.join(30)
        assert not thread.is_alive()


def connected(listener):
    return socket.create_connection(listener.address, timeout=30)


def asked(sock, target):
    sock.sendall(GET % target)
    return sock.recv(1000)
