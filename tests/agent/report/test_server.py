"""The health server over real sockets."""

import errno
import http.client
import selectors
import socket
import time

import pytest

from agent.report import server
from agent.report.metrics import Family, metrics_page
from agent.report.server import FROZEN_S, THAW_S, HealthServer, Page, livez_page
from component.lifecycle import StartFailed
from tools.kit.clock import Clock


@pytest.fixture
def running():
    def broken() -> Page:
        raise RuntimeError("no page")

    pages = {"/readyz": lambda: Page(503, "cni: failed\n"), "/livez": lambda: Page(200, "ok\n"), "/broken": broken}
    made = HealthServer("127.0.0.1", 0, pages)
    made.start()
    yield made
    made.stop()
    made.stop()


def ask(running: HealthServer, path: str, method: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=5)
    connection.request(method, path)
    response = connection.getresponse()
    found = response.status, response.read().decode()
    connection.close()
    return found


@pytest.mark.parametrize(
    ("path", "method", "expected"),
    [
        pytest.param("/readyz", "GET", (503, "cni: failed\n"), id="a page"),
        pytest.param("/livez?verbose", "GET", (200, "ok\n"), id="a query is ignored"),
        pytest.param("/readyz", "HEAD", (503, ""), id="HEAD has no body"),
        pytest.param("/broken", "GET", (500, "internal error\n"), id="a page that breaks"),
        pytest.param("/none", "GET", (404, "not found; there are /broken, /livez, /readyz\n"), id="no such page"),
        pytest.param("/livez", "POST", (405, "only GET and HEAD\n"), id="another method"),
    ],
)
def test_pages(running: HealthServer, path: str, method: str, expected: tuple[int, str]) -> None:
    assert expected == ask(running, path, method)


def test_slow_and_many_clients_do_not_keep_others_out(running: HealthServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REQUEST_LIMIT_S", 0.3)
    clients = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(server.CONNECTION_LIMIT + 4)]
    for client in clients:
        client.sendall(b"GET /liv")
    time.sleep(0.5)
    assert (200, "ok\n") == ask(running, "/livez")
    for client in clients:
        client.close()


@pytest.mark.parametrize("data", [b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"G" * 70_000 + b"\r\n\r\n", b""])
def test_nonsense_does_no_harm(running: HealthServer, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", running.port)) as client:
        client.sendall(data)
    assert (200, "ok\n") == ask(running, "/livez")
    assert running.healthy(0.0)


def test_a_taken_port_is_one_line(running: HealthServer) -> None:
    with pytest.raises(StartFailed) as caught:
        HealthServer("127.0.0.1", running.port, {}).start()
    where = f"127.0.0.1:{running.port}"
    assert str(caught.value).startswith(f"cannot listen on {where}: the address is in use; stop the other process")


def test_an_address_of_another_host() -> None:
    with pytest.raises(StartFailed, match="this host does not have that address"):
        HealthServer("192.0.2.1", 0, {}).start()


@pytest.mark.parametrize("address", ["a..b", "ä..b"])
def test_an_address_that_is_no_name(address: str) -> None:
    with pytest.raises(StartFailed, match=r"cannot listen on .*; correct listen\.address"):
        HealthServer(address, 0, {}).start()


def test_who_has_the_most_connections_loses_the_oldest() -> None:
    def client(source: str) -> object:
        return server._Client(socket.socket(), source, 0.0)

    one, two, three, stranger = client("10.0.0.7"), client("10.0.0.1"), client("10.0.0.7"), client("10.0.0.9")
    assert server.who_goes([two, one, three, stranger]) is one


def test_one_stranger_with_many_connections_keeps_nobody_else_out(
    running: HealthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "CONNECTION_LIMIT", 8)
    probe = socket.create_connection(("127.0.0.1", running.port), source_address=("127.0.0.2", 0))
    stalled = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(64)]
    assert (200, "ok\n") == ask(running, "/livez")
    probe.sendall(b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")  # the only one of its address: it was not cut off
    assert probe.recv(100).startswith(b"HTTP/1.1 503 ")
    for client in (*stalled, probe):
        client.close()


def test_out_of_descriptors_it_neither_spins_nor_stays_deaf(running: HealthServer) -> None:
    refusals: list[float] = []

    class NoDescriptor:
        """The listener while the process has none left."""

        def __init__(self, listener: socket.socket) -> None:
            self.listener = listener

        def fileno(self) -> int:
            return self.listener.fileno()

        def close(self) -> None:
            self.listener.close()

        def accept(self) -> object:
            if len(refusals) < 3:
                refusals.append(time.monotonic())
                raise OSError(errno.EMFILE, "Too many open files")
            return self.listener.accept()

    listener = running._listener
    running._selector.unregister(listener)
    running._listener = NoDescriptor(listener)
    running._selector.register(running._listener, selectors.EVENT_READ)
    running._unblock()
    assert (200, "ok\n") == ask(running, "/livez")
    assert refusals[2] - refusals[0] >= server.NO_DESCRIPTOR_PAUSE_S


def test_every_address_is_of_both_families() -> None:
    made = HealthServer("::", 0, {"/livez": lambda: Page(200, "ok\n")})
    made.start()
    assert (200, "ok\n") == ask(made, "/livez")
    if _has_ipv6():
        with socket.create_connection(("::1", made.port), timeout=5) as client:
            client.sendall(b"GET /livez HTTP/1.1\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 200 ")
    made.stop()


def _has_ipv6() -> bool:
    """Asked of the machine, not of the server: a refusal there is no lack of addresses."""
    with socket.socket(socket.AF_INET6) as any_port:
        try:
            any_port.bind(("::1", 0))
        except OSError:
            return False
    return True


def test_without_ipv6_every_address_is_every_ipv4_address(monkeypatch: pytest.MonkeyPatch) -> None:
    real = server._bound

    def without(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return real(family, address, port)

    monkeypatch.setattr(server, "_bound", without)
    made = HealthServer("::", 0, {"/livez": lambda: Page(200, "ok\n")})
    made.start()
    assert (200, "ok\n") == ask(made, "/livez")
    made.stop()


def test_a_page_larger_than_the_buffers_comes_whole() -> None:
    made = HealthServer("127.0.0.1", 0, {"/metrics": lambda: Page(200, "x" * 5_000_000)})
    made.start()
    assert (200, "x" * 5_000_000) == ask(made, "/metrics")
    made.stop()


def test_frozen_for_seconds_it_lets_the_checks_look_again_before_it_answers() -> None:
    slept: list[float] = []
    frozen = Clock()
    pages = {"/readyz": lambda: Page(200, f"after {len(slept)} pauses\n")}
    made = HealthServer("127.0.0.1", 0, pages, monotonic=lambda: time.monotonic() + frozen.time, sleep=slept.append)
    made.start()
    try:
        for frozen_s, pauses in ((0.0, 0), (0.5, 0), (FROZEN_S + 0.5, 1), (0.5, 1)):
            frozen.time += frozen_s
            assert (200, f"after {pauses} pauses\n") == ask(made, "/readyz")
    finally:
        made.stop()
    assert [THAW_S] == slept


def test_livez_names_what_stands_still() -> None:
    class Stuck:
        name = "checks"

        def start(self) -> None: ...

        def stop(self) -> None: ...

        def healthy(self, now: float) -> bool:
            return now < 5

    assert Page(200, "ok\n") == livez_page([Stuck()], 1.0)
    assert Page(503, "checks: does not progress\n") == livez_page([Stuck()], 9.0)


def test_metrics_text() -> None:
    page = metrics_page([Family("up", "gauge", "Is it.", [({"a": 'q"\\\n'}, 1.0), ({}, 0.5)])])
    assert page.body == '# HELP up Is it.\n# TYPE up gauge\nup{a="q\\"\\\\\\n"} 1\nup 0.5\n'


def test_a_page_may_depend_on_the_request() -> None:
    """As what other agents ask, which fills a packet of up to 9,000 bytes."""
    made = HealthServer("127.0.0.1", 0, {}, answers={"/peer": lambda request: Page(200, f"{len(request)}\n")})
    made.start()
    with socket.create_connection(("127.0.0.1", made.port), timeout=5) as client:
        request = b"GET /peer HTTP/1.1\r\nX: " + b"x" * 9_000 + b"\r\n\r\n"
        client.sendall(request)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    made.stop()
    assert answer.endswith(b"\r\n\r\n%d\n" % len(request))
