"""Before a call can be sent: a name, a connection, a handshake, each of which may hang, and none may hold us."""

import socket
import ssl
import threading
import time
from dataclasses import replace

import pytest

from kube import addresses, errors, paths, transport
from kube.auth import Connection
from kube.client import Client
from tests.scripted.following import node
from tests.scripted.tls import make_authority
from tools.fakes.anonymous import Anonymous
from tools.fakes.api_server import FakeApiServer
from tools.kit.waiting import wait_until

TCP_CLOSE = 7  # a state of tcp(7): the peer has reset the connection


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return make_authority(tmp_path_factory.mktemp("pki"))


class SlowHandshake:
    """A server's TLS that keeps each client waiting first."""

    def __init__(self, context, pause_s: float) -> None:
        self._context = context
        self._pause_s = pause_s

    def wrap_socket(self, connection, **options):
        time.sleep(self._pause_s)
        return self._context.wrap_socket(connection, **options)


@pytest.fixture
def slow(authority):
    """An API server whose handshake takes 1.5 s, and a client for it."""
    with FakeApiServer(tls=SlowHandshake(authority.server_context(), 1.5)) as api:
        api.put(node("n"))
        connection = replace(api.connection(), ssl_context=authority.client_context())
        client = Client(connection, user_agent="t")
        yield api, client
        client.close()


def test_the_handshake_has_a_time_of_its_own_where_the_caller_grants_it(slow):
    api, client = slow
    client.patch(paths.node("n"), b"{}", deadline_s=1.0, connect_s=20.0)
    client.patch(paths.node("n"), b"{}", deadline_s=1.0)
    assert (len(api.requests), len(api._connections)) == (2, 1)


def test_without_it_the_deadline_is_for_all_of_the_call(slow):
    api, client = slow
    with pytest.raises(errors.DeadlineExceeded):
        client.patch(paths.node("n"), b"{}", deadline_s=0.2)
    assert api.requests == []


def test_an_answer_that_does_not_come_ends_at_the_deadline_whatever_connecting_was_granted(slow):
    api, client = slow
    api.stall_next()
    began = time.monotonic()
    with pytest.raises(errors.DeadlineExceeded):
        client.patch(paths.node("n"), b"{}", deadline_s=0.2, connect_s=30.0)
    assert (len(api.requests), time.monotonic() - began < 20.0) == (1, True)


def test_a_handshake_that_never_ends_is_given_up_after_the_time_for_connecting(authority):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"https://127.0.0.1:{silent.getsockname()[1]}"
        client = Client(Connection(server, authority.client_context(), Anonymous()), user_agent="t")
        began = time.monotonic()
        with pytest.raises(errors.DeadlineExceeded):
            client.patch(paths.node("n"), b"{}", deadline_s=60.0, connect_s=0.3)
        client.close()
    assert time.monotonic() - began < 30.0


class NameServer:
    """getaddrinfo that answers while `answers` is set."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.asked = 0
        self._real = socket.getaddrinfo

    def __call__(self, _, port, *, flags=0, **options):
        if not flags:
            self.asked += 1
            self.answers.wait(10)
        return self._real("127.0.0.1", port, flags=flags, **options)


@pytest.fixture
def name_server(monkeypatch):
    server = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", server)
    yield server
    server.answers.set()


@pytest.fixture
def named():
    """An API server, and a client that knows it by name."""
    with FakeApiServer() as api:
        api.put(node("n"))
        client = Client(replace(api.connection(), server=api.url.replace("127.0.0.1", "api.test")), user_agent="t")
        yield api, client
        client.close()


def test_a_name_server_without_an_answer_does_not_outlast_the_deadline_and_keeps_one_thread(name_server, named):
    _, client = named
    for _ in range(3):
        with pytest.raises(errors.DeadlineExceeded):
            client.get(paths.node("n"), deadline_s=0.1)
    assert name_server.asked == 1


def test_a_late_answer_of_the_name_server_is_used(name_server, named):
    api, client = named
    with pytest.raises(errors.DeadlineExceeded):
        client.get(paths.node("n"), deadline_s=0.1)
    name_server.answers.set()
    client.get(paths.node("n"))
    assert len(api.requests) == 1


def test_while_no_name_server_answers_the_last_address_is_good_enough(name_server, named, monkeypatch):
    monkeypatch.setattr(addresses, "PATIENCE_S", 0.05)
    api, client = named
    name_server.answers.set()
    client.get(paths.node("n"))
    name_server.answers.clear()
    api.cut_connections()
    client.get(paths.node("n"))
    assert (len(api.requests), name_server.asked) == (2, 2)


def test_a_name_that_does_not_exist_is_told(named, monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    _, client = named
    with pytest.raises(errors.Unreachable, match="Name or service not known"):
        client.get(paths.node("n"))


def test_close_unblocks_who_waits_for_a_name(name_server, named):
    _, client = named
    caught: list[errors.KubeError] = []

    def call() -> None:
        try:
            client.get(paths.node("n"), deadline_s=30)
        except errors.KubeError as e:
            caught.append(e)

    thread = threading.Thread(target=call)
    thread.start()
    wait_until(lambda: name_server.asked, "the name server was asked")
    client.close()
    thread.join(20)
    assert [e.reason for e in caught] == ["Closed"]


def test_an_address_that_leads_nowhere_leaves_time_for_the_next(monkeypatch):
    with FakeApiServer() as api, socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(3)]
        for other in waiting:
            other.setblocking(False)
            other.connect_ex(full.getsockname())
        tcp = (socket.AF_INET, socket.SOCK_STREAM, 0, "")
        found = [(*tcp, full.getsockname()), (*tcp, ("127.0.0.1", api._port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        client = Client(replace(api.connection(), server="http://api.test"), user_agent="t")
        client.get(paths.nodes(), deadline_s=3.0)
        client.close()
        for other in waiting:
            other.close()
        assert len(api.requests) == 1


def test_a_server_that_has_closed_before_the_request_is_written_has_said_why(authority, tmp_path, monkeypatch):
    """With TLS 1.3 the client's handshake is complete before the server refuses its certificate."""
    with FakeApiServer(tls=make_authority(tmp_path).server_context(ask_for_client=True)) as api:
        context = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        context.load_cert_chain(authority.folder / "client.crt", authority.folder / "client.key")
        connect = transport._TimedTLS.connect

        def connect_and_be_late(self):
            connect(self)
            wait_until(lambda: self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == TCP_CLOSE, "closed")

        monkeypatch.setattr(transport._TimedTLS, "connect", connect_and_be_late)
        client = Client(replace(api.connection(), ssl_context=context), user_agent="t")
        with pytest.raises(errors.Unreachable, match="the server refuses the client certificate"):
            client.patch(paths.node("n"), b"{}", deadline_s=30.0)
        client.close()
