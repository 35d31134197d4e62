"""TLS with client certificates in the loop, over real sockets: who gets what, rotation under load, unkind clients."""

import http.client
import os
import shutil
import signal
import socket
import ssl
import time
from contextlib import ExitStack, suppress

import pytest

from extender.serve import limits
from extender.serve.loop import LOOK_S
from tests.extender.builders import node_json, pod_json
from tests.scripted.filter_load import FilterLoad
from tests.scripted.tls import make_authority
from tests.scripted.tls_extender import TlsExtender, client_of, listen_section
from tools.fakes.api_server import FakeApiServer
from tools.kit.pid import children

NAMES, SURVIVORS = ["h1", "u1"], ["h1"]
SLACK_S = 2.0  # for a loaded machine
POD = b'{"Pod":{"metadata":{"name":"a","namespace":"b"}},"NodeNames":["h1","u1"]}'


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return make_authority(tmp_path_factory.mktemp("ours"), clients={"scheduler": "system:kube-scheduler"}).folder


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    return make_authority(tmp_path_factory.mktemp("theirs"), clients={"scheduler": "system:kube-scheduler"}).folder


@pytest.fixture(scope="module")
def disk(ours, gunicorn, tmp_path_factory):
    """Of each line of gunicorn its own: the files are changed."""
    folder = tmp_path_factory.mktemp(gunicorn.line)
    shutil.copytree(ours, folder, dirs_exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def process(disk, ours, gunicorn, tmp_path_factory):
    with FakeApiServer() as api:
        for name in NAMES:
            api.put(node_json(name))
            api.put(pod_json(name, Ready=str(name in SURVIVORS)))
        config = {"listen": listen_section(disk)}
        folder = tmp_path_factory.mktemp("extender")
        with TlsExtender(api, folder, config=config, environ=gunicorn.environ) as process:
            process.trusted = ours
            process.wait(lambda: asked(process, client_of(ours), "GET", "/readyz") == 200)
            yield process
            assert "Traceback" not in process.log


def asked(process, context, method="POST", path="/filter"):
    """The status, or what ended the connection."""
    connection = http.client.HTTPSConnection("127.0.0.1", process.port, timeout=5, context=context)
    try:
        connection.request(method, path, POD if method == "POST" else None)
        return connection.getresponse().status
    except ssl.SSLCertVerificationError:
        return "not trusted"
    except OSError:  # the alert, or the end of the connection, whichever comes first
        return "refused"
    finally:
        connection.close()


def test_x57_what_a_client_gets_by_its_certificate(process, ours, theirs):
    clients = {
        "the scheduler's": (ours, "scheduler"),
        "another name's": (ours, "client"),
        "none": None,
    }
    paths = [("POST", "/filter"), ("GET", "/livez"), ("GET", "/readyz")]
    assert {"the scheduler's": [200, 200, 200], "another name's": [403, 200, 200], "none": [403, 200, 200]} == {
        who: [asked(process, client_of(ours, certificate), *path) for path in paths]
        for who, certificate in clients.items()
    }
    assert ["refused", "refused"] == [
        asked(process, client_of(ours, certificate)) for certificate in [(theirs, "scheduler"), (ours, "expired")]
    ]


def test_large_bodies_of_clients_without_a_certificate_are_refused_at_their_heads_and_cost_no_other(process, ours):
    head = b"POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8000000\r\n\r\n"
    body = b'{"Pod":{},"NodeNames":["h1"],"more":"%b"}' % (b"x" * 2_000_000)
    with ExitStack() as stack:
        for _ in range(32):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", process.port), timeout=10))
            strange = stack.enter_context(client_of(ours).wrap_socket(sock, server_hostname="127.0.0.1"))
            strange.sendall(head)
            answer = b"".join(iter(lambda: strange.recv(1000), b""))  # noqa: B023 - called at once
            assert (b" 403 ", True) == (answer[8:13], answer.endswith(b'"no body without a client certificate"}'))
            with suppress(OSError):
                strange.sendall(b"x" * 100_000)
        context = client_of(ours, (ours, "scheduler"))
        kept = http.client.HTTPSConnection("127.0.0.1", process.port, timeout=5, context=context)
        kept.request("POST", "/filter", body)
        assert 200 == kept.getresponse().status
        kept.close()


def test_a_client_that_trusts_another_ca_does_not_talk_to_us(process, theirs):
    assert "not trusted" == asked(process, client_of(theirs))


def test_plain_http_gets_no_answer(process):
    assert b"HTTP" not in process.raw(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert 200 == asked(process, client_of(process.trusted), "GET", "/livez")


HELLO = bytes.fromhex("16030100c8010000c40303")  # the first bytes of 205


def test_half_handshakes_hold_nobody_up(process, ours):
    silent = [socket.create_connection(("127.0.0.1", process.port)) for _ in range(100)]
    try:
        for sock in silent[::2]:
            sock.sendall(HELLO)
        context = client_of(ours, (ours, "scheduler"))
        with FilterLoad(process.port, NAMES, SURVIVORS, tls=context, patience_s=5.0) as load:
            process.wait(lambda: load.calls > 60, timeout_s=30)
    finally:
        for sock in silent:
            sock.close()
    assert [] == load.failed


def ended(sock):
    try:
        return sock.recv(1, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_half_handshakes_are_cut_at_their_deadline_however_their_bytes_drip(process):
    began, ends = time.monotonic(), {}
    with ExitStack() as stack:
        address = ("127.0.0.1", process.port)
        silent, half, drips = [stack.enter_context(socket.create_connection(address)) for _ in range(3)]
        for sock in (half, drips):
            sock.sendall(HELLO)
        while len(ends) < 3 and time.monotonic() - began < 4 * limits.HEAD_LIMIT_S:
            time.sleep(0.2)
            with suppress(ConnectionError):
                drips.send(b"x")
            for sock in {silent, half, drips} - ends.keys():
                if ended(sock):
                    ends[sock] = time.monotonic() - began
    assert [3, True] == [len(ends), min(ends.values(), default=0) >= limits.HEAD_LIMIT_S]
    assert max(ends.values()) < limits.HEAD_LIMIT_S + LOOK_S + SLACK_S


def test_x57_a_new_certificate_and_a_new_client_ca_without_a_restart(process, disk, ours, theirs):
    """A kept connection goes on. Between two files the pair of before is served."""
    loaded = process.log.count("TLS certificates loaded again")
    kept = http.client.HTTPSConnection("127.0.0.1", process.port, context=client_of(ours, (ours, "scheduler")))
    assert 200 == status_on(kept)
    shutil.copy(theirs / "server.crt", disk / "server.crt")
    process.wait(lambda: "keeping the previous TLS certificates" in process.log, timeout_s=15)
    assert 200 == asked(process, client_of(ours, (ours, "scheduler")))
    for name in ("server.key", "ca.crt"):
        shutil.copy(theirs / name, disk / name)
    process.wait(lambda: process.log.count("TLS certificates loaded again") > loaded, timeout_s=15)
    process.trusted = theirs
    assert 200 == status_on(kept)
    assert [200, "refused"] == [
        asked(process, client_of(theirs, certificate)) for certificate in [(theirs, "scheduler"), (ours, "scheduler")]
    ]


def status_on(connection):
    connection.request("POST", "/filter", POD)
    response = connection.getresponse()
    response.read()
    return response.status


def test_files_that_cannot_be_used_leave_the_old_worker_at_a_reload(process):
    before = process.settings["listen"]
    process.settings["listen"] = before | {"tls": before["tls"] | {"key": "/nowhere"}}
    process.write()
    os.kill(process.process.pid, signal.SIGHUP)
    process.wait(lambda: "reload rejected" in process.log)
    assert "listen.tls.certificate: cannot use" in process.log
    assert 200 == asked(process, client_of(process.trusted), "GET", "/readyz")


def test_files_that_cannot_be_used_when_a_worker_dies_leave_those_of_before_to_the_next_one(process, disk):
    """Those that were renewed meanwhile: the master looks at them as often as the worker, whose looks show."""
    for _ in range(2):
        told = process.log.count("TLS handshakes refused")
        with socket.create_connection(("127.0.0.1", process.port)) as client:
            client.sendall(b"GET /readyz HTTP/1.1\r\n\r\n")
        process.wait(lambda told=told: process.log.count("TLS handshakes refused") > told, timeout_s=15)
    (worker,) = children(process.process.pid)
    (disk / "server.key").write_text("half of a ke")
    os.kill(worker, signal.SIGKILL)
    process.wait(lambda: worker not in children(process.process.pid), timeout_s=15)
    process.wait(lambda: asked(process, client_of(process.trusted), "GET", "/readyz") == 200, timeout_s=20)
    assert 2 == process.log.count('reflector started reflector="nodes"')
