"""A Node object that was made anew under a health pod which stays Ready: the real process, the real clock."""

import time
from datetime import UTC, datetime, timedelta

from extender.policy.reasons import CLOSED_NO_HEALTH_POD
from extender.policy.verdict import OLD_POD_LIMIT_S
from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tools.fakes.api_server import FakeApiServer

NODES = ["n1", "n2"]
LEFT_S = 12.0  # of the limit, when the watch tells of the new object: so the test need not wait for all of it


def test_a_node_made_anew_opens_by_time_alone_when_its_pod_stays_ready_and_is_kicked(tmp_path):
    """X54. Nothing comes from the API server when the time is over, so who waits for the node has to be told."""
    with FakeApiServer() as api:
        for name in NODES:
            api.put(node_json(name, Ready="True"))
            api.put(pod_json(name))
        silent = {"nodeCondition": {"enabled": False}, "events": {"enabled": False}}  # kicks are to be the only writes
        config = {"heartbeat": {"limitSeconds": 0}, "outlets": silent}
        with ExtenderProcess(api, tmp_path, config=config) as process:
            process.wait_ready()
            made = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=OLD_POD_LIMIT_S - LEFT_S)
            api.delete("Node", "n1")
            api.put(node_json("n1", uid="again", created=made.strftime("%Y-%m-%dT%H:%M:%SZ"), Ready="True"))
            left_s = OLD_POD_LIMIT_S - (datetime.now(UTC) - made).total_seconds()
            opens_at = time.monotonic() + left_s
            refused = {"n1": CLOSED_NO_HEALTH_POD}
            process.wait(lambda: process.filter(NODES).FailedAndUnresolvableNodes == refused, timeout_s=left_s)

            process.wait(lambda: process.filter(NODES).NodeNames == NODES, timeout_s=LEFT_S + 20)

            assert opens_at <= time.monotonic()
            api.wait_requests(1, lambda request: is_kick(request) and request.at >= opens_at)  # others are the start's


def is_kick(request):
    return request.method == "PATCH" and request.path == "/api/v1/nodes/n1"
