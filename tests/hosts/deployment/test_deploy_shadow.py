"""A fresh install is in shadow: it says what it would do, and refuses nothing until somebody arms it."""

import json

import pytest

from extender.policy import reasons
from kube import contract
from tests.hosts.deployment.probing import PODS, clear, pod, told
from tests.hosts.deployment.test_status_api import readygate
from tests.hosts.waiting import wait_for
from tools.testbed.hosts.images import PAUSE
from tools.testbed.hosts.layers import CNI_BIN_DIR

NODE = "worker-1"
ORDERS = f"/api/v1/namespaces/{contract.NAMESPACE}/configmaps/readygate-orders"
EXTENDERS = f"/api/v1/namespaces/{contract.NAMESPACE}/pods?labelSelector={contract.LABEL_NAME}={contract.NAME_EXTENDER}"


@pytest.fixture
def would_be_closed(hosts, deployed):  # noqa: ARG001
    """A node with a fault that its gate has seen, and a function that mends it."""

    def mend() -> None:
        hosts.ssh(NODE, f"chmod +x {CNI_BIN_DIR}/bridge")

    hosts.ssh(NODE, f"chmod -x {CNI_BIN_DIR}/bridge")
    try:
        assert wait_for(lambda: decided(hosts)["reason"]), decided(hosts)
        yield mend
    finally:
        mend()


def decided(hosts):
    """What the first gate has decided of NODE, armed or not."""
    said = hosts.ssh("control-1", f"curl --silent --fail http://127.0.0.1:9377/api/v1/nodes/{NODE}").stdout
    return json.loads(said)["node"]["gates"][0]


def impact(hosts):
    """Of the gate by the agents; the other one only shows nodes on which pods fail to start."""
    gate, starts = json.loads(readygate(hosts, "impact", "--output=json")[1])["gates"]
    assert (gate["gate"], starts["gate"]) == ("health", "starts")
    return gate


def processes(api):
    """Of each extender: its pod, and how often its containers were started again."""
    pods = api.items(EXTENDERS)
    return [(p["metadata"]["uid"], [c["restartCount"] for c in p["status"]["containerStatuses"]]) for p in pods]


def lands(api, name):
    api.create(PODS, pod(name, NODE, PAUSE))
    return wait_for(lambda: api.get(f"{PODS}/{name}")["spec"].get("nodeName"))


def test_a_fresh_install_refuses_nothing_until_an_order_arms_it_without_a_restart(hosts, api, would_be_closed):
    clear(api)
    before = processes(api)
    seen = decided(hosts)
    assert (False, reasons.CLOSED_UNHEALTHY, "") == (seen["armed"], seen["reason"], seen["heldBy"]), seen
    assert lands(api, "probing-in-shadow") == NODE
    assert wait_for(lambda: impact(hosts)["wouldRefuse"]), impact(hosts)
    assert (False, 1) == (impact(hosts)["armed"], impact(hosts)["wouldClose"])

    code, out, err = readygate(hosts, "arm", "--gate=health", "--reason=seen enough")
    try:
        assert code == 0, out + err
        assert wait_for(lambda: decided(hosts)["armed"])
        api.create(PODS, pod("probing-armed", NODE, PAUSE))
        waits = wait_for(lambda: told(api, "probing-armed"))
        assert reasons.CLOSED_UNHEALTHY in (waits or ""), waits
        would_be_closed()  # mended
        bound = wait_for(lambda: api.get(f"{PODS}/probing-armed")["spec"].get("nodeName"))
        assert bound == NODE
    finally:
        api.delete(ORDERS)
        clear(api)
    assert wait_for(lambda: not decided(hosts)["armed"])
    assert before == processes(api)


@pytest.mark.usefixtures("armed")
def test_another_play_arms_it_for_good(hosts):
    assert wait_for(lambda: decided(hosts)["armed"])
