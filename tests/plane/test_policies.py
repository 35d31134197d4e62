"""What agent, extender and tenants may write, asked of the real API server by hundreds of writes by chance.

Nothing is written, all are dry runs.
"""

import json
import random
from collections import Counter

import pytest

from kube import contract
from tests.plane.cluster import Cluster
from tests.plane.confined import impersonated
from tests.plane.writes import NS, Write, writes
from tools.testbed.shared.api import ApiError

WRITES = 200


@pytest.fixture(scope="module")
def cluster(policed: Cluster) -> Cluster:
    return policed


def test_of_200_writes_none_is_allowed_wrongly_and_none_denied_wrongly(confined, seed, artefacts):
    drawn = writes(random.Random(seed), WRITES, own=confined.own, other=confined.other, node=confined.node)
    said = [(write, confined.refused(write)) for write in drawn]
    wrong = {
        "wrong allows": [str(write) for write, refusal in said if not refusal and not write.allowed],
        "wrong denies": [f"{write}: {refusal}" for write, refusal in said if refusal and write.allowed],
    }
    figures = Counter(f"{write.actor}, {'allowed' if write.allowed else 'denied'}" for write in drawn)
    table = {"seed": seed, "writes": len(drawn), **dict(sorted(figures.items())), **wrong}
    (artefacts / "policies.json").write_text(json.dumps(table, indent=2) + "\n")
    assert {"wrong allows": [], "wrong denies": []} == wrong
    assert min(sum(write.allowed is word for write in drawn) for word in (True, False)) > WRITES / 5


@pytest.mark.parametrize(
    ("actor", "change", "allowed"),
    [
        pytest.param(
            "tenant", {"containers": [{"name": "main", "image": "i:2"}]}, False, id="another image, by `edit`"
        ),
        pytest.param(
            "deployer", {"containers": [{"name": "main", "image": "i:2"}]}, True, id="by who may use the account"
        ),
        pytest.param("daemon sets", {"activeDeadlineSeconds": 60}, True, id="by a controller of the cluster"),
    ],
)
def test_what_a_pod_of_ours_runs_is_changed_by_few(confined, cluster, actor, change, allowed):
    group = "system:serviceaccounts:kube-system"
    controller = impersonated(cluster, "system:serviceaccount:kube-system:daemon-set-controller", group)
    api = confined.actors.get(actor, controller)
    path = f"/api/v1/namespaces/{NS}/pods/{confined.own}"
    try:
        api.patch(f"{path}?dryRun=All", {"spec": change})
        refused = ""
    except ApiError as e:
        refused = e.message
    assert allowed == ("may use the service account" not in refused)


def test_a_pod_of_ours_is_resized_by_whoever_may_resize_pods(confined):
    body = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "20m"}}}]}}
    try:
        confined.actors["tenant"].patch(f"/api/v1/namespaces/{NS}/pods/{confined.own}/resize?dryRun=All", body)
        refused = ""
    except ApiError as e:
        refused = e.message
    assert "may use the service account" not in refused


def test_into_a_secret_that_has_a_token_nobody_else_writes_another_account(confined, cluster):
    secret = {
        "metadata": {"name": "tried", "annotations": {"kubernetes.io/service-account.name": "readygate-tried"}},
        "type": "kubernetes.io/service-account-token",
    }
    path = f"/api/v1/namespaces/{NS}/secrets"
    cluster.api.create(path, secret)
    try:
        change = {"metadata": {"annotations": {"kubernetes.io/service-account.name": contract.NAME_EXTENDER}}}
        write = Write("tenant", "PATCH", f"{path}/tried", change, allowed=False)
        assert "may use the service account" in confined.refused(write)
    finally:
        cluster.api.delete(f"{path}/tried")


MIRROR = {"kubernetes.io/config.mirror": "h"}
CONTAINERS = [{"name": "c", "image": "registry.invalid/none:1"}]


@pytest.mark.parametrize(
    ("user", "group", "annotations"),
    [
        pytest.param("system:kube-controller-manager", "", {}, id="a controller manager with one identity"),
        pytest.param(
            "system:serviceaccount:kube-system:daemon-set-controller",
            "system:serviceaccounts:kube-system",
            {},
            id="the controller of DaemonSets",
        ),
        pytest.param("system:node:{node}", "system:nodes", MIRROR, id="a kubelet that shows its static pod"),
    ],
)
def test_who_makes_pods_for_the_cluster_is_not_hindered(confined, cluster, user, group, annotations):
    api = impersonated(cluster, user.format(node=confined.node), *([group] if group else []))
    metadata = {"name": "made", "annotations": annotations}
    if annotations:
        node = cluster.api.get(f"/api/v1/nodes/{confined.node}")
        owner = {"apiVersion": "v1", "kind": "Node", "name": confined.node, "uid": node["metadata"]["uid"]}
        metadata["ownerReferences"] = [owner | {"controller": True}]
    spec = {"nodeName": confined.node, "containers": CONTAINERS, "automountServiceAccountToken": False}
    refused = ""
    try:
        api.create(f"/api/v1/namespaces/{NS}/pods?dryRun=All", {"metadata": metadata, "spec": spec})
    except ApiError as e:
        refused = e.message
    assert "may use the service account" not in refused
    assert refused == "" or "cannot create resource" in refused  # where this plane's roles do not name who asks
