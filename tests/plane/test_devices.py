"""Pods that claim devices by DRA before the real kube-scheduler: only they are kept off nodes that the gate closes."""

import pytest

from extender.policy import reasons
from kube import contract
from tests.plane.cluster import Cluster
from tools.testbed.plane.identities import EXTENDER
from tools.testbed.shared.api import Object
from tools.testbed.shared.binaries import kubernetes_version

GROUP, RBAC = "/apis/resource.k8s.io/v1", "/apis/rbac.authorization.k8s.io/v1"
GPU, NIC = "gpu.nvidia.com", "dra.net"
MAPPED = "example.com/gpu"  # an extended resource that the class of GPUs serves
RIGHTS = f"{contract.NAME_EXTENDER}-devices"


def device_class(driver: str, **spec: str) -> Object:
    selectors = [{"cel": {"expression": f"device.driver == '{driver}'"}}]
    return {"metadata": {"name": driver}, "spec": {"selectors": selectors, **spec}}


def claim(driver: str) -> Object:
    return {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": driver}}]}}


def template(driver: str) -> Object:
    return {"metadata": {"name": driver}, "spec": {"spec": claim(driver)}}


def devices_of(node: str, driver: str) -> Object:
    pool = {"name": f"{node}-{driver}", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"device-{number}"} for number in range(8)]
    spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": devices}
    return {"metadata": {"name": f"{node}-{driver}"}, "spec": spec}


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    """A node that is open and one that is closed, with GPUs and network devices, and rights as the chart gives them."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": RIGHTS}
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": EXTENDER}
    read = {
        "apiGroups": ["resource.k8s.io"],
        "resources": ["resourceclaims", "resourceclaimtemplates", "deviceclasses"],
        "verbs": ["list", "watch"],
    }
    made: list[tuple[str, Object]] = [
        (f"{RBAC}/clusterroles", {"metadata": {"name": RIGHTS}, "rules": [read]}),
        (f"{RBAC}/clusterrolebindings", {"metadata": {"name": RIGHTS}, "roleRef": role, "subjects": [user]}),
        (f"{GROUP}/deviceclasses", device_class(GPU, extendedResourceName=MAPPED)),
        (f"{GROUP}/deviceclasses", device_class(NIC)),
        *((f"{GROUP}/namespaces/default/resourceclaimtemplates", template(driver)) for driver in (GPU, NIC)),
    ]
    opened, closed = cluster.add_nodes(2)
    made += [(f"{GROUP}/resourceslices", devices_of(node, one)) for node in (opened, closed) for one in (GPU, NIC)]
    for path, body in made:
        cluster.api.create(path, body)
        cluster._exit.callback(cluster.api.delete, f"{path}/{body['metadata']['name']}")
    cluster.add_health_pods([opened], ready=True)
    cluster.add_health_pods([closed], ready=False)
    return cluster


def claims(driver: str) -> Object:
    """Of a pod's spec."""
    container = {"name": "main", "image": "registry.invalid/none:1", "resources": {"claims": [{"name": "device"}]}}
    return {"resourceClaims": [{"name": "device", "resourceClaimTemplateName": driver}], "containers": [container]}


@pytest.mark.parametrize(
    "pods", [{"deviceClasses": [GPU]}, {"resources": ["nvidia.com/gpu"]}], ids=["class", "resource"]
)
def test_pods_that_claim_a_gpu_are_kept_off_a_closed_node_and_others_are_not(cluster: Cluster, pods: Object):
    closed = next(name for name, is_open in cluster._open.items() if not is_open)
    extender = cluster.start_extender(gates=[{"name": "gpu", "for": pods, "damping": False}])
    cluster.use_extender(extender.url, mode="enforce")
    cluster.add_pod("gpu", node=closed, **claims(GPU))
    cluster.add_pod("nic", node=closed, **claims(NIC))
    cluster.add_pod("plain", node=closed)
    cluster.add_pod("anywhere", **claims(GPU))
    assert closed == cluster.wait_bound("nic")
    assert closed == cluster.wait_bound("plain")
    assert reasons.CLOSED_NOT_READY in cluster.wait_refused("gpu")
    assert cluster.wait_bound("anywhere") not in ("", closed)
    cluster.health_pods[closed].say(ready=True)
    assert closed == cluster.wait_bound("gpu")


@pytest.mark.skipif(kubernetes_version() < "v1.36", reason="DRA serves extended resources from Kubernetes 1.36 on")
def test_pods_that_request_a_resource_that_dra_serves_are_kept_off_too(cluster: Cluster):
    closed = next(name for name, is_open in cluster._open.items() if not is_open)
    extender = cluster.start_extender(gates=[{"name": "gpu", "for": {"deviceClasses": [GPU]}, "damping": False}])
    cluster.use_extender(extender.url, mode="enforce")
    container = {"name": "main", "image": "registry.invalid/none:1", "resources": {"limits": {MAPPED: "1"}}}
    cluster.add_pod("mapped", node=closed, containers=[container])
    cluster.add_pod("free", containers=[container])
    assert reasons.CLOSED_NOT_READY in cluster.wait_refused("mapped")
    assert cluster.wait_bound("free") not in ("", closed)
    cluster.health_pods[closed].say(ready=True)
    assert closed == cluster.wait_bound("mapped")
