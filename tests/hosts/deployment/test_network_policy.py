"""The agents' NetworkPolicy where somebody enforces it, kube-router's firewall on each host: whoever is not the node's
kubelet, or named, does not reach an agent's port; the kubelet's probes go on.

The testbed's own network plugin is a bridge that knows no policies. By `make test-policy`.
"""

from collections.abc import Iterator

import pytest

from kube import contract
from tests.hosts.deployment.conftest import MIN_READY_S, agents
from tests.hosts.waiting import wait_for
from tools.testbed.shared.api import condition
from tools.testbed.shared.tools import KUBE_ROUTER, built

PORT = 9375
HOST = "worker-1"
MONITORING, STRANGER = "monitoring", "default"
FROM = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": MONITORING}}}]
PROGRAM, KUBECONFIG, UNIT = "/usr/local/bin/kube-router", "/root/kube-router.conf", "kube-router"
# Only the firewall: routes and Services are others'. Pods of one host are on one bridge, whose packets the kernel
# shows its firewall when it is told to, as kubeadm asks of each host. Between hosts the bridge plugin gives a pod its
# host's address; networks that know policies do not.
ENFORCE = (
    "sysctl --write net.bridge.bridge-nf-call-iptables=1 && "
    "iptables --table nat --insert POSTROUTING --source {pods} --destination {pods} --jump ACCEPT && "
    f"systemd-run --unit={UNIT} --collect {PROGRAM} --run-firewall --run-router=false --run-service-proxy=false "
    f"--kubeconfig={KUBECONFIG} --hostname-override={{host}} --health-port=0"
)
LEAVE = (
    f"systemctl stop {UNIT}; {PROGRAM} --cleanup-config; rm -f {PROGRAM} {KUBECONFIG}; "
    "iptables --table nat --delete POSTROUTING --source {pods} --destination {pods} --jump ACCEPT"
)
ASK = """\
import socket, sys
try:
    with socket.create_connection((sys.argv[1], {port}), 3) as asked:
        asked.sendall(b"GET /readyz HTTP/1.0\\r\\n\\r\\n")
        print(asked.recv(100).split()[1].decode())
except (TimeoutError, ConnectionRefusedError):
    print("nothing")
"""
PROBES_S = 20.0  # more than the kubelet's three failures at 2 s take


def asking(namespace: str, node: str, image: str) -> dict:
    """A pod that waits to be told whom to ask."""
    container = {"name": "ask", "image": image, "imagePullPolicy": "Never", "command": ["sleep", "3600"]}
    return {
        "metadata": {"name": f"ask-{node}", "namespace": namespace},
        "spec": {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 0},
    }


@pytest.fixture(scope="module")
def agent(api, ansible, deployed):  # noqa: ARG001
    """The agent's pod on HOST, and who may ask it."""
    run = ansible.run("site.yml", readygate_agent_metrics_from=FROM)
    assert run.code == 0, run.told()
    return agents(api)[HOST]


@pytest.fixture(scope="module")
def asked(hosts, api, image, agent) -> Iterator:
    """A function: what a pod of a namespace on a node is answered by the agent; `nothing` where it is refused, or
    after three seconds."""
    api.create_unless_there("/api/v1/namespaces", {"metadata": {"name": MONITORING}})
    pods = [(namespace, node) for namespace in (MONITORING, STRANGER) for node in (HOST, "worker-2")]
    for namespace, node in pods:
        api.create(f"/api/v1/namespaces/{namespace}/pods", asking(namespace, node, image))
    for namespace, node in pods:
        path = f"/api/v1/namespaces/{namespace}/pods/ask-{node}"
        assert wait_for(lambda at=path: condition(api.get(at), "Ready").get("status") == "True", timeout_s=60), path
    script = ASK.format(port=PORT)

    def ask(namespace: str, node: str) -> str:
        command = ["exec", f"--namespace={namespace}", f"ask-{node}", "--", "python3", "-c", script]
        return str(hosts.kubectl(*command, agent["status"]["podIP"]).stdout).strip()

    yield ask
    for namespace, node in pods:
        api.delete(f"/api/v1/namespaces/{namespace}/pods/ask-{node}", grace_s=0)


@pytest.fixture(scope="module")
def before(asked):
    """What each was answered while nobody enforced."""
    return {(namespace, node): asked(namespace, node) for namespace, node in WHO}


@pytest.fixture(scope="module")
def enforced(hosts, before) -> Iterator[None]:  # noqa: ARG001
    program = built(KUBE_ROUTER, hosts.progress)
    for host in hosts.names:
        with program.open("rb") as file:
            hosts.ssh(host, f"cat > {PROGRAM} && chmod 755 {PROGRAM}", stdin=file)
        hosts.ssh(host, f"umask 077 && cat > {KUBECONFIG}", stdin=hosts.kubeconfig.read_text())
        hosts.ssh(host, ENFORCE.format(host=host, pods=hosts.layout.network.pods))
    chains = "iptables-save | grep --count KUBE-NWPLCY"
    for host in hosts.names:
        assert wait_for(lambda at=host: hosts.ssh(at, chains, check=False).returncode == 0, timeout_s=60), host
    yield
    for host in hosts.names:
        hosts.ssh(host, LEAVE.format(pods=hosts.layout.network.pods), check=False)


WHO = {
    (MONITORING, HOST): "200",
    (MONITORING, "worker-2"): "200",
    (STRANGER, HOST): "nothing",
    (STRANGER, "worker-2"): "nothing",
}


def test_without_enforcement_everybody_reaches_the_agent(before):
    assert dict.fromkeys(WHO, "200") == before


@pytest.mark.usefixtures("enforced")
@pytest.mark.parametrize(
    ("namespace", "node", "expected"),
    [
        pytest.param(*who, expected, id=f"a pod of {who[0]} on {'the same node' if who[1] == HOST else 'another one'}")
        for who, expected in WHO.items()
    ],
)
def test_only_who_collects_metrics_reaches_the_agent(asked, namespace, node, expected):
    assert wait_for(lambda: asked(namespace, node) == expected, timeout_s=30), asked(namespace, node)


@pytest.mark.usefixtures("enforced")
def test_the_kubelets_probes_go_on(api, agent):
    """Each agent stays Ready, and is not started again by its liveness probe."""
    assert not wait_for(
        lambda: any(condition(one, contract.CONDITION_READY).get("status") != "True" for one in agents(api).values()),
        timeout_s=PROBES_S,
    )
    (status,) = agents(api)[HOST]["status"]["containerStatuses"]
    (earlier,) = agent["status"]["containerStatuses"]
    assert earlier["restartCount"] == status["restartCount"]


@pytest.mark.usefixtures("enforced")
def test_a_roll_out_goes_on_where_nobody_else_may_ask(ansible):
    run = ansible.run("site.yml", readygate_agent_metrics_from=[], readygate_agent_min_ready_seconds=MIN_READY_S)
    assert run.code == 0, run.told()


@pytest.mark.usefixtures("enforced")
def test_then_nobody_does(api, asked):
    assert agents(api)
    assert wait_for(lambda: asked(MONITORING, HOST) == "nothing", timeout_s=30)
