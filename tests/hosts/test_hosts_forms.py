"""The agent in pods and as a service beside them, brought to a new cluster by one run of site.yml."""

from collections.abc import Iterator

import pytest

from agent.wire.condition import ANNOTATION_SPEAKER, SPEAKER_NODE
from images.build import readygate_image
from kube import contract
from tests.hosts.deployment.api import AdminApi
from tests.hosts.deployment.conftest import ansible_for
from tests.hosts.deployment.playbook import Run
from tests.testbed.hosts.hosts import Hosts
from tests.testbed.shared.api import condition

PODS = f"/api/v1/namespaces/{contract.NAMESPACE}/pods?labelSelector=app.kubernetes.io%2Fname%3D{contract.NAME_AGENT}"


@pytest.fixture(scope="module")
def both(hosts: Hosts, image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Where the pods are ready only when the service says so of each."""
    ansible = ansible_for(hosts, image, tmp_path_factory.mktemp("both"), "both")
    given = {
        "readygate_agent_form": "both",
        "readygate_node_archives": [str(readygate_image(hosts.progress))],
        "readygate_node_serial": ["100%"],
        "readygate_node_min_ready_seconds": 2,
    }
    try:
        yield ansible.run("site.yml", **given)
    finally:
        removed = [ansible.run("uninstall.yml"), ansible.run("node-plugin-uninstall.yml")]
        assert [0, 0] == [run.code for run in removed]


def test_one_run_ends_with_every_pod_ready_by_the_word_of_its_service(
    hosts: Hosts, both: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert 0 == both.code, both.told()
    pods = AdminApi(hosts.kubeconfig, tmp_path_factory.mktemp("admin")).items(PODS)
    words = {
        pod["spec"]["nodeName"]: (
            pod["metadata"]["annotations"].get(ANNOTATION_SPEAKER),
            condition(pod, contract.CONDITION_NODE_HEALTHY).get("status"),
            condition(pod, "Ready").get("status"),
        )
        for pod in pods
    }
    assert dict.fromkeys(hosts.names, (SPEAKER_NODE, "True", "True")) == words
    services = {name: hosts.ssh(name, "systemctl is-active readygate-node").stdout.strip() for name in hosts.names}
    assert dict.fromkeys(hosts.names, "active") == services
