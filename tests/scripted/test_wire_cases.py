"""Both listeners beside each other, by the table of what a client may send."""

import re
import socket
from contextlib import suppress

import pytest

from tests.contract.wire_cases import CASES, GET
from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tests.scripted.status_api_process import StatusApiProcess
from tools.fakes.api_server import FakeApiServer


@pytest.fixture(scope="module")
def listeners(tmp_path_factory):
    """The verbs' and the people's."""
    folder = tmp_path_factory.mktemp("wire")
    with FakeApiServer() as api:
        api.put(node_json("h1", Ready="True"))
        api.put(pod_json("h1"))
        with ExtenderProcess(api, folder) as extender, StatusApiProcess(extender.settings, folder) as status_api:
            extender.wait_ready()
            status_api.wait_follows()
            yield extender, status_api
            assert [(200,), (200,)] == [statuses(listener, GET) for listener in (extender, status_api)]
            assert ("Traceback" in extender.log, "Traceback" in status_api.log) == (False, False)


def statuses(listener, data):
    """Of all answers, in order; the connection has ended then."""
    with socket.create_connection(("127.0.0.1", listener.port), timeout=10) as sock:
        with suppress(OSError):  # it may have its answer before it has said all
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        received = b""
        with suppress(ConnectionError):
            while piece := sock.recv(65536):
                received += piece
    found = []
    while received:
        head, _, rest = received.partition(b"\r\n\r\n")
        status, length = re.match(rb"HTTP/1\.\d (\d+) ", head), re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        found.append(int(status[1]))
        received = rest[int(length[1]) :]
    return tuple(found)


@pytest.mark.parametrize("case", CASES, ids=[case.what for case in CASES])
def test_both_listeners_answer(listeners, case):
    expected = {"verbs": case.verbs, "status-api": case.status_api}
    assert expected == {name: statuses(listener, case.data) for name, listener in zip(expected, listeners, strict=True)}
