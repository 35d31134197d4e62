"""Clients that mean harm at kube-scheduler's port: a known client is answered throughout, by the same worker."""

import json
import os
import socket
import struct
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress

import pytest

from extender.serve.limits import HELD_MAX_BYTES
from extender.verbs.wire import BODY_LIMIT_BYTES
from tests.scripted.extender_process import checked
from tests.scripted.test_extender_crowds import CALLS, POST, is_answered
from tools.kit.pid import children
from tools.kit.programs import python_environ

RESET = struct.pack("ii", 1, 0)
PART_BYTES = 950_000
PARTS = 36
PATIENT_S = 5.0  # of a caller on a machine that has other things to do; kube-scheduler waits for one


def connected(extender, stack):
    return stack.enter_context(socket.create_connection(("127.0.0.1", extender.port), timeout=PATIENT_S))


def reset_after_expect(extender):
    with ExitStack() as stack:
        for _ in range(5):
            sock = connected(extender, stack)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            sock.sendall(POST + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % (BODY_LIMIT_BYTES - 1))


def fill(extender, stack):
    """More than may be held of all clients."""
    assert PARTS * PART_BYTES > HELD_MAX_BYTES
    data = POST + b"Content-Length: %d\r\n\r\n%b" % (PART_BYTES + 10_000, b"x" * PART_BYTES)
    for _ in range(PARTS):
        with suppress(OSError):  # one before it was closed for its bytes
            connected(extender, stack).sendall(data)


def test_clients_that_reset_after_expect_and_more_bytes_than_may_be_held_cost_a_known_client_no_call(extender):
    workers = children(extender.process.pid)
    kept = extender.connection(timeout=PATIENT_S)
    is_answered(kept)
    before = kept.sock.getsockname()
    for _ in range(3):
        with ExitStack() as stack:
            reset_after_expect(extender)
            fill(extender, stack)
            for _ in range(CALLS):
                is_answered(kept)
    assert (before, workers) == (kept.sock.getsockname(), children(extender.process.pid))
    kept.close()


FLOOD = """
import socket, struct, sys
from contextlib import suppress

names = b",".join(b'"node-%d"' % number for number in range(64_000))
body = b'{"Pod":{},"NodeNames":[' + names + b"]}"
data = b"POST /filter HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body
print("begun", flush=True)
while True:
    socks = []
    for number in range(30):
        with suppress(OSError):
            sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=1)
            sock.settimeout(0.1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            socks.append(sock)
            sock.sendall(data)
    for sock in socks:
        sock.close()
"""


@contextmanager
def floods(extender, count):
    """In processes of their own, so that they do not slow the client that measures."""
    with ExitStack() as stack:
        for _ in range(count):
            argv = [sys.executable, "-c", FLOOD, str(extender.port)]
            flood = stack.enter_context(
                subprocess.Popen(argv, stdout=subprocess.PIPE, env=os.environ | python_environ())
            )
            stack.callback(flood.kill)
            flood.stdout.readline()
        yield


def test_two_floods_of_bodies_with_64_000_names_cost_a_known_client_no_call(extender):
    workers = children(extender.process.pid)
    kept = extender.connection(timeout=PATIENT_S)
    is_answered(kept)
    before = kept.sock.getsockname()
    with floods(extender, 2):
        for _ in range(2 * CALLS):
            is_answered(kept)
    assert (before, workers) == (kept.sock.getsockname(), children(extender.process.pid))
    kept.close()


LARGE = json.dumps({"Pod": {}, "Nodes": None, "NodeNames": ["h1"], "more": "x" * 2_000_000}).encode()


@pytest.mark.parametrize("dripping", [False, True], ids=["one byte and no more", "a byte each 100 ms"])
@pytest.mark.parametrize("count", [4, 32, 100])
@pytest.mark.parametrize("known", [True, False], ids=["known client", "client that comes"])
def test_clients_that_send_a_byte_of_a_large_body_cost_no_other_large_body(extender, count, dripping, known):
    head = POST + b"Content-Length: %d\r\n\r\n" % len(LARGE)
    kept = extender.connection(timeout=PATIENT_S)
    is_answered(kept)
    ended = threading.Event()
    with ExitStack() as stack:
        socks = [connected(extender, stack) for _ in range(count)]
        for sock in socks:
            sock.sendall(head + b"{")

        def drip():
            while not ended.wait(0.1):
                for sock in socks:
                    with suppress(OSError):
                        sock.send(b" ")

        thread = threading.Thread(target=drip if dripping else ended.wait)
        thread.start()
        try:
            for _ in range(3):
                asks = kept if known else extender.connection(timeout=PATIENT_S)
                asks.request("POST", "/filter", LARGE)
                assert checked(asks.getresponse().read()).NodeNames == ["h1"]
        finally:
            ended.set()
            thread.join()
    kept.close()
