"""A fresh install is in shadow: it reports what it would refuse, and refuses nothing until an order arms it."""

import pytest

from extender.policy import reasons
from kube import contract
from tests.hosts.deployment.probing import clear
from tests.hosts.deployment.test_status_api import readygate
from tests.hosts.path.placing import HEAL, INJECT, node_of, send, wait_decided, wait_placed, wait_refused

NODE, OTHER = "worker-1", "worker-2"
ORDERS = f"/api/v1/namespaces/{contract.NAMESPACE}/configmaps/readygate-orders"
EXTENDERS = f"/api/v1/namespaces/{contract.NAMESPACE}/pods?labelSelector={contract.LABEL_NAME}={contract.NAME_EXTENDER}"


def processes(api):
    """Of each extender: its pod, and how often its containers were restarted."""
    pods = api.items(EXTENDERS)
    return [(p["metadata"]["uid"], [c["restartCount"] for c in p["status"]["containerStatuses"]]) for p in pods]


@pytest.mark.usefixtures("installed")
def test_a_fault_closes_a_node_for_pods_once_an_order_has_armed_the_gate_and_its_end_opens_it(hosts, api):
    clear(api)
    before = processes(api)
    try:
        hosts.ssh(NODE, INJECT)
        wait_decided(hosts, NODE, armed=False, reason=reasons.CLOSED_UNHEALTHY, heldBy="")
        send(api, "probing-in-shadow", NODE)
        wait_placed(api, "probing-in-shadow", NODE)

        code, out, err = readygate(hosts, "arm", "--gate=health", "--reason=seen enough")
        assert code == 0, out + err
        wait_decided(hosts, NODE, armed=True)
        send(api, "probing-armed", NODE)
        wait_refused(api, "probing-armed", reasons.CLOSED_UNHEALTHY)
        send(api, "probing-anywhere", None)
        wait_placed(api, "probing-anywhere", OTHER)
        assert node_of(api, "probing-armed") == ""
        hosts.ssh(NODE, HEAL)
        wait_placed(api, "probing-armed", NODE)
    finally:
        hosts.ssh(NODE, HEAL)
        api.delete(ORDERS)
        clear(api)
    wait_decided(hosts, NODE, armed=False, reason="")
    assert before == processes(api), "no extender was restarted for an order"
