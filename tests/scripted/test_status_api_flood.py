"""A flood at the port of the status API delays and fails no call of kube-scheduler.

The ratio allowed here is no goal: it is what a busy machine cannot hide. The goal, a tenth more beside four readers, is
the benchmark's: `python -m tools.bench --only status-api` marks `status_api_4_filter_p99_ratio` as missed above 1.1.
"""

import http.client
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress

import pytest

from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tests.scripted.pace import best_p99_ratio, calls
from tests.scripted.status_api_process import StatusApiProcess
from tools.fakes.api_server import FakeApiServer
from tools.kit.waiting import wait_until

NODES = [f"n{number:03}" for number in range(300)]
HEAD = b"GET /api/v1/nodes HTTP/1.1\r\nHost: localhost\r\n"
ALLOWED = 3.0  # p99 beside the flood to p99 without; what takes turns with pages takes ten times as long and more


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flood")
    with FakeApiServer() as api:
        for name in NODES:
            api.put(node_json(name, Ready="True"))
            api.put(pod_json(name))
        with (
            ExtenderProcess(api, folder, config={"heartbeat": {"limitSeconds": 0}}) as extender,
            StatusApiProcess(extender.settings, folder, status_api={"port": 0}) as status_api,
        ):
            status_api.wait_follows()
            yield extender, status_api


def ask(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", "/api/v1/nodes")
    connection.getresponse().read()
    connection.close()


def silent(port):
    with ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
        time.sleep(0.2)


def half(port):
    with ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5)).sendall(HEAD)
        time.sleep(0.2)


def unread(port):
    with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
        sock.sendall((HEAD + b"\r\n") * 20)
        time.sleep(0.2)


def rubbish(port):
    with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
        sock.sendall(b"\x16\x03\x01" + bytes(range(256)) * 100)
        sock.recv(100)


def large(port):
    with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
        sock.sendall(b"POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8000000\r\n\r\n")
        for _ in range(80):
            sock.sendall(b" " * 100_000)


@contextmanager
def flood(port, *kinds):
    """Each kind in a thread of its own, without a pause but for those that have one."""
    over = threading.Event()

    def pour(kind):
        while not over.is_set():
            with suppress(OSError, http.client.HTTPException):
                kind(port)
            time.sleep(0.01)  # two cores: what the clients themselves burn is no fault of who answers

    threads = [threading.Thread(target=pour, args=[kind]) for kind in kinds]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def test_a_flood_at_the_port_of_the_status_api_costs_kube_scheduler_no_call(both):
    extender, status_api = both

    @contextmanager
    def flooded():
        with flood(status_api.port, ask, ask, silent, half, unread, rubbish, large):
            time.sleep(0.3)
            yield

    assert best_p99_ratio(lambda: calls(extender, NODES), flooded, ALLOWED) <= ALLOWED
    wait_until(lambda: status_api.get("/livez")[0] == 200, "the status API answers again", timeout_s=30)
    assert status_api.get("/readyz")[0] == 200
    assert "Traceback" not in status_api.log
