"""The agent in pods and as a service beside them, and as a service alone for health pods of the operator's own: each
brought to a new cluster by one run of site.yml.
"""

import json
from collections.abc import Iterator

import pytest

from agent.wire.condition import ANNOTATION_SPEAKER, SPEAKER_NODE
from images.build import readygate_image
from kube import contract
from tests.hosts.deployment.api import AdminApi
from tests.hosts.deployment.conftest import ansible_for
from tests.hosts.deployment.playbook import Run
from tests.hosts.waiting import wait_until
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.shared.api import condition

OWN = "own-health"  # a namespace, and what is in it
OF_OWN = {"namespace": OWN, "labelSelector": f"app={OWN}", "daemonSet": OWN}
OWN_PODS = f"/api/v1/namespaces/{OWN}/pods"
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


def own_health_pods(image: str) -> str:
    """Pods of somebody else's, which the service is to speak for: they have its readiness gate, name it as the one who
    speaks, and may patch their own status."""
    spec = {
        "serviceAccountName": OWN,
        "terminationGracePeriodSeconds": 1,
        "readinessGates": [{"conditionType": contract.CONDITION_NODE_HEALTHY}],
        "containers": [{"name": "sleeps", "image": image, "imagePullPolicy": "Never", "command": ["sleep", "86400"]}],
        "tolerations": [{"operator": "Exists"}],
    }
    labels = {"app": OWN}
    template = {"metadata": {"labels": labels, "annotations": {ANNOTATION_SPEAKER: SPEAKER_NODE}}, "spec": spec}
    there = {"name": OWN, "namespace": OWN}
    rbac = "rbac.authorization.k8s.io"
    rule = {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]}
    account = {"kind": "ServiceAccount", **there}
    items = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OWN}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": there},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": there, "rules": [rule]},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": there,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": OWN},
            "subjects": [account],
        },
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": there,
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        },
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


@pytest.fixture(scope="module")
def alone(hosts: Hosts, image: str, both: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """After the pods of `both`, which go."""
    assert 0 == both.code
    ansible = ansible_for(hosts, image, tmp_path_factory.mktemp("alone"), "alone")
    admin = AdminApi(hosts.kubeconfig, tmp_path_factory.mktemp("admin"))
    given = {
        "readygate_agent_form": "node",
        "readygate_node_archives": [str(readygate_image(hosts.progress))],
        "readygate_node_serial": ["100%"],
        "readygate_node_min_ready_seconds": 2,
        "readygate_node_health_pods": [OF_OWN],
        "readygate_extender_configuration": {"gates": [{"healthPods": OF_OWN}]},
    }
    try:
        hosts.kubectl("apply", "--validate=false", "-f-", stdin=own_health_pods(image))
        wait_until(lambda: len(admin.items(OWN_PODS)) == len(hosts.names), "a pod on each node")
        yield ansible.run("site.yml", **given)
    finally:
        hosts.kubectl("delete", "namespace", OWN, "--ignore-not-found", "--timeout=60s", timeout_s=90.0)


def test_another_run_ends_with_the_service_alone_and_it_speaks_for_pods_of_ones_own(
    hosts: Hosts, alone: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert 0 == alone.code, alone.told()
    admin = AdminApi(hosts.kubeconfig, tmp_path_factory.mktemp("admin"))
    assert [] == [pod for pod in admin.items(PODS) if "deletionTimestamp" not in pod["metadata"]]

    def words() -> dict[str, tuple[str | None, ...]]:
        kinds = (contract.CONDITION_NODE_HEALTHY, "Ready")
        return {
            pod["spec"]["nodeName"]: tuple(condition(pod, kind).get("status") for kind in kinds)
            for pod in admin.items(OWN_PODS)
        }

    expected = dict.fromkeys(hosts.names, ("True", "True"))
    wait_until(lambda: expected == words(), lambda: f"all are well: {words()}")
