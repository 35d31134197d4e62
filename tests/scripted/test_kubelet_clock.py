"""The clock of a node in mode `kubelet` is set by an hour, forth and back, while its agent runs: a whole process."""

import time

import pytest

from tools.fakes.api_server import FakeApiServer
from tools.kit.ports import free_port
from tools.kit.programs import Program
from tools.kit.stepped import Stepped
from tools.kit.waiting import wait_until

HOUR_S = 3600.0
PATIENT_S = 60.0


class Node:
    """A pod `p` that is ready while a file is there, and a pod `q` whose container ends each time."""

    def __init__(self, api, folder):
        self.api, self.fit = api, folder / "fit"
        self.fit.touch()
        self.clock = Stepped(folder / "clock")
        settings = {
            "mode": "kubelet",
            "listen": {"address": "127.0.0.1", "port": free_port()},
            "kubernetes": {"kubeconfig": str(api.write_kubeconfig(folder / "kubeconfig"))},
            "kubelet": {
                "nodeName": "node-1",
                "podCIDR": "127.22.3.0/24",
                "rootDir": str(folder / "run"),
                "leaseDurationSeconds": 2,
                "nodeStatusUpdateSeconds": 1,
                "maxContainerRestartPeriodSeconds": 1,
            },
        }
        self.program = Program("agent", settings, folder, environ=self.clock.environ)

    def put(self, name, command, **probes):
        container = {"name": "c", "image": "i", "command": ["/bin/sh", "-c", command], **probes}
        self.api.put(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1},
                "spec": {"nodeName": "node-1", "restartPolicy": "Always", "containers": [container]},
                "status": {"phase": "Pending"},
            }
        )

    def container(self, name):
        return (self.api.get("Pod", name) or {}).get("status", {}).get("containerStatuses", [{}])[0]

    def ready(self, name="p"):
        return self.container(name).get("ready")

    def conditions(self):
        return {c["type"]: c["status"] for c in self.api.get("Node", "node-1", "")["status"]["conditions"]}

    def renewed(self):
        return (self.api.get("Lease", "node-1", "kube-node-lease") or {}).get("spec", {}).get("renewTime")

    def waits(self, condition, what):
        wait_until(
            condition, lambda: (what, self.container("p"), self.program.process.text()[-2000:]), timeout_s=PATIENT_S
        )


def another(ask):
    """Whether it says something else than at first."""
    before = ask()
    return lambda: ask() != before


@pytest.fixture
def node(tmp_path):
    with FakeApiServer() as api:
        node = Node(api, tmp_path)
        node.program.start()
        yield node
        node.program.process.kill()


def test_a_step_of_the_clock_stops_no_probe_no_restart_and_no_lease(node):
    probe = {"exec": {"command": ["test", "-e", str(node.fit)]}, "periodSeconds": 1, "failureThreshold": 1}
    node.put("p", "exec sleep 600", readinessProbe=probe, livenessProbe={**probe, "exec": {"command": ["true"]}})
    node.put("q", "exit 3")
    node.waits(lambda: node.ready(), "it becomes ready")
    first = node.container("p")["containerID"]
    for ahead_s in (HOUR_S, 0.0, -HOUR_S):
        node.clock.ahead(ahead_s)
        renewed, restarted = another(node.renewed), another(lambda: node.container("q")["restartCount"])
        node.fit.unlink()
        node.waits(lambda: node.ready() is False, f"its probe fails, {ahead_s}")
        node.fit.touch()
        node.waits(node.ready, f"it is ready again, {ahead_s}")
        node.waits(renewed, f"the Lease is renewed, {ahead_s}")
        node.waits(restarted, f"what ends starts again, {ahead_s}")
    node.put("r", "exec sleep 600", readinessProbe={**probe, "initialDelaySeconds": 3})
    node.waits(lambda: node.container("r").get("started"), "one that is new runs")
    begun = time.monotonic()
    assert not node.ready("r"), "and is not ready before its first probe"
    node.waits(lambda: node.ready("r"), "which is made after its initial delay")
    assert time.monotonic() - begun < PATIENT_S
    assert ("True", first, 0) == (
        node.conditions()["Ready"],
        node.container("p")["containerID"],
        node.container("p")["restartCount"],
    )
    assert (0, True) == (node.program.process.stop(grace_s=30), "Traceback" not in node.program.process.text())
