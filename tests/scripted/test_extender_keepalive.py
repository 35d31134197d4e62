"""X40 as it is: kube-scheduler keeps a connection idle for up to 90 s and repeats no POST it has begun to write."""

import json
import time

import pytest

from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tools.fakes.api_server import FakeApiServer

IDLE_S = 61
pytestmark = pytest.mark.timeout(3 * IDLE_S)


def test_x40_a_connection_that_was_idle_for_a_minute_still_answers(tmp_path):
    body = json.dumps({"Pod": {}, "Nodes": None, "NodeNames": ["h1"]})
    with FakeApiServer() as api:
        api.put(node_json("h1"))
        api.put(pod_json("h1"))
        with ExtenderProcess(api, tmp_path) as process:
            process.wait_ready()
            connection = process.connection()
            connection.request("POST", "/filter", body)
            connection.getresponse().read()
            before = connection.sock.getsockname()
            time.sleep(IDLE_S)
            connection.request("POST", "/filter", body)
            assert connection.getresponse().status == 200
            assert before == connection.sock.getsockname()
            connection.close()
