"""The listener for Prometheus serves /metrics and nothing else, and a flood there delays no probe of the status API."""

import http.client
import socket
import threading
from contextlib import ExitStack, suppress

import pytest

from tests.scripted.status_api_process import StatusApiProcess
from tools.kit.ports import free_port
from tools.kit.waiting import wait_until

ADDRESS = "127.0.0.2"  # as the host's own address; the status API is on 127.0.0.1
GET = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def status_api(gunicorn, tmp_path_factory):
    folder = tmp_path_factory.mktemp("metrics")
    config = {
        "feed": {"socket": str(folder / "feed" / "socket")},
        "metrics": {"address": "$(HOST_IP)", "port": free_port(ADDRESS)},
    }
    with StatusApiProcess(config, folder, environ={**gunicorn.environ, "HOST_IP": ADDRESS}) as status_api:
        wait_until(lambda: status_api.get("/livez")[0] == 200, "the first answer", timeout_s=20)
        yield status_api
        assert "Traceback" not in status_api.log


def place(status_api):
    return ADDRESS, status_api.settings["metrics"]["port"]


def ask(status_api, method="GET", path="/metrics", **headers):
    connection = http.client.HTTPConnection(*place(status_api), timeout=10)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def raw(status_api, *, sent):
    """All answers to these bytes."""
    with socket.create_connection(place(status_api), timeout=10) as sock:
        sock.sendall(sent)
        sock.shutdown(socket.SHUT_WR)
        received = b""
        while piece := sock.recv(65536):
            received += piece
        return received


def test_it_serves_the_metrics_that_loopback_serves_too(status_api):
    status, body = ask(status_api)
    assert (200, True) == (status, b"readygate_feed_connected" in body)
    assert ask(status_api, "HEAD") == (200, b"")
    assert status_api.get("/metrics")[0] == 200


PATHS = [
    "/", "/livez", "/readyz", "/api/v1/nodes", "/api/v1/gates", "/api/v1/pods/a/b", "/api/v1/history", "/api/v1/impact",
    "/filter", "/preempt", "/prioritize", "/bind", "/metrics/", "//metrics", "/metrics/livez", "/metrics%2f",
    "/metrics/../api/v1/nodes", "/x/../metrics", "/Metrics",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_no_other_path_is_there(status_api, path):
    assert {(404, b'{"Error":"Not Found"}')} == {ask(status_api, method, path) for method in ("GET", "POST", "PUT")}


def test_a_client_that_asks_again_at_once_is_not_refused_for_its_earlier_requests(status_api):
    assert {404} == {ask(status_api, path="/")[0] for _ in range(500)}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_no_other_method_is_there(status_api, method):
    assert 404 == ask(status_api, method)[0]


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Host": "localhost:{port}"}, id="the port of the status API in Host"),
        pytest.param({"Host": "127.0.0.1:{port}"}, id="its address"),
        pytest.param({"X-Forwarded-Port": "{port}", "X-Forwarded-Host": "127.0.0.1"}, id="a proxy's headers"),
        pytest.param({"Script-Name": "/metrics"}, id="another root of the paths"),
        pytest.param({"SCRIPT_NAME": "/api", "SERVER_PORT": "{port}"}, id="variables as headers"),
        pytest.param({"Sec-Readygate": "readygate"}, id="the header of the command line"),
    ],
)
def test_no_header_leads_to_another_path(status_api, headers):
    given = {name: value.format(port=status_api.port) for name, value in headers.items()}
    assert 404 == ask(status_api, path="/api/v1/nodes", **given)[0]
    assert 404 == ask(status_api, path="/livez", **given)[0]


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", id="the next request of a connection"),
        pytest.param(b"GET http://127.0.0.1:9377/livez HTTP/1.1\r\nHost: localhost\r\n\r\n", id="a whole URL"),
    ],
)
def test_a_connection_that_has_read_metrics_reads_nothing_else(status_api, second):
    answers = raw(status_api, sent=GET + second)
    assert (1, 1) == (answers.count(b"HTTP/1.1 200 "), answers.count(b"HTTP/1.1 404 "))


@pytest.mark.parametrize(
    ("host", "expected"), [(ADDRESS, 200), ("localhost", 200), ("127.0.0.1", 200), ("evil.example", 421)]
)
def test_a_page_of_another_name_reads_nothing(status_api, host, expected):
    assert expected == ask(status_api, Host=host)[0]


def scrape(status_api):
    ask(status_api)


def hold(status_api):
    """Forty scrapes that never end."""
    with ExitStack() as stack:
        for _ in range(40):
            sock = stack.enter_context(socket.create_connection(place(status_api), timeout=5))
            sock.sendall(GET[:-2])
        sock.settimeout(1)
        with suppress(TimeoutError):
            sock.recv(1)


def silent(status_api):
    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(socket.create_connection(place(status_api), timeout=5))


def unread(status_api):
    with socket.create_connection(place(status_api), timeout=5) as sock:
        sock.sendall(GET * 50)
        sock.settimeout(1)
        with suppress(TimeoutError):
            sock.recv(1)


def test_no_flood_there_keeps_the_kubelets_probe_or_a_page_from_the_status_api(status_api):
    over = threading.Event()

    def pour(kind):
        while not over.is_set():
            with suppress(OSError, http.client.HTTPException):
                kind(status_api)

    threads = [threading.Thread(target=pour, args=[kind]) for kind in (scrape, scrape, hold, silent, unread)]
    for thread in threads:
        thread.start()
    try:
        answers = [status_api.get("/livez")[0] for _ in range(100)]
        # The kubelet acts on the third failure in a row. On a busy machine, one may be.
        assert [] == [three for three in zip(answers, answers[1:], answers[2:], strict=False) if 200 not in three]
        wait_until(lambda: status_api.get("/api/v1/nodes")[0] == 200, "a page", timeout_s=20)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    wait_until(lambda: ask(status_api)[0] == 200, "a scrape", timeout_s=30)


class SlowScrapes:
    """Eight scrapes that send a byte at a time. A client that was refused or has lost its thread connects again."""

    def __init__(self, status_api):
        self._status_api = status_api
        self._sockets = []

    def send(self):
        for sock in list(self._sockets):
            try:
                sock.send(b"a")
            except OSError:
                sock.close()
                self._sockets.remove(sock)
        while len(self._sockets) < 8:
            self._sockets.append(socket.create_connection(place(self._status_api), timeout=5))
            self._sockets[-1].sendall(GET[:-2] + b"X: ")

    def __enter__(self):
        self.send()
        return self

    def __exit__(self, *_exception):
        for sock in self._sockets:
            sock.close()


def test_scrapes_that_never_end_leave_a_thread_to_the_status_api(status_api):
    """Each of them holds a thread for 15 s. A page of loopback does not wait for that."""

    def refused():
        slow.send()
        return ask(status_api)[0] == 503

    with SlowScrapes(status_api) as slow:
        wait_until(refused, "no other scrape has a place")
        for _ in range(4):
            slow.send()
            connection = http.client.HTTPConnection("127.0.0.1", status_api.port, timeout=10)
            connection.request("GET", "/metrics")
            assert connection.getresponse().status == 200
            connection.close()
        wait_until(lambda: ask(status_api)[0] == 200, "the slow ones have lost their threads")


@pytest.mark.parametrize(
    ("metrics", "environ", "said"),
    [
        pytest.param({"address": "$(HOST_IP)"}, {}, "metrics.address: $(HOST_IP) has no value", id="no variable"),
        pytest.param({"address": "192.0.2.1"}, {}, "change metrics.address or metrics.port", id="no address of ours"),
    ],
)
def test_where_it_cannot_listen_it_does_not_start(tmp_path, metrics, environ, said):
    config = {"feed": {"socket": str(tmp_path / "feed" / "socket")}, "metrics": metrics}
    status_api = StatusApiProcess(config, tmp_path, environ=environ)
    status_api.start()
    status_api.wait(lambda: said in status_api.log)
    status_api.stop()


def test_unless_it_is_configured_nothing_listens_but_loopback(tmp_path):
    with StatusApiProcess({"feed": {"socket": str(tmp_path / "feed" / "socket")}}, tmp_path) as status_api:
        wait_until(lambda: status_api.get("/livez")[0] == 200, "the first answer", timeout_s=20)
        listening = [line for line in status_api.lines if " listening " in line]
    assert (1, True) == (len(listening), 'address="127.0.0.1"' in listening[0])
