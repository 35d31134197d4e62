"""Five hosts for this folder's tests, with agents in pods that examine the pod network in the profile `fast`."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from images.build import TAG
from kube import contract
from tests.charts.rendering import rendered
from tests.hosts.conftest import booted
from tests.hosts.deployment.api import AdminApi
from tests.hosts.waiting import wait_until
from tools.testbed.hosts import coredns
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.hosts.layout import FIVE
from tools.testbed.shared.api import condition

AGENTS = f"/api/v1/namespaces/{contract.NAMESPACE}/pods?labelSelector={contract.LABEL_NAME}%3D{contract.NAME_AGENT}"
CHECK = {"name": "pod-network", "podNetwork": {}, "timeoutSeconds": 1}
ONCE_A_SECOND = 1.0


@dataclass
class Agents:
    """The health pods, as the API server has them: whether each is Ready, which is what the gate reads."""

    hosts: Hosts
    api: AdminApi

    def ready(self) -> dict[str, str]:
        """By node."""
        return {
            pod["spec"]["nodeName"]: condition(pod, contract.CONDITION_READY).get("status", "")
            for pod in self.api.items(AGENTS)
        }

    def closed(self) -> set[str]:
        return {node for node, status in self.ready().items() if status != "True"}

    def says(self, node: str) -> str:
        """What the check says of its node. Asked from the node itself, as the kubelet does."""
        (address,) = [p["status"]["podIP"] for p in self.api.items(AGENTS) if p["spec"]["nodeName"] == node]
        done = self.hosts.ssh(node, f"curl --silent --max-time 5 http://{address}:9375/checks", check=False)
        if done.returncode != 0:
            return "not reached"
        (check,) = json.loads(done.stdout)["checks"]
        return f"{check['state']}: {check['output']}"

    def said(self) -> dict[str, str]:
        """What the check says of each node."""
        return {node: self.says(node) for node in self.hosts.names}

    def states(self) -> set[str]:
        """Of the check, on all nodes."""
        return {text.partition(":")[0] for text in self.said().values()}

    def wait_well(self) -> None:
        well = dict.fromkeys(self.hosts.names, "True")
        wait_until(lambda: self.ready() == well, lambda: f"all are Ready: {self.ready()} {self.said()}")
        wait_until(lambda: self.states() == {"passed"}, lambda: f"all pass: {self.said()}")

    def never_closed(self, nodes: set[str], seconds: float) -> set[str]:
        """Those of these nodes that were closed at some time."""
        found: set[str] = set()
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            found |= self.closed() & nodes
            time.sleep(ONCE_A_SECOND)
        return found

    @contextmanager
    def healed(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.wait_well()


@pytest.fixture(scope="package")
def five(request: pytest.FixtureRequest) -> Iterator[Hosts]:
    """Five Ready nodes, with DNS."""
    with booted(request, FIVE, "five") as found:
        coredns.install(found)
        yield found


@pytest.fixture(scope="package")
def agents(five: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Agents:
    """All of them Ready, with peers."""
    repository, _, tag = TAG.rpartition(":")
    values = {
        "image.repository": repository,
        "image.tag": tag,
        "image.pullPolicy": "Never",
        "namespace.create": True,
        "agent.profile": "fast",
        "agent.cni.check": False,
        "agent.checks": [CHECK],
        "agent.minReadySeconds": 1,
        "agent.maxUnavailable": 5,
    }
    text = rendered(given=[f"{key}={json.dumps(value)}" for key, value in values.items()])
    five.kubectl("apply", "--server-side", "--filename=-", stdin=text)
    found = Agents(five, AdminApi(five.kubeconfig, tmp_path_factory.mktemp("five-admin")))
    wait_until(lambda: set(found.ready()) == set(five.names), lambda: f"each node has an agent: {found.ready()}")
    found.wait_well()
    return found
