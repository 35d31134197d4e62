"""What the kernel or OpenSSL may lack when somebody comes: it costs the new connection, and nobody waits in vain."""

import errno
import os
import resource
import socket
import ssl
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from extender.serve import limits
from extender.verbs.counts import Counts, Lost
from extender.web.metrics import _verbs
from tests.extender.serve.serving import Routes, asked, connected, serving


class Unpollable:
    """A new connection that no epoll takes, as the kernel may refuse any: its descriptor is another file's."""

    def __init__(self, sock):
        self._sock = sock
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the socket

    def __getattr__(self, name):
        return getattr(self._sock, name)

    def fileno(self):
        return self._file.fileno()

    def close(self):
        self._file.close()
        self._sock.close()


class Plain:
    """A stream that changes nothing."""

    ready, done, may_ask = True, False, True

    def receive(self, data):
        return bytes(data)

    def send(self, plain):
        return plain

    def pending(self):
        return b""


class Streams:
    """Of new connections; what is in `errors` is raised instead, one for each."""

    def __init__(self):
        self.errors = []

    def __call__(self):
        if self.errors:
            raise self.errors.pop()
        return Plain()


def ended(sock):
    with suppress(ConnectionError):
        return sock.recv(1) == b""
    return True


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ssl.SSLError("malloc failure"), id="OpenSSL has no memory"),
        pytest.param(MemoryError(), id="we have none"),
        pytest.param(OSError(errno.ENOMEM, "of the test"), id="the kernel has none"),
    ],
)
def test_an_error_of_what_stands_before_http_costs_the_new_connection_only(error, caplog):
    routes, streams = Routes(), Streams()
    with serving(routes, stream=streams) as listener, connected(listener) as kept:
        assert asked(kept, b"/good").endswith(b"/good")
        streams.errors.extend([error] * 3)
        for _ in range(3):
            with connected(listener) as new:
                assert ended(new)
        with connected(listener) as new:
            assert asked(new, b"/good").endswith(b"/good")
        assert asked(kept, b"/good").endswith(b"/good")
    assert ({Lost.FAILED: 3}, ["a new connection failed"]) == (routes.losses, [one.message for one in caplog.records])


def test_a_connection_that_epoll_does_not_take_costs_itself_only(caplog):
    routes = Routes()
    with serving(routes) as listener, connected(listener) as kept:
        assert asked(kept, b"/good").endswith(b"/good")
        listener.given.append(Unpollable)
        with connected(listener) as new:
            assert ended(new)
        with connected(listener) as new:
            assert asked(new, b"/good").endswith(b"/good")
        assert asked(kept, b"/good").endswith(b"/good")
    assert ({Lost.FAILED: 1}, ["a new connection failed"]) == (routes.losses, [one.message for one in caplog.records])


@contextmanager
def no_descriptors():
    """This process gets no descriptor more, by the kernel's own limit; what it has it keeps."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(one.name) for one in Path("/proc/self/fd").iterdir())
    with ExitStack() as filled:
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
        try:
            with suppress(OSError):
                while True:
                    filled.callback(os.close, os.dup(0))
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def late():
    """A client whose own descriptor is there before there are no more."""
    sock = socket.socket()
    sock.settimeout(5)
    return sock


@pytest.mark.parametrize("clients", [0, 1, 4])
def test_where_every_descriptor_is_used_the_oldest_makes_room_for_each_new_one_and_nobody_hangs(clients):
    routes = Routes()
    with serving(routes) as listener, ExitStack() as stack:
        old = [stack.enter_context(connected(listener)) for _ in range(clients)]
        for sock in old:
            assert asked(sock, b"/good").endswith(b"/good")
        new = [stack.enter_context(late()) for _ in range(3)]
        began = time.monotonic()
        with no_descriptors():
            answers = [told(sock, listener.address) for sock in new]
        took_s = time.monotonic() - began
    served = len([one for one in answers if one.endswith(b"/good")])
    # One that gives its descriptor gives it to the next; without any the kept one is used to say no.
    assert (3 if clients else 0, True) == (served, took_s < 3 * 10 * limits.NO_DESCRIPTORS_S)
    assert (served, 3 - served) == (routes.losses[Lost.DESCRIPTORS], routes.losses[Lost.REFUSED])


def told(sock, address):
    """b"" if it was refused."""
    sock.connect(address)
    with suppress(ConnectionError):
        return asked(sock, b"/good")
    return b""


def test_what_is_lost_is_counted_by_cause():
    counts = Counts()
    counts.lose(Lost.REFUSED, 3)
    (lost,) = [metric for metric in _verbs(counts) if metric.name == "readygate_connections_lost"]
    expected = {"places": 0, "bytes": 0, "descriptors": 0, "refused": 3, "failed": 0}
    assert expected == {sample.labels["cause"]: sample.value for sample in lost.samples}
