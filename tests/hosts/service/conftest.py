"""Health pods, the agent as a service beside them, and an extender; once for all tests of this folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from images.build import readygate_image
from tests.hosts.deployment.api import AdminApi
from tests.hosts.deployment.conftest import ansible_for
from tests.hosts.deployment.playbook import Ansible, Run
from tests.hosts.service.node_mode import NAME, NS, Node, beside_health_pods, deciding
from tools.kit.programs import Program
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.shared.binaries import kubernetes_version

FIRST = "worker-1"  # faults are made here
KUBELET = "/var/lib/kubelet/config.yaml"
# Else a container that is killed often waits for minutes.
AT_ONCE = "crashLoopBackOff: {maxContainerRestartPeriod: 1s}"
# Kubelets know it from 1.36, where it is off, and have it on from 1.37.
PODS_API = not kubernetes_version().startswith("v1.35.")
HEALTH_PODS = {"namespace": NS, "labelSelector": f"app={NAME}", "daemonSet": NAME}
LOCAL = "featureGates: {PodsAPI: true}" if PODS_API else ""


@contextmanager
def of_our_kubelet(hosts: Hosts) -> Iterator[None]:
    """Containers of the node are restarted at once, and it tells its pods on a socket."""
    before = f"{KUBELET}.before"
    try:
        # A run that was killed may have left it.
        hosts.ssh(
            FIRST, f"[ -e {before} ] || cp {KUBELET} {before}; (cat {before}; echo '{AT_ONCE}\n{LOCAL}') > {KUBELET}"
        )
        hosts.ssh(FIRST, "systemctl restart kubelet")
        yield
    finally:
        hosts.ssh(FIRST, f"if [ -e {before} ]; then mv {before} {KUBELET}; systemctl restart kubelet; fi")


@dataclass(frozen=True)
class Service:
    """The agents that beat and speak for the health pods of all hosts, FIRST first."""

    nodes: list[Node]
    ansible: Ansible

    def play(self, **more: object) -> Run:
        """Brings it there, or gives it more to do."""
        archive = readygate_image(self.nodes[0].hosts.progress)
        given = {
            "readygate_node_archives": [str(archive)],
            "readygate_node_serial": ["100%"],
            "readygate_node_min_ready_seconds": 1,
            "readygate_node_ready_timeout_seconds": 150,
            "readygate_node_heartbeat": True,
            "readygate_node_check_profile": "",  # each test names what it examines
            "readygate_node_health_pods": [HEALTH_PODS],
        }
        run = self.ansible.run("node-plugin.yml", **{**given, **more})
        assert run.code == 0, run.told()
        return run


@pytest.fixture(scope="package")
def service(hosts: Hosts, image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """It checks nothing."""
    folder = tmp_path_factory.mktemp("service")
    api = AdminApi(hosts.kubeconfig, folder)
    names = [FIRST, *(name for name in hosts.names if name != FIRST)]
    nodes = [Node(hosts, api, name, folder / f"{name}.log") for name in names]
    made = Service(nodes, ansible_for(hosts, image, folder, "service"))
    with of_our_kubelet(hosts), beside_health_pods(nodes, image):
        try:
            made.play()
            yield made
        finally:
            removed = made.ansible.run("node-plugin-uninstall.yml")
        assert removed.code == 0, removed.told()


@pytest.fixture(scope="package")
def nodes(service: Service) -> list[Node]:
    return service.nodes


@pytest.fixture(scope="package")
def extender(nodes: list[Node], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with deciding(nodes, tmp_path_factory.mktemp("extender")) as found:
        yield found
