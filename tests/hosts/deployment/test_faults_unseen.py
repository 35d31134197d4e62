"""The documented checks, deployed as they stand: every node is open with them; and faults that no kubelet reports."""

import json
import re
import time

import pytest

from extender.policy import reasons
from kube import contract
from tests.hosts.deployment.conftest import agents, documented, save
from tests.hosts.waiting import wait_for
from tools.testbed.hosts.layers import CNI_BIN_DIR
from tools.testbed.shared.api import condition

NODE = "worker-1"


@pytest.fixture(scope="module")
def verdicts(hosts, faster):  # noqa: ARG001
    """A function: the verdict on each node."""

    def look():
        said = hosts.ssh("control-1", "curl --silent --fail http://127.0.0.1:9377/api/v1/nodes").stdout
        return {seen["node"]: seen for seen in json.loads(said)["nodes"]}

    return look


def closed(verdicts, reason):
    """What is said of NODE, once it is closed for that reason; None while it is not."""
    seen = verdicts()[NODE]
    return seen if seen["reason"] == reason else None


def own_ready(api):
    return condition(api.get(f"/api/v1/nodes/{NODE}"), contract.CONDITION_READY)["status"]


def await_open(verdicts):
    assert wait_for(lambda: all(seen["open"] for seen in verdicts().values())), verdicts()


def test_with_the_documented_checks_every_node_is_open_and_each_check_passes(api, hosts, verdicts):
    names = {"cni", *(check["name"] for check in documented()["readygate_agent_checks"])}
    await_open(verdicts)
    for node, pod in agents(api).items():
        said = hosts.ssh(node, f"curl --silent http://{pod['status']['podIP']}:9375/metrics").stdout
        passed = set(re.findall(r'^readygate_check_status{check="(.+)",state="passed"} 1$', said, re.MULTILINE))
        ready = hosts.ssh(node, f"curl --silent http://{pod['status']['podIP']}:9375/readyz").stdout
        assert names == passed, (node, ready, said)


@pytest.mark.parametrize(
    ("fault", "repair", "reason", "says"),
    [
        pytest.param(
            f"chmod -x {CNI_BIN_DIR}/bridge",
            f"chmod +x {CNI_BIN_DIR}/bridge",
            reasons.CLOSED_UNHEALTHY,
            "cni: failed since",
            id="a CNI plugin without its x bit",
        ),
        pytest.param(
            "nft 'add table ip fault; add chain ip fault first { type filter hook prerouting priority -400; };"
            " add rule ip fault first udp dport 53 drop'",
            "nft delete table ip fault",
            reasons.CLOSED_UNHEALTHY,
            "dns: hung since",
            id="DNS that does not answer from this node",
        ),
        pytest.param(
            "systemctl stop kubelet",
            "systemctl start kubelet",
            reasons.CLOSED_NODE_LOST,
            "kubelet Lease not renewed",
            id="a dead kubelet",
        ),
    ],
)
def test_a_fault_the_node_itself_does_not_report_closes_it(
    api, hosts, verdicts, artefacts, request, fault, repair, reason, says
):
    await_open(verdicts)
    started = time.monotonic()
    hosts.ssh(NODE, fault)
    try:
        seen = wait_for(lambda: closed(verdicts, reason))
        took_s = time.monotonic() - started
        reported = own_ready(api)
        others = {name: verdict["open"] for name, verdict in verdicts().items() if name != NODE}
    finally:
        hosts.ssh(NODE, repair)
    assert seen, verdicts()
    assert says in seen["evidence"]
    assert reported == contract.STATUS_TRUE, "the node still calls itself Ready"
    assert set(others.values()) == {True}
    await_open(verdicts)
    figures = {"closed_s": round(took_s, 1), "evidence": seen["evidence"]}
    save(artefacts, f"unseen-{request.node.callspec.id.replace(' ', '-')}.json", figures)
