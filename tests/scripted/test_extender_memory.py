"""What is remembered of pods, in both processes, takes no more memory than it may, whatever a client asks about."""

import json
import socket

import pytest

from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tests.scripted.status_api_process import StatusApiProcess
from tests.scripted.test_extender_crowds import memory_mib
from tools.fakes.api_server import FakeApiServer
from tools.kit.pid import children
from tools.kit.waiting import wait_until

CALLS, AT_ONCE = 8_000, 20  # 28 MiB, if all that they name were remembered; and steps, and what waits
WAITING = 1_000  # calls that may wait to be remembered
ALLOWED_MIB = 160


@pytest.fixture
def both(tmp_path):
    with FakeApiServer() as api:
        api.put(node_json("h1", Ready="True"))
        api.put(pod_json("h1"))
        with (
            ExtenderProcess(api, tmp_path) as extender,
            StatusApiProcess(extender.settings, tmp_path, status_api={"port": 0}) as status_api,
        ):
            extender.wait_ready()
            status_api.wait_follows()
            yield extender, status_api


def call(number):
    """About the longest identity that is remembered, and as many unknown nodes as are, with names as long."""
    metadata = {"namespace": "n" * 63, "name": f"{number:0253}", "uid": f"{number:064}"}
    names = [f"{number * 10 + one:0253}" for one in range(8)]
    body = json.dumps({"Pod": {"metadata": metadata}, "NodeNames": names}).encode()
    return b"POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def test_pods_with_the_longest_names_that_are_refused_unknown_nodes_fill_no_memory(both):
    extender, status_api = both
    pids = {"worker": children(extender.process.pid)[0], "status-api": children(status_api.process.pid)[0]}
    idle_mib = {name: memory_mib(pid, "VmRSS") for name, pid in pids.items()}

    def is_remembered(number):
        status, told = status_api.get(f"/api/v1/pods/{'n' * 63}/{number:0253}")
        return status == 200 and bool(json.loads(told).get("uid"))

    with socket.create_connection(("127.0.0.1", extender.port), timeout=20) as sock:
        for first in range(0, CALLS, AT_ONCE):
            sock.sendall(b"".join(call(number) for number in range(first, first + AT_ONCE)))
            answers = b""
            while answers.count(b"HTTP/1.1 200") < AT_ONCE:
                piece = sock.recv(2**20)
                assert piece, answers
                answers += piece
            if (last := first + AT_ONCE) % WAITING == 0:  # who asks faster than is remembered is not remembered
                wait_until(lambda last=last: is_remembered(last - 1), "the last pod is shown", timeout_s=20)
    wait_until(lambda: not is_remembered(0), "the oldest are forgotten, the turn after the last came at the latest")
    grown = {name: round(memory_mib(pid, "VmHWM") - idle_mib[name]) for name, pid in pids.items()}
    assert {} == {name: mib for name, mib in grown.items() if mib > ALLOWED_MIB}, grown
