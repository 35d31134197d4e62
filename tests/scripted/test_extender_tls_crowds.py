"""Crowds at kube-scheduler's port with TLS on: they cost what the same crowds cost without it."""

import http.client
import socket
import ssl
from contextlib import ExitStack, contextmanager, suppress

import pytest

from tests.extender.builders import node_json, pod_json
from tests.fakes.api_server import FakeApiServer
from tests.kit.pid import children
from tests.scripted.extender_process import begin_peak, memory_mib
from tests.scripted.test_extender_crowds import CALLS, PEAK_LIMIT_MIB, is_answered
from tests.scripted.tls import make_authority
from tests.scripted.tls_extender import TlsExtender, client_of, listen_section

NAMES, SURVIVORS = ["h1", "u1"], ["h1"]
POST = b"POST /filter HTTP/1.1\r\nHost: localhost\r\n"
GET = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return make_authority(tmp_path_factory.mktemp("ours"), clients={"scheduler": "system:kube-scheduler"}).folder


@pytest.fixture(scope="module")
def process(ours, tmp_path_factory):
    with FakeApiServer() as api:
        for name in NAMES:
            api.put(node_json(name))
            api.put(pod_json(name, Ready=str(name in SURVIVORS)))
        config = {"listen": listen_section(ours)}
        with TlsExtender(api, tmp_path_factory.mktemp("extender"), config=config) as process:
            process.trusted = ours
            process.wait(lambda: process.request("GET", "/readyz")[0] == 200)
            yield process
            assert "Traceback" not in process.log


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
