"""Before the first lists of a large cluster are read to their end, every call is refused as not ready."""

import time

from extender.verbs.source import Sync
from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tools.fakes.api_server import FakeApiServer

NODES = [f"node-{number:04}" for number in range(5000)]
CLOSED = set(NODES[::4])
ASKED_EACH = 10  # times in each of the stages that wait for us


def refused(process: ExtenderProcess) -> str:
    """The answer's error, which has to come without any verdict; "" for a whole and right one."""
    answer = process.filter(NODES)
    if answer.Error:
        assert (None, {}) == (answer.NodeNames, answer.FailedAndUnresolvableNodes)
        return answer.Error
    assert [name for name in NODES if name not in CLOSED] == answer.NodeNames
    assert CLOSED == set(answer.FailedAndUnresolvableNodes)
    return ""


def test_until_5000_nodes_and_their_pods_are_read_each_call_is_refused_and_none_gets_a_list(tmp_path):
    """X21, in a cluster of the largest size: asked for all names all the time."""
    with FakeApiServer() as api:
        for name in NODES:
            api.put(node_json(name, Ready="True"))
            api.put(pod_json(name, Ready="False" if name in CLOSED else "True"))
        api.refuse()
        with ExtenderProcess(api, tmp_path, config={"heartbeat": {"limitSeconds": 0}}) as process:
            errors = [refused(process) for _ in range(ASKED_EACH)]  # no API server
            api.stall_next(path="/pods", watch=False)
            api.listen()
            api.wait_requests(1, lambda request: request.path.endswith("/nodes") and request.is_watch)
            errors += [refused(process) for _ in range(ASKED_EACH)]  # all nodes, and no pod
            assert (503, ASKED_EACH * 2) == (process.get("/readyz")[0], len(errors))
            api.cut_connections()
            end = time.monotonic() + 60
            while errors[-1] and time.monotonic() < end:  # while they are read
                errors.append(refused(process))
            assert ({Sync.NOT_SYNCED.value}, "") == (set(errors[:-1]), errors[-1])
