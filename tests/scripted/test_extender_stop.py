"""The end of an extender, whatever its clients do: refused at once, what was asked is answered, gone in a second."""

import json
import os
import signal
import socket
import time

import pytest

from kube import contract
from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tests.scripted.filter_load import NEW, FilterLoad
from tools.fakes.api_server import FakeApiServer
from tools.kit.pid import ProcessId, children

STOP_S = 1.0  # the promise; these tests allow a loaded machine four times that
SLACK = 4.0
TRY_EVERY_S = 0.005
UNKIND = {
    "a silent connection": b"",
    "half a header": b"POST /filter HTTP/1.1\r\nHos",
    "half a body": b"POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n{",
    "an answered connection that is kept": b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "an answer that is not read": b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" * 30,
}


@pytest.fixture
def api():
    with FakeApiServer() as api:
        api.put(node_json("h1"))
        api.put(pod_json("h1"))
        yield api


@pytest.fixture
def process(api, tmp_path, gunicorn):
    with ExtenderProcess(api, tmp_path, environ=gunicorn.environ) as process:
        process.wait_ready()
        yield process
        assert "Traceback" not in process.log


@pytest.fixture
def unkind(process):
    """One client of each kind."""
    clients = [socket.create_connection(("127.0.0.1", process.port)) for _ in UNKIND]
    for client, words in zip(clients, UNKIND.values(), strict=True):
        client.sendall(words)
    process.wait_ready()
    yield clients
    for client in clients:
        client.close()


def refused_within(port, limit_s):
    """Whether a new connection is refused by then. Tried without a pause they fill the listener's queue where the
    worker gets no processor for half a second, and the next one waits for a second."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionRefusedError:
            return True
        except (ConnectionResetError, TimeoutError):  # it was not taken yet when the listener was closed; nor can be
            pass
        time.sleep(TRY_EVERY_S)
    return False


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGQUIT, 0)],
    ids=lambda value: value.name if isinstance(value, signal.Signals) else "",
)
@pytest.mark.usefixtures("unkind")
def test_a_stop_takes_a_second_whatever_the_clients_do(process, number, code):
    workers = children(process.process.pid)
    found, took_s = process.stop(number)
    assert (code, True, []) == (found, took_s < STOP_S * SLACK, [pid for pid in workers if ProcessId.of(pid)])


def test_the_lease_is_given_back_while_those_who_have_asked_get_their_answers(api, process, unkind):
    """Each may take most of a second: a server that hangs does not answer the one, a client does not end the other."""

    def held():
        return [one for one in api.objects("Lease") if one["metadata"]["name"] == contract.NAME_EXTENDER]

    process.wait(held)
    before = len(api.requests)
    api.stall_next(method="PUT", path=f"/leases/{contract.NAME_EXTENDER}", times=9)
    os.kill(process.process.pid, signal.SIGTERM)
    for client in unkind[1:3]:  # half a header, half a body: they are waited for
        client.settimeout(20)
        while client.recv(4096):
            continue
    assert "PUT" in {one.method for one in api.requests[before:] if one.path.endswith(contract.NAME_EXTENDER)}
    process.wait(lambda: not process.process.running(), timeout_s=STOP_S * SLACK)


def test_x56_new_calls_are_refused_and_a_kept_connection_hears_that_we_stop(process):
    kept = process.connection()
    assert 200 == readyz_on(kept)[0]
    port = process.port
    os.kill(process.process.pid, signal.SIGTERM)
    process.wait(lambda: refused_within(port, 1.0))
    assert (503, "stopping", "close") == readyz_on(kept)
    process.wait(lambda: not process.process.running(), timeout_s=STOP_S * SLACK)


def readyz_on(connection):
    connection.request("GET", "/readyz")
    response = connection.getresponse()
    said = json.loads(response.read())
    return response.status, said["why"], response.headers["Connection"]


def test_x56_every_call_that_is_taken_is_answered(process):
    """Then callers are refused, and nothing else."""
    with FilterLoad(process.port, ["h1"], ["h1"], pauses_s=(0.0, 0.0, 0.01), patience_s=5.0) as load:
        process.wait(lambda: load.calls > 100)
        code, took_s = process.stop()
        process.wait(lambda: len(load.failed) > 3)
    assert (0, True) == (code, took_s < STOP_S * SLACK)
    assert [] == [fault for fault in load.failed if not (was_refused(fault) or was_never_taken(fault))]


def was_refused(fault):
    return "Connection refused" in fault


def was_never_taken(fault):
    """The kernel had it in the listener's queue when that was closed."""
    return fault.startswith("ConnectionResetError") and fault.endswith(NEW)


def test_a_second_stop_changes_nothing(process):
    pid = process.process.pid
    os.kill(pid, signal.SIGTERM)
    assert 0 == process.stop(signal.SIGTERM)[0]


@pytest.mark.parametrize("after_s", [0.05, 0.2, 0.4, 0.6, 0.8, 1.0, 1.3])
def test_a_stop_while_it_starts(api, tmp_path, gunicorn, after_s):
    process = ExtenderProcess(api, tmp_path, environ=gunicorn.environ)
    process.start()
    time.sleep(after_s)
    code, took_s = process.stop()
    assert took_s < STOP_S * SLACK
    # Before Python has come to our first line, the signal ends it.
    assert code in {0, -signal.SIGTERM}, process.log
    assert "Traceback" not in process.log


def test_a_stop_before_the_first_sync(api, tmp_path, gunicorn):
    api.stall_next(watch=False, times=3)
    with ExtenderProcess(api, tmp_path, environ=gunicorn.environ) as process:
        process.wait(lambda: children(process.process.pid))
        code, took_s = process.stop()
    assert (0, True) == (code, took_s < STOP_S * SLACK)
