"""uninstall.yml leaves the cluster and each host as kubeadm has made them."""

import pytest
import yaml

from kube import contract
from tests.hosts.deployment.conftest import namespaces, scheduler_files
from tests.hosts.deployment.probing import clear
from tests.hosts.path.conftest import traces
from tests.hosts.path.placing import node_of, send
from tests.hosts.waiting import wait_until

pytestmark = pytest.mark.usefixtures("removed")
KINDS = [
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/coordination.k8s.io/v1/leases",
]


def test_the_scheduler_and_kubeadms_configuration_are_as_before(hosts, api, before):
    after = scheduler_files(hosts, api)
    assert before.files.manifest == after.manifest, "byte for byte"
    assert before.files.listing == after.listing
    assert yaml.safe_load(before.files.cluster) == yaml.safe_load(after.cluster)


def test_no_host_has_a_file_a_unit_or_a_user_that_was_not_there(hosts, before):
    assert before.traces == traces(hosts)


def test_the_cluster_has_no_object_and_no_node_a_mark_of_readygate(api):
    assert contract.NAMESPACE not in namespaces(api)
    left = [f"{path}: {one['metadata']['name']}" for path in KINDS for one in api.items(path)]
    assert [] == [one for one in left if "readygate" in one.rpartition(": ")[2]]
    nodes = [
        (node["metadata"].get("labels", {}), node["metadata"].get("annotations", {}), node["status"]["conditions"])
        for node in api.items("/api/v1/nodes")
    ]
    assert "readygate" not in str(nodes)


def test_pods_are_scheduled_without_readygate(api):
    clear(api)
    send(api, "probing-again", None)
    wait_until(lambda: node_of(api, "probing-again"), "a pod is placed")
    clear(api)
