"""One story: readygate comes to a cluster of IPv6 alone, closes a node and opens it, is asked by people, and goes."""

import ipaddress
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import yaml

from agent.wire.condition import ANNOTATION_SPEAKER, SPEAKER_NODE
from extender.policy import reasons
from kube import contract
from tests.hosts.deployment.conftest import agents, namespaces, scheduler_files
from tests.hosts.deployment.probing import PODS, clear, failed_scheduling, health_pod, pod, told
from tests.hosts.deployment.test_status_api import readygate
from tests.hosts.ipv6.conftest import API_SERVICE, CONTROL, WORKER
from tests.hosts.waiting import wait_for, wait_until
from tools.kit.ports import free_port
from tools.testbed.hosts.images import PAUSE
from tools.testbed.shared.api import condition

NS = contract.NAMESPACE
CHAINS = ("FORWARD", "OUTPUT")  # what pods of a host send, and what the host does itself
DOOR = "--protocol tcp --destination {address} --dport 22 --jump REJECT --reject-with tcp-reset"
# Of the agents' checks those that look at addresses.
OF_ADDRESSES = ("neighbour", "api", "service-path", "pod-addresses")


@dataclass(frozen=True)
class Closed:
    """What was seen while the check `neighbour` failed on the worker, and whether the pod landed afterwards."""

    told: str
    events: list[str]
    why_node: str
    why_pod: str
    landed: str


def versions(texts: list[str]) -> set[int]:
    return {ipaddress.ip_address(text).version for text in texts}


def test_nothing_of_the_cluster_has_an_address_of_ipv4(six, admin, deployed):
    """Of the pods those of static pods are the hosts' own."""
    assert deployed.code == 0
    for name in six.names:
        links = json.loads(six.ssh(name, "ip -json -4 address").stdout)
        assert {"127.0.0.1"} == {one["local"] for link in links for one in link.get("addr_info", [])}, name
    nodes, pods, services = (admin.items(f"/api/v1/{kind}") for kind in ("nodes", "pods", "services"))
    kept = [each["address"] for node in nodes for each in node["status"]["addresses"] if each["type"] == "InternalIP"]
    assert sorted(six.address(name) for name in six.names) == sorted(kept)
    assert {6} == versions([each["ip"] for one in pods for each in one["status"]["podIPs"]])
    assert {6} == versions([one["spec"]["clusterIP"] for one in services])
    assert [API_SERVICE] == [one["spec"]["clusterIP"] for one in services]


def test_ansible_came_by_ipv6(six, deployed):
    assert deployed.code == 0
    inventory = yaml.safe_load(six.inventory())["all"]["children"]
    given = [host["ansible_host"] for group in inventory.values() for host in group["hosts"].values()]
    assert {6} == versions(given)
    clients = six.ssh(WORKER, "echo $SSH_CLIENT").stdout.split()
    assert six.layout.network.bridge_address == clients[0]


def test_the_play_has_seen_that_the_scheduler_asks(deployed):
    assert "Check that kube-scheduler refuses a pod that readygate refuses on every node" in deployed.output


def test_each_agents_checks_pass_and_its_service_speaks_for_it(six, admin, deployed):
    assert deployed.code == 0
    words = {
        node: (
            one["metadata"]["annotations"].get(ANNOTATION_SPEAKER),
            condition(one, contract.CONDITION_NODE_HEALTHY).get("status"),
            condition(one, contract.CONDITION_READY).get("status"),
        )
        for node, one in agents(admin).items()
    }
    assert dict.fromkeys(six.names, (SPEAKER_NODE, "True", "True")) == words
    for name in six.names:
        shown = json.loads(six.ssh(name, "curl --silent http://127.0.0.1:9374/checks").stdout)["checks"]
        states = {check["name"]: check["state"] for check in shown if check["name"] in OF_ADDRESSES}
        assert dict.fromkeys(OF_ADDRESSES, "passed") == states, shown


@pytest.mark.usefixtures("deployed")
def test_check_yml_says_that_all_is_well(plays):
    run = plays.run("check.yml")
    assert (0, 0) == (run.code, run.changed), run.told()


@pytest.mark.usefixtures("deployed")
def test_a_second_run_changes_nothing(plays, deployed_with):
    run = plays.run("site.yml", **deployed_with)
    assert (0, 0) == (run.code, run.changed), run.told()


@pytest.mark.usefixtures("deployed")
def test_status_asks_through_the_api_server(six):
    code, out, err = readygate(six, "status")
    assert (0, "", True) == (code, err, f"{len(six.names)} of {len(six.names)} nodes open" in out), out


@pytest.mark.usefixtures("deployed")
def test_status_asks_at_the_loopback_of_ipv6(six, admin):
    """As who forwards a port to it has it."""
    (extender,) = admin.items(
        f"/api/v1/namespaces/{NS}/pods?labelSelector={contract.LABEL_NAME}={contract.NAME_EXTENDER}"
    )
    port = free_port()
    command = [six.kubectl_path(), f"--kubeconfig={six.kubeconfig}", "-n", NS, "port-forward", "--address=::1"]
    command += [f"pod/{extender['metadata']['name']}", f"{port}:9377"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forward:
        try:
            wait_until(lambda: re.search("Forwarding", forward.stdout.readline()), "the forwarded port")
            assert 0 == readygate(six, "status", "--server", f"http://[::1]:{port}")[0]
        finally:
            forward.terminate()


@pytest.mark.usefixtures("deployed")
def test_doctor_reads_what_the_scheduler_has_loaded_and_finds_no_error(six):
    command = [sys.executable, "-m", "cli", "doctor", f"--kubeconfig={six.kubeconfig}", "--output=json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    found = json.loads(done.stdout)["findings"]
    assert [] == [one for one in found if one["severity"] == "error" or one["name"] == "scheduler-unread"], done.stderr


@pytest.fixture(scope="module")
def closed(six, admin, deployed) -> Iterator[Closed]:
    """Whatever comes from the worker is refused by the control plane's SSH, until a pod has been seen waiting."""
    assert deployed.code == 0
    clear(admin)
    rule, where = DOOR.format(address=six.address(CONTROL)), f"[{six.address(CONTROL)}]:22"
    six.ssh(WORKER, " && ".join(f"ip6tables --insert {chain} {rule}" for chain in CHAINS))
    try:
        wait_until(
            lambda: where in condition(health_pod(admin, WORKER), contract.CONDITION_NODE_HEALTHY).get("message", ""),
            "the worker's health pod says what is refused",
        )
        wait_until(
            lambda: where in readygate(six, "why", "node", WORKER)[1],
            "the extender has heard of it",
        )
        admin.create(PODS, pod("probing-six", WORKER, PAUSE))
        wait_until(lambda: told(admin, "probing-six"), "the pod is refused")
        seen = (
            told(admin, "probing-six"),
            failed_scheduling(admin, "probing-six"),
            readygate(six, "why", "node", WORKER)[1],
            readygate(six, "why", "pod", "default/probing-six")[1],
        )
    finally:
        six.ssh(WORKER, " && ".join(f"ip6tables --delete {chain} {rule}" for chain in CHAINS))
    landed = wait_for(lambda: admin.get(f"{PODS}/probing-six")["spec"].get("nodeName"))
    yield Closed(*seen, landed=str(landed))
    clear(admin)


def test_a_pod_is_refused_where_a_check_fails_with_the_reason(closed):
    assert reasons.CLOSED_UNHEALTHY in closed.told
    assert any(reasons.CLOSED_UNHEALTHY in said for said in closed.events), closed.events


def test_people_are_told_what_failed_at_which_address(six, closed):
    assert f"[{six.address(CONTROL)}]:22" in closed.why_node
    assert WORKER in closed.why_pod


def test_the_pod_lands_when_the_check_passes_again(closed):
    assert WORKER == closed.landed


def test_uninstall_leaves_what_was(six, admin, plays, before, deployed):
    assert deployed.code == 0
    removed = [plays.run("uninstall.yml"), plays.run("node-plugin-uninstall.yml")]
    assert [0, 0] == [run.code for run in removed], [run.told() for run in removed]
    after = scheduler_files(six, admin)
    assert (before.manifest, before.listing) == (after.manifest, after.listing)
    assert yaml.safe_load(before.cluster) == yaml.safe_load(after.cluster)
    assert NS not in namespaces(admin)
    left = {
        name: six.ssh(name, "ls -d /opt/readygate /etc/kubernetes/readygate", check=False).stdout for name in six.names
    }
    assert dict.fromkeys(six.names, "") == left
    clear(admin)
    admin.create(PODS, pod("probing-after", None, PAUSE))
    assert WORKER == wait_for(lambda: admin.get(f"{PODS}/probing-after")["spec"].get("nodeName"))
    clear(admin)
