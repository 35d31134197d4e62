"""Crowds at kube-scheduler's port with TLS on: they cost what the same crowds cost without it."""

import http.client
import itertools
import os
import signal
import socket
import ssl
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress

import pytest

from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import begin_peak, memory_mib
from tests.scripted.filter_load import FilterLoad
from tests.scripted.test_extender_crowds import CALLS, PEAK_LIMIT_MIB, is_answered
from tests.scripted.tls import make_authority
from tests.scripted.tls_extender import TlsExtender, client_of, listen_section
from tools.fakes.api_server import FakeApiServer
from tools.kit.pid import ProcessId, children

NAMES, SURVIVORS = ["h1", "u1"], ["h1"]
POST = b"POST /filter HTTP/1.1\r\nHost: localhost\r\n"
GET = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return make_authority(tmp_path_factory.mktemp("ours"), clients={"scheduler": "system:kube-scheduler"}).folder


@contextmanager
def running(ours, folder):
    with FakeApiServer() as api:
        for name in NAMES:
            api.put(node_json(name))
            api.put(pod_json(name, Ready=str(name in SURVIVORS)))
        with TlsExtender(api, folder, config={"listen": listen_section(ours)}) as process:
            process.trusted = ours
            process.wait(lambda: process.request("GET", "/readyz")[0] == 200)
            yield process
            assert "Traceback" not in process.log


@pytest.fixture(scope="module")
def process(ours, tmp_path_factory):
    with running(ours, tmp_path_factory.mktemp("extender")) as process:
        yield process


@pytest.fixture
def worker(process):
    (pid,) = children(process.process.pid)
    return pid


class Wire:
    """A client without a certificate whose handshake is done, and that may send what no library would."""

    def __init__(self, process):
        self.sock = socket.create_connection(("127.0.0.1", process.port), timeout=10)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = client_of(process.trusted).wrap_bio(self._incoming, self._outgoing, server_hostname="127.0.0.1")
        while True:
            with suppress(ssl.SSLWantReadError):
                self.tls.do_handshake()
                break
            self.flush()
            self._incoming.write(self.sock.recv(65536))
        self.flush()

    def flush(self):
        self.sock.sendall(self._outgoing.read())

    def say(self, words):
        self.tls.write(words)
        self.flush()

    def say_done(self):
        with suppress(ssl.SSLWantReadError):
            self.tls.unwrap()
        self.flush()


@contextmanager
def crowd(process, count, stall):
    """So many that have shaken hands and done what `stall` does; some may lose their places."""
    with ExitStack() as stack:
        for _ in range(count):
            with suppress(OSError):
                wire = Wire(process)
                stack.enter_context(wire.sock)
                stall(wire)
        yield


STALLS = {
    "nothing more": lambda _: None,
    "half a record": lambda wire: wire.sock.sendall(b"\x17\x03\x03\x40\x00" + b"x" * 1000),
    "half a head": lambda wire: wire.say(POST),
    "half a body": lambda wire: wire.say(POST + b"Content-Length: 5000\r\n\r\n{"),
    "answers that are not read": lambda wire: wire.say(GET * 30),
    "the word that it is done": Wire.say_done,
}


@pytest.mark.parametrize("stall", STALLS.values(), ids=STALLS)
def test_x37_no_crowd_that_stalls_after_a_handshake_costs_a_call(process, ours, stall):
    context = client_of(ours, (ours, "scheduler"))
    kept = http.client.HTTPSConnection("127.0.0.1", process.port, timeout=1, context=context)
    is_answered(kept)
    with crowd(process, 200, stall):
        for _ in range(CALLS):
            is_answered(kept)
            fresh = http.client.HTTPSConnection("127.0.0.1", process.port, timeout=1, context=context)
            is_answered(fresh)
            fresh.close()
    kept.close()


def test_what_comes_after_a_client_has_said_that_it_is_done_is_not_kept(process, worker):
    idle_mib = memory_mib(worker, "VmRSS")
    begin_peak(worker)
    wire = Wire(process)
    with wire.sock, suppress(ConnectionError):
        wire.say_done()
        for _ in range(2 * PEAK_LIMIT_MIB):
            wire.sock.sendall(b"x" * 2**20)
        pytest.fail("it was read to its end")
    assert memory_mib(worker, "VmHWM") - idle_mib <= PEAK_LIMIT_MIB


FLOOD = """
import socket, ssl, sys
from contextlib import ExitStack, suppress

context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
with suppress(ssl.SSLWantReadError):
    context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1").do_handshake()
hello = outgoing.read()  # sent again and again, it costs its sender nothing
print("begun", flush=True)
while True:
    with ExitStack() as stack:
        for _ in range(int(sys.argv[2])):
            with suppress(OSError):
                sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=1)
                stack.enter_context(sock).sendall(hello)
"""


@pytest.mark.parametrize("held", [1, 60], ids=["each gone at once", "sixty held by each"])
def test_a_flood_of_handshakes_costs_a_kept_connection_no_call(process, ours, held):
    context = client_of(ours, (ours, "scheduler"))
    kept = http.client.HTTPSConnection("127.0.0.1", process.port, timeout=1, context=context)
    is_answered(kept)
    before = kept.sock.getsockname()
    # Each in a process of its own, or it would slow the one who asks by their common interpreter.
    argv = [sys.executable, "-c", FLOOD, str(process.port), str(held)]
    with ExitStack() as stack:
        for _ in range(2):
            flood = stack.enter_context(subprocess.Popen(argv, stdout=subprocess.PIPE))
            stack.callback(flood.kill)
            flood.stdout.readline()
        for _ in range(2 * CALLS):
            is_answered(kept)
    assert before == kept.sock.getsockname()
    kept.close()


def half_hello(process):
    """All but the end of the largest hello that is taken, which a client may send without ever ending it."""
    sock = socket.create_connection(("127.0.0.1", process.port), timeout=10)
    rest_bytes = 131_000
    message = b"\x01" + rest_bytes.to_bytes(3, "big") + b"\x03\x03" + b"x" * (rest_bytes - 1000)
    with suppress(OSError):
        for start in range(0, len(message), 16_384):
            piece = message[start : start + 16_384]
            sock.sendall(b"\x16\x03\x01" + len(piece).to_bytes(2, "big") + piece)
    return sock


def test_no_shape_of_tls_takes_more_memory_than_is_allowed(process, worker):
    idle_mib = memory_mib(worker, "VmRSS")
    peaks = {}
    for shape, client in {
        "a hello without its end": half_hello,
        "a record without its end": lambda process: stalled(process, STALLS["half a record"]),
        "answers that are not read": lambda process: stalled(process, lambda wire: wire.say(GET * 30)),
        "a body without its end": lambda process: stalled(
            process, lambda wire: wire.say(POST + b"Content-Length: 1048576\r\n\r\n" + b"x" * 1_000_000)
        ),
    }.items():
        begin_peak(worker)
        with ExitStack() as stack:
            for _ in range(200):
                with suppress(OSError):
                    stack.enter_context(client(process))
            assert 200 == process.request("GET", "/livez")[0]
        peaks[shape] = round(memory_mib(worker, "VmHWM") - idle_mib)
    print(peaks)
    assert {} == {shape: mib for shape, mib in peaks.items() if mib > PEAK_LIMIT_MIB}


def stalled(process, stall):
    wire = Wire(process)
    with suppress(OSError):
        stall(wire)
    return wire.sock


MIXED = 200
STOP_S = 1.0  # the promise; these tests allow a loaded machine four times that
SLACK = 4.0


@contextmanager
def mixed_crowd(process):
    """Of each way to stall alike many."""
    ways = itertools.cycle(STALLS.values())
    with crowd(process, MIXED, lambda wire: next(ways)(wire)):
        yield


def test_a_stop_beside_clients_that_stall_over_tls_takes_a_second(ours, tmp_path):
    with running(ours, tmp_path) as process, mixed_crowd(process):
        workers = children(process.process.pid)
        code, took_s = process.stop()
        assert (0, True, []) == (code, took_s < STOP_S * SLACK, [pid for pid in workers if ProcessId.of(pid)])


def test_a_reload_beside_clients_that_stall_over_tls_costs_no_call(ours, tmp_path):
    context = client_of(ours, (ours, "scheduler"))
    with running(ours, tmp_path) as process, mixed_crowd(process):
        (old,) = children(process.process.pid)
        with FilterLoad(process.port, NAMES, SURVIVORS, tls=context, patience_s=5.0) as load:
            os.kill(process.process.pid, signal.SIGHUP)
            process.wait(lambda: old not in children(process.process.pid), timeout_s=40)
            calls = load.calls
            process.wait(lambda: load.calls > calls + 10, timeout_s=20)
        assert [] == load.failed
