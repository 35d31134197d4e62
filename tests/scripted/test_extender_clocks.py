"""Two replicas whose wall clocks are stepped by an hour, one forwards, one back: whole processes, over real sockets.

Kubelets, API server and monotonic time go on as ever. Both replicas give the right answers in each moment, and one of
them, and only one, writes for the nodes.
"""

import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from extender.policy.reasons import CLOSED_NODE_LOST, CLOSED_NOT_READY
from kube.contract import CONDITION_NODE_HEALTHY
from tests.extender.builders import lease_json, node_json, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tools.fakes.api_server import FakeApiServer
from tools.kit.stepped import Stepped
from tools.kit.waiting import wait_until

NODES = ["n1", "n2", "n3", "n4"]
HOUR_S = 3600.0
CONFIG = {"heartbeat": {"limitSeconds": 8}, "outlets": {"nodeCondition": {"enabled": True}}}


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@contextmanager
def kubelets(api, alive):
    """Renew their Leases each second, as long as they are in `alive`."""
    done = threading.Event()

    def renew():
        while not done.wait(1.0):
            for name in list(alive):
                api.put(lease_json(name, now()))

    for name in NODES:
        api.put(lease_json(name, now()))
    thread = threading.Thread(target=renew)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def refused(replica):
    return replica.filter(NODES).FailedAndUnresolvableNodes


def both_say(replicas, expected, what):
    def said():
        return [refused(one) for one in replicas]

    wait_until(lambda: said() == [expected] * 2, lambda: (what, said()), timeout_s=40)


def condition(api, name):
    (node,) = [one for one in api.objects("Node") if one["metadata"]["name"] == name]
    return next((one["status"] for one in node["status"]["conditions"] if one["type"] == CONDITION_NODE_HEALTHY), "")


def leads(replica):
    """Whether it is the one that writes, by its log."""
    said = [line.split(" ", 3)[-1] for line in replica.lines]
    return sum(line.startswith("leader") for line in said) - sum(
        line.startswith("not the leader any more") for line in said
    )


@pytest.fixture
def api():
    with FakeApiServer() as server:
        for name in NODES:
            server.put(node_json(name, Ready="True"))
            server.put(pod_json(name))
        yield server


def test_clocks_that_step_close_no_node_and_keep_none_closed(api, tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
    clocks = [Stepped(tmp_path / f"clock-{number}") for number in range(2)]
    alive = set(NODES)
    with (
        kubelets(api, alive),
        ExtenderProcess(api, tmp_path / "a", config=CONFIG, environ=clocks[0].environ) as one,
        ExtenderProcess(api, tmp_path / "b", config=CONFIG, environ=clocks[1].environ) as other,
    ):
        replicas = (one, other)
        both_say(replicas, {}, "all are open")
        wait_until(lambda: {condition(api, name) for name in NODES} == {"True"}, "the conditions", timeout_s=30)
        for ahead_s in (HOUR_S, -HOUR_S):
            clocks[0].ahead(ahead_s)
            clocks[1].ahead(-ahead_s)
            end = time.monotonic() + 2.0
            while time.monotonic() < end:
                assert [{}, {}] == [refused(replica) for replica in replicas], "a step closes nobody"
                time.sleep(0.1)
            api.put(pod_json("n1", Ready="False"))
            both_say(replicas, {"n1": CLOSED_NOT_READY}, "one fails")
            api.put(pod_json("n1"))
            both_say(replicas, {}, "it heals")
        clocks[0].ahead(0.0)
        alive.discard("n2")
        both_say(replicas, {"n2": CLOSED_NODE_LOST}, "a kubelet dies")
        wait_until(lambda: condition(api, "n2") == "Unknown", "its condition", timeout_s=40)
        alive.add("n2")
        both_say(replicas, {}, "and comes back")
        assert 1 == sum(leads(replica) for replica in replicas)
