"""Writes for people that hang in the API server, while kube-scheduler asks: they hold up no call."""

import threading
import time
from contextlib import contextmanager

from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tests.scripted.pace import best_p99_ratio, calls
from tools.fakes.api_server import FakeApiServer
from tools.kit.waiting import wait_until

NODES = [f"n{number:03}" for number in range(200)]
TURNING = NODES[:40]
CONFIG = {
    "heartbeat": {"limitSeconds": 0},
    "outlets": {"nodeCondition": {"perSecond": 100}, "events": {"perSecond": 100}},
}
ALLOWED = 2.0  # a call that waited for one of these writes would take a thousand times as long


def written(request):
    return "/status" in request.path or "/events" in request.path


@contextmanager
def turning(api):
    """Nodes close and open all the time, so there is always something to write."""
    over = threading.Event()

    def turn():
        step = 0
        while not over.wait(0.05):
            name = TURNING[step % len(TURNING)]
            api.put(pod_json(name, Ready="True" if step // len(TURNING) % 2 else "False"))
            step += 1

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_writes_that_hang_hold_up_no_call(tmp_path):
    with FakeApiServer() as api:
        for name in NODES:
            api.put(node_json(name, Ready="True"))
            api.put(pod_json(name))

        @contextmanager
        def stalled():
            """Each write of a condition or an Event stays without an answer."""
            before = len(api.requests)
            api.stall_next(method="PATCH", path="/status", times=3)
            api.stall_next(method="POST", path="/events", times=3)
            wait_until(lambda: any(map(written, api.requests[before:])), "a write that hangs", timeout_s=20)
            yield
            time.sleep(0.1)

        with ExtenderProcess(api, tmp_path, config=CONFIG) as extender, turning(api):
            extender.wait_ready(20)
            wait_until(lambda: len(api.objects("Event")) > 3, "the writers", timeout_s=40)
            assert best_p99_ratio(lambda: calls(extender, NODES), stalled, ALLOWED) <= ALLOWED
