"""An agent in mode `kubelet` before a real API server, with a node's rights: it is a node like any other."""

import sys
from pathlib import Path

import pytest

from agent.kubelet.node.facts import amount
from agent.kubelet.node.machine import resources
from tests.agent.kubelet.plugins.test_client import Server as PluginServer
from tools.bench.agent.kubelet import health_server
from tools.kit.pid import find_processes
from tools.kit.programs import fetch
from tools.kit.waiting import wait_for, wait_until
from tools.testbed.plane.plane import Plane
from tools.testbed.plane.programs import Agent
from tools.testbed.shared.api import condition
from tools.testbed.shared.bare import pod_spec

NODE = "node-16"
CIDR = "127.20.16.0/24"
NAMESPACE = "default"
PORT = 8080
# Answers 200 while the file `fit` is there: what a test takes away makes the probe fail.
SERVER = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if os.path.exists(sys.argv[2]) else 503)
        self.end_headers()
    def log_message(self, *args): pass
http.server.HTTPServer((sys.argv[1], 8080), Handler).serve_forever()
"""
# Listens at port 8080 while the file `fit` is there; it runs on without it.
LISTENER = """
import os, socket, sys, time
with socket.create_server((sys.argv[1], 8080)):
    while os.path.exists(sys.argv[2]): time.sleep(0.1)
time.sleep(600)
"""
GATE = "readygate.dev/test-gate"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NODE}"


@pytest.fixture(scope="module")
def plane(say):
    """A control plane of its own: with the DaemonSet controller, and with the controller that looks after nodes."""
    with Plane("kubelet-mode", node_lifecycle=True, thrifty=True, progress=say) as plane:
        yield plane


@pytest.fixture(scope="module")
def agent(plane, tmp_path_factory):
    folder = tmp_path_factory.mktemp("agent")
    agent = Agent(
        plane,
        NODE,
        pod_cidr=CIDR,
        folder=folder,
        leaseDurationSeconds=4,
        capacity={},
        systemReserved={"cpu": "100m"},
        registerWithTaints=[{"key": "test", "effect": "PreferNoSchedule"}],
    )
    agent.start()
    try:
        assert wait_for(lambda: node_is(plane, "True"), timeout_s=60), "the node did not become Ready"
        yield agent
    finally:
        agent.process.stop()
        plane.api.delete(f"/api/v1/nodes/{NODE}")


@pytest.fixture
def health(plane, agent, tmp_path):  # noqa: ARG001 - the node must be there
    """A DaemonSet for this node only, with one HTTP readiness probe a second."""
    fit = tmp_path / "fit"
    fit.touch()
    labels = {"app": "kubelet-mode-test"}
    spec = pod_spec([sys.executable, "-c", SERVER, "$(READYGATE_POD_IP)", str(fit)])
    spec["containers"][0]["readinessProbe"] = {
        "httpGet": {"port": PORT},
        "periodSeconds": 1,
        "failureThreshold": 1,
    }
    spec["nodeSelector"] = {"kubernetes.io/hostname": NODE}
    spec["terminationGracePeriodSeconds"] = 5
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets"
    plane.wait_namespace(NAMESPACE)
    plane.api.create(
        path,
        {
            "metadata": {"name": "kubelet-mode-test"},
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
        },
    )
    yield Health(plane, fit)
    plane.api.delete(f"{path}/kubelet-mode-test")
    assert wait_for(lambda: not Health(plane, fit).pods(), timeout_s=60), "its pods are still there"


class Health:
    def __init__(self, plane, fit: Path):
        self.plane = plane
        self.fit = fit

    def pods(self):
        path = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app%3Dkubelet-mode-test"
        return self.plane.api.items(path)

    def wait(self, ready: str, *, timeout_s: float = 90):
        def look():
            found = [p for p in self.pods() if condition(p, "Ready").get("status") == ready]
            return found[0] if found else None

        pod = wait_for(look, timeout_s=timeout_s)
        assert pod, f"Ready did not become {ready}: {[p['status'] for p in self.pods()]}"
        return pod


def node_is(plane, ready: str):
    nodes = [n for n in plane.api.items("/api/v1/nodes") if n["metadata"]["name"] == NODE]
    return nodes and condition(nodes[0], "Ready").get("status") == ready and nodes[0]


def test_the_node_is_registered_and_ready(plane, agent):
    node = node_is(plane, "True")
    labels = node["metadata"]["labels"]
    assert {"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch"} <= labels.keys()
    machine, status = resources(Path("/")), node["status"]
    assert {name: amount(machine[name]) for name in ("cpu", "memory")} == {
        name: amount(status["capacity"][name]) for name in ("cpu", "memory")
    }
    assert (status["capacity"]["pods"], status["allocatable"]["pods"]) == ("110", "110")
    assert amount(machine["cpu"]) - amount("100m") == amount(status["allocatable"]["cpu"])
    assert node["spec"]["podCIDRs"] == [CIDR]
    assert {"key": "test", "effect": "PreferNoSchedule"} in node["spec"]["taints"]
    assert {"type": "InternalIP", "address": "127.20.16.1"} in node["status"]["addresses"]
    assert {c["type"]: c["status"] for c in node["status"]["conditions"]} == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }
    assert wait_for(lambda: fetch(f"http://127.0.0.1:{agent.port}/readyz")[0] == 200, timeout_s=90)
    assert fetch(f"http://127.0.0.1:{agent.port}/livez") == (200, "ok\n")


def lease_of(plane):
    """It is made soon after the Node."""
    leases = plane.api.items(LEASE.rpartition("/")[0])
    return next((lease for lease in leases if lease["metadata"]["name"] == NODE), None)


@pytest.mark.usefixtures("agent")
def test_the_lease_is_renewed(plane):
    first = wait_for(lambda: lease_of(plane), timeout_s=90)
    (owner,) = first["metadata"]["ownerReferences"]
    assert (first["spec"]["holderIdentity"], first["spec"]["leaseDurationSeconds"]) == (NODE, 4)
    assert owner["kind"] == "Node"
    for _ in range(2):
        before = plane.api.get(LEASE)["spec"]["renewTime"]
        assert wait_for(lambda before=before: plane.api.get(LEASE)["spec"]["renewTime"] > before, timeout_s=60)


def test_a_daemon_set_pod_follows_its_probe_and_ends_cleanly(plane, health):
    pod = health.wait("True")
    status = pod["status"]
    assert (status["phase"], status["hostIP"]) == ("Running", "127.20.16.1")
    assert status["podIP"].startswith("127.20.16.")
    assert [c["ready"] and c["started"] for c in status["containerStatuses"]] == [True]

    health.fit.unlink()
    sick = health.wait("False")
    assert condition(sick, "Ready")["message"] == "containers with unready status: [main]"
    assert sick["status"]["phase"] == "Running"
    wanted = {("Created", "Normal"), ("Started", "Normal"), ("Unhealthy", "Warning")}
    assert wait_for(lambda: wanted <= told_of(plane, pod["metadata"]["uid"]), timeout_s=90)

    health.fit.touch()
    health.wait("True")

    plane.api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}")
    gone = wait_for(lambda: pod["metadata"]["uid"] not in {p["metadata"]["uid"] for p in health.pods()}, timeout_s=90)
    assert gone, "the deleted pod is still there"
    assert health.wait("True")["metadata"]["uid"] != pod["metadata"]["uid"]


@pytest.mark.usefixtures("agent")
def test_a_pod_that_ends_gets_a_terminal_phase(plane):
    name = "ends-well"
    spec = {**pod_spec(["/bin/sh", "-c", "exit 0"]), "restartPolicy": "Never", "nodeName": NODE}
    plane.wait_namespace(NAMESPACE)
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    plane.api.create(path, {"metadata": {"name": name}, "spec": spec})
    ended = wait_for(lambda: in_phase(plane, f"{path}/{name}", "Succeeded"), timeout_s=90)
    assert ended, plane.api.get(f"{path}/{name}")["status"]
    assert condition(ended, "Ready")["reason"] == "PodCompleted"
    plane.api.delete(f"{path}/{name}")
    assert wait_for(lambda: name not in {p["metadata"]["name"] for p in plane.api.items(path)}, timeout_s=90)


@pytest.mark.usefixtures("agent")
def test_exec_grpc_and_tcp_probes_and_a_readiness_gate_decide_on_a_pod(plane, tmp_path):
    """Startup by a command, readiness by gRPC and by a gate of the pod, liveness by TCP."""
    started, fit = tmp_path / "started", tmp_path / "fit"
    fit.touch()
    plane.wait_namespace(NAMESPACE)
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    often = {"periodSeconds": 1, "failureThreshold": 1}

    def status():
        return plane.api.get(f"{path}/probed")["status"]

    def wait(what: str, look) -> None:
        wait_until(lambda: look(status()), lambda: f"{what}: {status()}", timeout_s=90)

    def container(now):
        return (now.get("containerStatuses") or [{}])[0]

    with health_server() as port:
        spec = {**pod_spec([sys.executable, "-c", LISTENER, "$(READYGATE_POD_IP)", str(fit)]), "nodeName": NODE}
        spec["readinessGates"] = [{"conditionType": GATE}]
        spec["containers"][0] |= {
            "startupProbe": {"exec": {"command": ["test", "-e", str(started)]}, **often, "failureThreshold": 300},
            "readinessProbe": {"grpc": {"port": port}, **often},
            "livenessProbe": {"tcpSocket": {"port": PORT}, **often, "failureThreshold": 3},
        }
        plane.api.create(path, {"metadata": {"name": "probed"}, "spec": spec})
        wait("the container runs", lambda now: "running" in container(now).get("state", {}))
        assert (False, False) == (container(status())["started"], container(status())["ready"])

        started.touch()
        wait("the command says that it has started", lambda now: container(now)["started"])
        wait("the gRPC server says that it is ready", lambda now: container(now)["ready"])
        ready = condition({"status": status()}, "Ready")
        assert ("False", "ReadinessGatesNotReady") == (ready["status"], ready["reason"])
        opened = {"status": {"conditions": [{"type": GATE, "status": "True"}]}}
        plane.api.patch(f"{path}/probed/status", opened)
        wait("the gate opens", lambda now: condition({"status": now}, "Ready")["status"] == "True")

        fit.unlink()
        wait("a closed port restarts it", lambda now: container(now)["restartCount"] > 0)
        fit.touch()
        wait("it is Ready again", lambda now: condition({"status": now}, "Ready")["status"] == "True")
    wait("without the gRPC server it is not", lambda now: not container(now)["ready"])
    plane.api.delete(f"{path}/probed")
    assert wait_for(lambda: "probed" not in {p["metadata"]["name"] for p in plane.api.items(path)}, timeout_s=90)


@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize(
    ("name", "asked", "reason"),
    [
        ("too-big", {"cpu": "100k"}, "OutOfcpu"),
        ("too-much", {"memory": "100Ti"}, "OutOfmemory"),
        ("elsewhere", {}, "NodeAffinity"),
    ],
)
def test_a_pod_that_does_not_fit_fails_with_the_kubelets_reason(plane, name, asked, reason):
    spec = {**pod_spec(["/bin/sleep", "60"]), "nodeName": NODE}
    spec["containers"][0]["resources"] = {"requests": asked}
    if not asked:
        spec["nodeSelector"] = {"kubernetes.io/hostname": "another"}
    plane.wait_namespace(NAMESPACE)
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    made = plane.api.create(path, {"metadata": {"name": name}, "spec": spec})
    failed = wait_for(lambda: in_phase(plane, f"{path}/{name}", "Failed"), timeout_s=90)
    assert failed, plane.api.get(f"{path}/{name}")["status"]
    assert failed["status"]["reason"] == reason
    assert wait_for(lambda: (reason, "Warning") in told_of(plane, made["metadata"]["uid"]), timeout_s=90)
    plane.api.delete(f"{path}/{name}")


def told_of(plane, uid):
    """Reason and type of the Events of an object."""
    events = plane.api.items(f"/api/v1/namespaces/{NAMESPACE}/events")
    return {(event["reason"], event["type"]) for event in events if event["involvedObject"].get("uid") == uid}


def in_phase(plane, path, phase):
    pod = plane.api.get(path)
    return pod if pod["status"]["phase"] == phase else None


def test_a_killed_agent_leaves_processes_that_the_next_one_ends(agent, health):
    before = health.wait("True")
    pids = container_pids()
    assert len(pids) == 1
    agent.process.kill()
    assert container_pids() == pids
    agent.start()

    def restarted():
        pod = health.pods()[0]
        counts = [c["restartCount"] for c in pod["status"].get("containerStatuses") or []]
        return counts == [1] and condition(pod, "Ready").get("status") == "True" and pod

    after = wait_for(restarted, timeout_s=90)
    assert after, [p["status"] for p in health.pods()]
    assert before["metadata"]["uid"] == after["metadata"]["uid"]
    assert after["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 137
    assert not pids & container_pids()


def test_a_driver_registers_over_its_socket_and_is_deregistered(agent):
    """A small CSI driver in this process: the agent asks it for its name and reports the registration to it."""
    path = Path(agent.settings["kubelet"]["rootDir"], "plugins_registry", "test-driver.sock")

    def counted() -> bool:
        page = fetch(f"http://127.0.0.1:{agent.port}/metrics")[1]
        return f'socket_path="{path}",state="actual_state_of_world"' in page

    driver = PluginServer(path)
    try:
        assert wait_for(lambda: driver.notified, timeout_s=60), "the driver was not registered"
        assert (True, "") == (driver.notified[0].plugin_registered, driver.notified[0].error)
        assert wait_for(counted, timeout_s=60), "the registration is not in the metrics"
    finally:
        driver.server.stop(0).wait(10)
    path.unlink(missing_ok=True)
    assert wait_for(lambda: not counted(), timeout_s=60), "the driver is still registered"


def container_pids() -> set[int]:
    """Processes of this test's server."""
    return {process.pid for process in find_processes(lambda command, _: SERVER.encode() in command)}
