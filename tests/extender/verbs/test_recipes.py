"""Each recipe of docs/gates.md, on objects as the project's own manifests make them: whom it keeps off which node."""

import re
import time
from pathlib import Path

import pytest

from extender.cluster import observed
from extender.config.settings import parse
from extender.policy.snapshot import SCORE_AVOIDED, SCORE_OPEN
from extender.process.services import Services
from extender.web.app import create_app
from kube import selector
from kube.times import format_time
from tests.contract.go_types import read_filter_result
from tests.extender.builders import node, node_json, owner, pod, seen
from tests.extender.cluster.test_pod_starts import pod as starting
from tests.extender.cluster.test_pod_starts import rejected
from tests.extender.verbs.test_filter import FakeCache
from tools.kit.brakes import OFF_YAML
from tools.kit.clock import Clock

GATES = (Path(__file__).resolve().parents[3] / "docs" / "gates.md").read_text()
RECIPES = dict(re.findall(r"^```yaml\n# (gate-[\w-]+\.yaml)\n(.*?)^```", GATES, re.DOTALL | re.MULTILINE))
ANY = {"metadata": {"name": "p", "namespace": "default"}}
ON_GPU = ANY | {"spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
BY_CLAIM = ANY | {"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "single-gpu"}]}}
SECOND_NETWORK = {"metadata": ANY["metadata"] | {"labels": {"example.com/second-network": "true"}}}


def with_volume_of(driver: str) -> dict:
    return ANY | {"spec": {"volumes": [{"name": "v", "csi": {"driver": driver}}]}}


# namespace, labels and DaemonSet of the project's pods; a pod that the gate speaks for, one that it does not, if any.
HEALTH_PODS = [
    pytest.param("gate-cilium.yaml", "kube-system", {"k8s-app": "cilium"}, "cilium", ANY, None, id="Cilium"),
    pytest.param(
        "gate-calico.yaml", "calico-system", {"k8s-app": "calico-node"}, "calico-node", ANY, None, id="Calico"
    ),
    pytest.param(
        *("gate-node-local-dns.yaml", "kube-system", {"k8s-app": "node-local-dns"}, "node-local-dns", ANY, None),
        id="NodeLocal DNSCache",
    ),
    pytest.param(
        *("gate-nvidia.yaml", "gpu-operator", {"app": "nvidia-operator-validator"}, "nvidia-operator-validator"),
        *(ON_GPU, ANY),
        id="NVIDIA GPU operator",
    ),
    pytest.param(
        *("gate-devices.yaml", "gpu-operator", {"app": "nvidia-operator-validator"}, "nvidia-operator-validator"),
        *(BY_CLAIM, ANY),
        id="devices by DRA",
    ),
    pytest.param(
        *("gate-ebs.yaml", "kube-system", {"app": "ebs-csi-node"}, "ebs-csi-node"),
        *(with_volume_of("ebs.csi.aws.com"), with_volume_of("efs.csi.aws.com")),
        id="EBS CSI driver",
    ),
    pytest.param(
        *("gate-ceph.yaml", "rook-ceph", {"app": "csi-rbdplugin"}, "csi-rbdplugin"),
        *(with_volume_of("rook-ceph.rbd.csi.ceph.com"), with_volume_of("rook-ceph.cephfs.csi.ceph.com")),
        id="Ceph CSI driver",
    ),
    pytest.param(
        *("gate-multus.yaml", "kube-system", {"name": "multus", "app": "multus", "tier": "node"}, "kube-multus-ds"),
        *(SECOND_NETWORK, ANY),
        id="Multus",
    ),
]


class Cluster:
    """An extender with one recipe; its threads are not started."""

    def __init__(self, recipe: str) -> None:
        self.clock = Clock(1000.0)
        self.services = Services(parse(OFF_YAML + RECIPES[recipe]), None, monotonic=self.clock)
        self.services.watch_with({"pods": FakeCache("pods"), "nodes": FakeCache("nodes")}, required=("pods", "nodes"))

    def passed(self, asked: dict, *names: str) -> list[str]:
        self.services.decider.turn()
        client = create_app(self.services).test_client()
        answer = client.post("/filter", json={"Pod": asked, "Nodes": None, "NodeNames": list(names)})
        return read_filter_result(answer.data).NodeNames


@pytest.mark.parametrize(("recipe", "namespace", "labels", "daemon_set", "asked", "other"), HEALTH_PODS)
def test_a_recipe_keeps_off_the_pods_it_is_for_where_its_daemon_set_is_not_ready(
    recipe: str, namespace: str, labels: dict, daemon_set: str, asked: dict, other: dict | None
) -> None:
    cluster = Cluster(recipe)
    index = cluster.services.index
    (listed,) = index.lists.values()
    assert (namespace, True) == (listed.namespace, selector.parse(listed.label_selector).matches(labels))
    index.replace_nodes([node(name) for name in ("good", "bad", "without")])
    given = {"namespace": namespace, "owners": [owner(daemon_set)]}
    index.replace_pods(listed, [pod("good", **given), pod("bad", Ready="False", **given)])
    assert ["good"] == cluster.passed(asked, "good", "bad", "without")
    if other is not None:
        assert ["good", "bad", "without"] == cluster.passed(other, "good", "bad", "without")


def written_now(one: dict) -> observed.Node:
    for condition in one["status"]["conditions"]:
        condition["lastHeartbeatTime"] = format_time(time.time())
    return seen(observed.Node, one)


def test_node_problem_detector_speaks_by_conditions_of_the_node() -> None:
    cluster = Cluster("gate-npd.yaml")
    nodes = {
        "well": {"KernelDeadlock": "False", "ReadonlyFilesystem": "False"},
        "deadlocked": {"KernelDeadlock": "True", "ReadonlyFilesystem": "False"},
        "never-ran": {},
    }
    cluster.services.index.replace_nodes([written_now(node_json(name, **told)) for name, told in nodes.items()])
    assert {} == cluster.services.index.lists
    assert ["well", "never-ran"] == cluster.passed(ANY, *nodes)


def test_where_pods_do_not_start_that_start_elsewhere_others_are_rather_not_put() -> None:
    cluster = Cluster("gate-starts.yaml")
    index, starts = cluster.services.index, cluster.services.starts
    assert starts is not None
    index.replace_nodes([node("good"), node("bad")])
    (listed,) = index.lists.values()
    index.replace_pods(listed, [pod("good"), pod("bad")])
    for name in ("web", "api", "jobs"):
        starts.upsert(starting(name, "good", name=f"{name}-runs"))
        starts.remove(starting(name, "good", name=f"{name}-runs"))
        put = {"name": f"{name}-bad", "namespace": name, "uid": f"uid-{name}-bad"}
        assert ["good", "bad"] == cluster.passed({"metadata": put}, "good", "bad")
        starts.upsert(rejected(name, "bad", name=f"{name}-bad"))
    cluster.services.recorder.turn()
    cluster.clock.time += 1.0
    assert ["good", "bad"] == cluster.passed(ANY, "good", "bad")
    assert {"good": SCORE_OPEN, "bad": SCORE_AVOIDED} == cluster.services.board.score(["good", "bad"])


def test_each_recipe_is_tried() -> None:
    assert {one.values[0] for one in HEALTH_PODS} | {"gate-npd.yaml", "gate-starts.yaml"} == set(RECIPES)
