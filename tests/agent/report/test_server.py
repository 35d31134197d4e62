"""The health server over real sockets."""

import http.client
import socket
import threading
import time

import pytest

from agent.report import server
from agent.report.metrics import Family, metrics_page
from agent.report.server import HealthServer, Page, livez_page
from component.lifecycle import StartFailed


@pytest.fixture
def running():
    release = threading.Event()

    def wait() -> Page:
        release.wait(5)
        return Page(200, "late\n")

    def broken() -> Page:
        raise RuntimeError("no page")

    pages = {"/readyz": lambda: Page(503, "cni: failed\n"), "/livez": lambda: Page(200, "ok\n"), "/broken": broken}
    made = HealthServer("127.0.0.1", 0, {**pages, "/wait": wait})
    made.start()
    yield made
    release.set()
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
        pytest.param(
            "/none", "GET", (404, "not found; there are /broken, /livez, /readyz, /wait\n"), id="no such page"
        ),
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


def test_a_connection_that_got_no_thread_gives_its_place_back(
    running: HealthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoThread:
        def __init__(self, *_arguments: object) -> None:
            self.daemon = False

        def start(self) -> None:
            raise RuntimeError("can't start new thread")

        def cancel(self) -> None: ...

    with monkeypatch.context() as broken:
        broken.setattr(server.threading, "Timer", NoThread)
        for _ in range(server.CONNECTION_LIMIT + 1):
            with pytest.raises((OSError, http.client.HTTPException)):
                ask(running, "/livez")
    assert (200, "ok\n") == ask(running, "/livez")


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
