"""The listener for Prometheus serves /metrics and nothing else, and a flood there delays no probe of the status API."""

import http.client
import socket
import threading
from contextlib import ExitStack, suppress

import pytest

from tests.scripted.people_process import PeopleProcess
from tools.kit.ports import free_port
from tools.kit.waiting import wait_until

ADDRESS = "127.0.0.2"  # as the host's own address; the status API is on 127.0.0.1
GET = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def people(gunicorn, tmp_path_factory):
    folder = tmp_path_factory.mktemp("metrics")
    config = {
        "feed": {"socket": str(folder / "feed" / "socket")},
        "metrics": {"address": "$(HOST_IP)", "port": free_port(ADDRESS)},
    }
    with PeopleProcess(config, folder, environ={**gunicorn.environ, "HOST_IP": ADDRESS}) as people:
        wait_until(lambda: people.get("/livez")[0] == 200, "the first answer", timeout_s=20)
        yield people
        assert "Traceback" not in people.log


def place(people):
    return ADDRESS, people.settings["metrics"]["port"]


def ask(people, method="GET", path="/metrics", **headers):
    connection = http.client.HTTPConnection(*place(people), timeout=10)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def raw(people, *, sent):
    """All answers to these bytes."""
    with socket.create_connection(place(people), timeout=10) as sock:
        sock.sendall(sent)
        sock.shutdown(socket.SHUT_WR)
        received = b""
        while piece := sock.recv(65536):
            received += piece
        return received


def test_it_serves_the_metrics_that_loopback_serves_too(people):
    status, body = ask(people)
    assert (200, True) == (status, b"readygate_feed_connected" in body)
    assert ask(people, "HEAD") == (200, b"")
    assert people.get("/metrics")[0] == 200


PATHS = [
    "/", "/livez", "/readyz", "/api/v1/nodes", "/api/v1/gates", "/api/v1/pods/a/b", "/api/v1/history", "/api/v1/impact",
    "/filter", "/preempt", "/prioritize", "/bind", "/metrics/", "//metrics", "/metrics/livez", "/metrics%2f",
    "/metrics/../api/v1/nodes", "/x/../metrics", "/Metrics",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_no_other_path_is_there(people, path):
    assert {(404, b'{"Error":"Not Found"}')} == {ask(people, method, path) for method in ("GET", "POST", "PUT")}


def test_a_client_that_asks_again_at_once_is_not_refused_for_its_earlier_requests(people):
    assert {404} == {ask(people, path="/")[0] for _ in range(500)}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_no_other_method_is_there(people, method):
    assert 404 == ask(people, method)[0]


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
def test_no_header_leads_to_another_path(people, headers):
    given = {name: value.format(port=people.port) for name, value in headers.items()}
    assert 404 == ask(people, path="/api/v1/nodes", **given)[0]
    assert 404 == ask(people, path="/livez", **given)[0]


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", id="the next request of a connection"),
        pytest.param(b"GET http://127.0.0.1:9377/livez HTTP/1.1\r\nHost: localhost\r\n\r\n", id="a whole URL"),
    ],
)
def test_a_connection_that_has_read_metrics_reads_nothing_else(people, second):
    answers = raw(people, sent=GET + second)
    assert (1, 1) == (answers.count(b"HTTP/1.1 200 "), answers.count(b"HTTP/1.1 404 "))


@pytest.mark.parametrize(
    ("host", "expected"), [(ADDRESS, 200), ("localhost", 200), ("127.0.0.1", 200), ("evil.example", 421)]
)
def test_a_page_of_another_name_reads_nothing(people, host, expected):
    assert expected == ask(people, Host=host)[0]


def scrape(people):
    ask(people)


def hold(people):
    """Forty scrapes that never end."""
    with ExitStack() as stack:
        for _ in range(40):
            sock = stack.enter_context(socket.create_connection(place(people), timeout=5))
            sock.sendall(GET[:-2])
        sock.settimeout(1)
        with suppress(TimeoutError):
            sock.recv(1)


def silent(people):
    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(socket.create_connection(place(people), timeout=5))


def unread(people):
    with socket.create_connection(place(people), timeout=5) as sock:
        sock.sendall(GET * 50)
        sock.settimeout(1)
        with suppress(TimeoutError):
            sock.recv(1)


def test_no_flood_there_keeps_the_kubelets_probe_or_a_page_from_the_status_api(people):
    over = threading.Event()

    def pour(kind):
        while not over.is_set():
            with suppress(OSError, http.client.HTTPException):
                kind(people)

    threads = [threading.Thread(target=pour, args=[kind]) for kind in (scrape, scrape, hold, silent, unread)]
    for thread in threads:
        thread.start()
    try:
        answers = [people.get("/livez")[0] for _ in range(100)]
        # The kubelet acts on the third failure in a row. On a busy machine, one may be.
        assert [] == [three for three in zip(answers, answers[1:], answers[2:], strict=False) if 200 not in three]
        wait_until(lambda: people.get("/api/v1/nodes")[0] == 200, "a page", timeout_s=20)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    wait_until(lambda: ask(people)[0] == 200, "a scrape", timeout_s=30)


class SlowScrapes:
    """Eight scrapes that send a byte at a time. A client that was refused or has lost its thread connects again."""

    def __init__(self, people):
        self._people = people
        self._sockets = []

    def send(self):
        for sock in list(self._sockets):
            try:
                sock.send(b"a")
            except OSError:
                sock.close()
                self._sockets.remove(sock)
        while len(self._sockets) < 8:
            self._sockets.append(socket.create_connection(place(self._people), timeout=5))
            self._sockets[-1].sendall(GET[:-2] + b"X: ")

    def __enter__(self):
        self.send()
        return self

    def __exit__(self, *_exception):
        for sock in self._sockets:
            sock.close()


def test_scrapes_that_never_end_leave_a_thread_to_the_status_api(people):
    """Each of them holds a thread for 15 s. A page of loopback does not wait for that."""

    def refused():
        slow.send()
        return ask(people)[0] == 503

    with SlowScrapes(people) as slow:
        wait_until(refused, "no other scrape has a place")
        for _ in range(4):
            slow.send()
            connection = http.client.HTTPConnection("127.0.0.1", people.port, timeout=10)
            connection.request("GET", "/metrics")
            assert connection.getresponse().status == 200
            connection.close()
        wait_until(lambda: ask(people)[0] == 200, "the slow ones have lost their threads")


@pytest.mark.parametrize(
    ("metrics", "environ", "said"),
    [
        pytest.param({"address": "$(HOST_IP)"}, {}, "metrics.address: $(HOST_IP) has no value", id="no variable"),
        pytest.param({"address": "192.0.2.1"}, {}, "change metrics.address or metrics.port", id="no address of ours"),
    ],
)
def test_where_it_cannot_listen_it_does_not_start(tmp_path, metrics, environ, said):
    config = {"feed": {"socket": str(tmp_path / "feed" / "socket")}, "metrics": metrics}
    people = PeopleProcess(config, tmp_path, environ=environ)
    people.start()
    people.wait(lambda: said in people.log)
    people.stop()


def test_unless_it_is_configured_nothing_listens_but_loopback(tmp_path):
    with PeopleProcess({"feed": {"socket": str(tmp_path / "feed" / "socket")}}, tmp_path) as people:
        wait_until(lambda: people.get("/livez")[0] == 200, "the first answer", timeout_s=20)
        listening = [line for line in people.lines if " listening " in line]
    assert (1, True) == (len(listening), 'address="127.0.0.1"' in listening[0])
