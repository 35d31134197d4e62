"""A node that passes every check and swallows every pod, and pods that fail wherever they are.

The API server is a real one. The test plays the kubelets: it binds pods and writes what a kubelet says of them.
"""

import itertools
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from extender.cluster.starts import REJECTED
from extender.policy import reasons
from kube import contract
from kube.times import format_micro_time
from tests.kit.waiting import wait_for
from tests.plane.cluster import Cluster
from tests.plane.load import ask, noted
from tests.testbed.plane import identities
from tests.testbed.plane.programs import Extender
from tests.testbed.shared import bare
from tests.testbed.shared.api import Object

PODS = "/api/v1/namespaces/default/pods"
OWNERS = "/api/v1/namespaces/default/configmaps"  # anything may control a pod
RBAC = "/apis/rbac.authorization.k8s.io/v1"
# READYGATE_POISON=1000 is the whole of it, and with the defaults of the configuration.
POISON_PODS = int(os.environ.get("READYGATE_POISON", "100"))
POISON_OWNERS = POISON_PODS // 5
STARTS = {"name": "starts", "podStarts": {} if POISON_PODS >= 1000 else {"stuckSeconds": 10}, "damping": False}
WRITERS = 8
LABEL = "readygate.dev/test-starts"
LEASE, RENEW_S = "renewed", 5.0
GOOD = ("web", "api", "jobs")
LIMIT_S = 60.0
HEALTH = {"name": "health", "damping": False}
(UNEXPECTED,) = REJECTED - {"InvalidNodeInfo"}

_numbers = itertools.count(1)


class Kubelets:
    """Pods that owners put on nodes, and what becomes of them. Ended with the cluster."""

    def __init__(self, cluster: Cluster):
        self._api = cluster.api
        self._owners: dict[str, Object] = {}
        self._renewed = -RENEW_S
        cluster._exit.callback(self.clear)

    def clear(self) -> None:
        for path in (PODS, OWNERS):
            self._api.request("DELETE", f"{path}?labelSelector={LABEL}&gracePeriodSeconds=0")

    def renew(self) -> None:
        """As the kubelets of a cluster do all the time: it tells an extender that no news is no news."""
        if time.monotonic() - self._renewed < RENEW_S:
            return
        self._renewed = time.monotonic()
        spec = {"holderIdentity": LEASE, "leaseDurationSeconds": 40, "renewTime": format_micro_time(time.time())}
        path = f"/apis/coordination.k8s.io/v1/namespaces/{contract.NAMESPACE_NODE_LEASE}/leases"
        self._api.create_unless_there(path, {"metadata": {"name": LEASE}})
        self._api.patch(f"{path}/{LEASE}", {"spec": spec})

    def own(self, *owners: str) -> None:
        with ThreadPoolExecutor(WRITERS) as writers:
            made = writers.map(
                lambda name: self._api.create(OWNERS, {"metadata": {"name": name, "labels": {LABEL: ""}}}), owners
            )
            self._owners.update(zip(owners, made, strict=True))

    def put(self, owner: str, node: str) -> str:
        meta = self._owners[owner]["metadata"]
        name = f"{owner}-{next(_numbers)}"
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": meta["uid"], "controller": True}
        body = {
            "metadata": {"name": name, "ownerReferences": [reference]},
            "spec": bare.pod_spec() | {"nodeName": node},
        }
        self._api.create(PODS, body)
        return name

    def say(self, pod: str, phase: str, reason: str = "", *, sandbox: bool | None = None) -> None:
        conditions = [] if sandbox is None else [{"type": "PodReadyToStartContainers", "status": str(sandbox)}]
        self._api.patch(
            f"{PODS}/{pod}/status", {"status": {"phase": phase, "reason": reason, "conditions": conditions}}
        )

    def runs(self, owner: str, node: str) -> None:
        pod = self.put(owner, node)
        self.say(pod, "Pending", sandbox=False)
        self.say(pod, "Running", sandbox=True)

    def stuck(self, owner: str, node: str) -> str:
        pod = self.put(owner, node)
        self.say(pod, "Pending", sandbox=False)
        return pod

    def rejected(self, owner: str, node: str) -> str:
        pod = self.put(owner, node)
        self.say(pod, "Failed", UNEXPECTED)
        return pod


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    """Where the extender may read what the chart lets it read for such a gate."""
    name = "readygate-pod-starts"
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}
    cluster.api.create(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [rule]})
    cluster._exit.callback(cluster.api.delete, f"{RBAC}/clusterroles/{name}")
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": identities.EXTENDER}],
    }
    cluster.api.create(f"{RBAC}/clusterrolebindings", binding)
    cluster._exit.callback(cluster.api.delete, f"{RBAC}/clusterrolebindings/{name}")
    return cluster


def closed(extender: Extender, nodes: list[str]) -> list[str]:
    answer = ask(extender.port, nodes)
    assert not answer.get("Error", "no answer")
    return sorted(answer["FailedAndUnresolvableNodes"])  # type: ignore[call-overload]


def closed_after(
    kubelets: Kubelets, extender: Extender, nodes: list[str], expected: list[str], timeout_s: float
) -> float:
    began = time.monotonic()

    def as_expected() -> bool:
        kubelets.renew()
        return closed(extender, nodes) == expected

    wait_for(as_expected, timeout_s=timeout_s, every_s=0.1)
    assert expected == closed(extender, nodes)
    return time.monotonic() - began


def test_a_node_that_swallows_pods_is_avoided_within_a_minute_and_a_thousand_poison_pods_close_nothing(
    cluster: Cluster,
) -> None:
    nodes = cluster.add_nodes(4)
    good, bad, *_ = nodes
    cluster.add_health_pods(nodes, ready=True)
    extender = cluster.start_extender(gates=[HEALTH, STARTS | {"severity": "gate"}], heartbeat={})
    softly = cluster.start_extender(gates=[HEALTH, STARTS], heartbeat={})
    kubelets = Kubelets(cluster)

    with noted() as figures:
        began = time.monotonic()
        poison = [f"poison-{number}" for number in range(POISON_OWNERS)]
        kubelets.own(*GOOD, *poison)
        with ThreadPoolExecutor(WRITERS) as writers:
            fail = (kubelets.rejected, kubelets.stuck)
            list(
                writers.map(
                    lambda number: fail[number % 2](poison[number % POISON_OWNERS], nodes[number // POISON_OWNERS % 4]),
                    range(POISON_PODS),
                )
            )
        figures["poison_written_s"] = time.monotonic() - began
        time.sleep(1)
        assert [] == closed(extender, nodes)

        began = time.monotonic()
        for owner in GOOD:
            kubelets.runs(owner, good)
        lasts = [kubelets.stuck(owner, bad) for owner in GOOD]
        figures["stuck_closed_s"] = closed_after(kubelets, extender, nodes, [bad], LIMIT_S)
        assert time.monotonic() - began <= LIMIT_S
        assert [] == closed(softly, nodes), "preferNot refuses nothing"
        cluster.use_extender(extender.url, mode="enforce")
        cluster.add_pod("kept-off", node=bad)
        assert reasons.CLOSED_STARTS_FAIL in cluster.wait_refused("kept-off", timeout_s=30)
        cluster.use_extender(softly.url, weight=10)
        pods = [f"placed-{number}" for number in range(12)]
        for pod in pods:
            cluster.add_pod(pod)
        assert bad not in [cluster.wait_bound(pod, timeout_s=20) for pod in pods]
        said = next(line for line in extender.process.lines() if "node closed" in line)
        assert "pods of 3 owners fail to start here and start elsewhere: default/api (without a sandbox)" in said

        kubelets.say(lasts[0], "Running", sandbox=True)  # the way back: a pod of one of them starts there after all
        figures["opened_s"] = closed_after(kubelets, extender, nodes, [], 10)

        for owner in GOOD:
            kubelets.runs(owner, good)
            kubelets.rejected(owner, bad)
        figures["rejected_closed_s"] = closed_after(kubelets, extender, nodes, [bad], 10)
