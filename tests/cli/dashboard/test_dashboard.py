"""`readygate dashboard`: a local port that is forwarded to the status API of one extender."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
from urllib.parse import urlsplit

import pytest

from cli.__main__ import main
from cli.dashboard import command as dashboard
from cli.shared import extender_client
from tests.cli.served import Extender
from tools.fakes import portforward
from tools.kit.waiting import wait_until

PATIENT_S = 60.0  # a process that starts on a machine that others keep busy
GATES = {"gates": []}
NODES = {"nodes": []}


@pytest.fixture
def opened(cluster):
    """Starts the command in a process of its own; gives its URL, its first lines and the process."""
    running = []

    def start(*arguments):
        command = [sys.executable, "-m", "cli", "dashboard", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        running.append(process)
        first = process.stdout.readline().strip()
        return first, process.stdout.readline().strip(), process

    assert cluster.extenders == []
    yield start
    for process in running:
        process.kill()
        process.communicate()


def replica(name, host="control-1", gates=GATES):
    return Extender(name, host, gates=gates, nodes=NODES)


def get(url, *, path="", host=""):
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENT_S)
    connection.request("GET", path or parts.path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_dashboard_forwards_a_free_port_to_the_extender_with_the_newest_data(cluster, opened):
    late = GATES | {"lastWordSeconds": 60.0}
    cluster.extenders = [
        replica("e-1", gates=late),
        replica("e-2", "control-2"),
    ]
    url, line, _ = opened()
    assert "e-2 on control-2; every user of this machine can open it; Ctrl-C ends it" == line
    assert (200, b'"nodes":[]' in get(url)[1]) == (get(url)[0], True)
    assert ("127.0.0.1", "/api/v1/nodes") == (urlsplit(url).hostname, urlsplit(url).path)
    assert ([], "nodes") == ([path for path, _ in cluster.extenders[0].requests if path == "nodes"], "nodes")


def test_dashboard_passes_the_browsers_own_host_header_on(cluster, opened):
    """The status API refuses a web page of another name by it."""
    cluster.extenders = [replica("e-1")]
    url, _, _ = opened()
    get(url, host="evil.example")
    assert "evil.example" == cluster.extenders[0].requests[-1][1]["Host"]


@pytest.mark.parametrize(("end", "expected"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)], ids=["SIGTERM", "Ctrl-C"])
def test_dashboard_ends_by_a_signal_while_browsers_are_connected(cluster, opened, end, expected):
    cluster.extenders = [replica("e-1")]
    url, _, process = opened()
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port)):
        get(url)
        process.send_signal(end)
        _, said = process.communicate(timeout=PATIENT_S)
    assert (expected, "") == (process.returncode, said)


def test_dashboard_follows_to_another_extender_when_its_pod_is_gone(cluster, opened):
    cluster.extenders = [
        replica("e-1"),
        replica("e-2", "control-2"),
    ]
    url, line, process = opened()
    assert line.startswith("e-1 ")
    assert get(url)[0] == 200
    cluster.extenders.pop(0)
    assert get(url)[0] == 200
    process.terminate()
    _, said = process.communicate(timeout=PATIENT_S)
    assert "readygate dashboard: e-1 was just deleted; try again\nnow e-2 on control-2\n" == said


def test_dashboard_answers_502_while_nothing_listens_and_works_again_afterwards(cluster, opened):
    only = replica("e-1")
    cluster.extenders = [only]
    url, _, process = opened()
    well, only.forward = only.forward, portforward.complaining(portforward.REFUSED)
    assert (502, True) == ((found := get(url))[0], b"terminal shows why" in found[1])
    assert b"control-1" not in found[1]
    only.forward = well
    wait_until(lambda: get(url)[0] == 200, "the extender is back", timeout_s=PATIENT_S)
    process.terminate()
    _, said = process.communicate(timeout=PATIENT_S)
    assert said.startswith("readygate dashboard: nothing listens at port 9377 of e-1"), said


def test_dashboard_serves_as_many_connections_as_it_has_room_for_and_then_the_next(cluster, monkeypatch):
    monkeypatch.setattr(dashboard, "CONNECTIONS_MOST", 3)
    only = replica("e-1")
    cluster.extenders = [only]
    choice = dashboard.Choice(lambda: extender_client.replicas(arguments()), "")
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=dashboard._serve, args=(listener, choice), daemon=True).start()
    address = listener.getsockname()
    idle = [socket.create_connection(address) for _ in range(3)]
    wait_until(lambda: len(only.forwards) == 4, "three connections, and the question to each extender")
    with socket.create_connection(address) as waiting:
        waiting.sendall(b"GET /api/v1/nodes HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        waiting.settimeout(0.3)
        with pytest.raises(TimeoutError):
            waiting.recv(1)
        idle[0].close()
        waiting.settimeout(PATIENT_S)
        assert waiting.recv(12) == b"HTTP/1.1 200"
    for one in idle:
        one.close()


def arguments():
    return dashboard.argparse.Namespace(
        kubeconfig=os.environ["KUBECONFIG"], context=None, readygate_namespace="readygate-system"
    )


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        pytest.param(("--pod", "other"), 2, "there is no extender other; see", id="no such pod"),
        pytest.param((), 3, "nothing listens at port 9377 of e-1", id="none can be reached"),
    ],
)
def test_dashboard_without_an_extender_is_one_line(capsys, cluster, words, code, expected):
    cluster.extenders = [Extender("e-1", gates=GATES)]
    cluster.extenders[0].forward = portforward.complaining(portforward.REFUSED)
    assert (code, True) == (main(["dashboard", *words]), expected in (said := capsys.readouterr().err)), said


def test_a_used_port_is_one_line(capsys, cluster):
    cluster.extenders = [Extender("e-1", gates=GATES)]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = str(taken.getsockname()[1])
        assert main(["dashboard", "--port", number]) == 1
    said = capsys.readouterr().err
    assert (True, True) == (f"cannot listen at 127.0.0.1:{number}: " in said, "; choose another --port\n" in said), said
