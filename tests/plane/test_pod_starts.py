"""A node that passes every check and swallows every pod, pods that fail wherever they are, and a tenant who makes some.

The API server is a real one. The test plays the kubelets: it binds pods and writes what a kubelet reports of them. It
also plays kube-scheduler: it asks the extenders about each pod that it binds.
"""

import itertools
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest

from extender.cluster.pod_starts import REJECTED
from extender.policy import reasons
from kube import contract
from kube.times import format_micro_time
from tests.plane.cluster import Cluster
from tests.plane.load import ask, noted
from tools.kit.scope import draws
from tools.kit.waiting import wait_for
from tools.testbed.plane import identities
from tools.testbed.plane.programs import Extender
from tools.testbed.shared import bare
from tools.testbed.shared.api import Object
from tools.testbed.shared.removal import delete_all

RBAC = "/apis/rbac.authorization.k8s.io/v1"
POISON_OWNERS = draws(gate=30, whole=200)
POISON_PODS = 5 * POISON_OWNERS  # once on each node, and once more
# The least that may be configured; the whole proof has the default.
STUCK_S = draws(gate=10, whole=30)
STARTS = {"name": "starts", "podStarts": {"stuckSeconds": STUCK_S}, "damping": False}
WRITERS = 8
LABEL = "readygate.dev/test-starts"
LEASE, RENEW_S = "renewed", 5.0
TEAMS = ("starts-api", "starts-jobs", "starts-web")  # namespaces, each with an owner `web`
EVIL = "starts-evil"
LIMIT_S = 120.0
HEALTH = {"name": "health", "damping": False}
(UNEXPECTED,) = REJECTED - {"InvalidNodeInfo"}

_numbers = itertools.count(1)


class Kubelets:
    """Pods that owners put on nodes, and what becomes of them. Ended with the cluster.

    Owners are `namespace/name`. asks: extenders that are asked about each pod.
    """

    def __init__(self, cluster: Cluster, asks: Iterable[Extender]):
        self._api = cluster.api
        self._plane = cluster.plane
        self._ports = [extender.port for extender in asks]
        self._owners: dict[str, Object] = {}
        self._renewed = -RENEW_S
        cluster._exit.callback(self.clear)

    def clear(self) -> None:
        for namespace in {owner.partition("/")[0] for owner in self._owners}:
            for kind in ("pods", "configmaps"):
                delete_all(self._api, f"/api/v1/namespaces/{namespace}/{kind}", selector=LABEL)

    def renew(self) -> None:
        """As the kubelets of a cluster do all the time, so that the extender knows its data to be fresh."""
        if time.monotonic() - self._renewed < RENEW_S:
            return
        self._renewed = time.monotonic()
        spec = {"holderIdentity": LEASE, "leaseDurationSeconds": 40, "renewTime": format_micro_time(time.time())}
        path = f"/apis/coordination.k8s.io/v1/namespaces/{contract.NAMESPACE_NODE_LEASE}/leases"
        self._api.create_unless_there(path, {"metadata": {"name": LEASE}})
        self._api.patch(f"{path}/{LEASE}", {"spec": spec})

    def own(self, *owners: str) -> None:
        """Anything may control a pod: each owner is a ConfigMap."""
        for namespace in sorted({owner.partition("/")[0] for owner in owners}):
            self._api.create_unless_there("/api/v1/namespaces", {"metadata": {"name": namespace}})
            self._plane.wait_namespace(namespace)

        def make(owner: str) -> Object:
            namespace, _, name = owner.partition("/")
            body = {"metadata": {"name": name, "labels": {LABEL: ""}}}
            return self._api.create(f"/api/v1/namespaces/{namespace}/configmaps", body)

        with ThreadPoolExecutor(WRITERS) as writers:
            self._owners.update(zip(owners, writers.map(make, owners), strict=True))

    def put(self, owner: str, node: str, *, asked: bool = True) -> str:
        """The path of a new pod on that node. asked: kube-scheduler asks about it."""
        meta = self._owners[owner]["metadata"]
        namespace, _, name = owner.partition("/")
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": meta["uid"], "controller": True}
        body = {
            "metadata": {"name": f"{name}-{next(_numbers)}", "labels": {LABEL: ""}, "ownerReferences": [reference]},
            "spec": bare.pod_spec() | {"nodeName": node, "automountServiceAccountToken": True},  # as nearly all pods
        }
        made = self._api.create(f"/api/v1/namespaces/{namespace}/pods", body)
        for port in self._ports if asked else ():
            assert ask(port, [node], pod={"metadata": made["metadata"], "spec": {}}), "the extender answers"
        return f"/api/v1/namespaces/{namespace}/pods/{made['metadata']['name']}"

    def say(self, pod: str, phase: str, reason: str = "", *, sandbox: bool | None = None) -> None:
        conditions = [] if sandbox is None else [{"type": "PodReadyToStartContainers", "status": str(sandbox)}]
        self._api.patch(f"{pod}/status", {"status": {"phase": phase, "reason": reason, "conditions": conditions}})

    def runs(self, owner: str, node: str) -> None:
        pod = self.put(owner, node)
        self.say(pod, "Pending", sandbox=False)
        self.say(pod, "Running", sandbox=True)

    def stuck(self, owner: str, node: str, *, asked: bool = True) -> str:
        pod = self.put(owner, node, asked=asked)
        self.say(pod, "Pending", sandbox=False)
        return pod

    def rejected(self, owner: str, node: str, *, asked: bool = True) -> str:
        pod = self.put(owner, node, asked=asked)
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


def closed_for(kubelets: Kubelets, extender: Extender, nodes: list[str], expected: list[str], seconds: float) -> None:
    """Whether exactly these nodes are closed all this time."""
    until = time.monotonic() + seconds

    def differs() -> bool:
        kubelets.renew()
        return closed(extender, nodes) != expected

    assert not wait_for(differs, timeout_s=until - time.monotonic(), every_s=0.2), closed(extender, nodes)


def test_a_node_that_swallows_pods_is_avoided_and_poison_pods_close_nothing(
    cluster: Cluster,
) -> None:
    nodes = cluster.add_nodes(4)
    good, bad, *_ = nodes
    cluster.add_health_pods(nodes, ready=True)
    extender = cluster.start_extender(gates=[HEALTH, STARTS | {"severity": "gate"}], heartbeat={})
    softly = cluster.start_extender(gates=[HEALTH, STARTS], heartbeat={})
    kubelets = Kubelets(cluster, [extender, softly])
    teams = [f"{namespace}/web" for namespace in TEAMS]

    with noted() as figures:
        began = time.monotonic()
        poison = [f"{TEAMS[number % len(TEAMS)]}/poison-{number}" for number in range(POISON_OWNERS)]
        kubelets.own(*teams, *poison)
        fail: list[Callable[[str, str], str]] = [kubelets.rejected, kubelets.stuck]

        def fails(number: int) -> str:
            return fail[number % 2](poison[number % POISON_OWNERS], nodes[number // POISON_OWNERS % 4])

        with ThreadPoolExecutor(WRITERS) as writers:
            made = list(writers.map(fails, range(POISON_PODS)))
        figures["poison_written_s"] = time.monotonic() - began
        assert POISON_PODS == len(made)
        closed_for(kubelets, extender, nodes, [], STUCK_S + 5)

        began = time.monotonic()
        for owner in teams:
            kubelets.runs(owner, good)
        lasts = [kubelets.stuck(owner, bad) for owner in teams]
        figures["stuck_closed_s"] = closed_after(kubelets, extender, nodes, [bad], LIMIT_S)
        assert [] == closed(softly, nodes), "preferNot refuses nothing"
        cluster.use_extender(extender.url, mode="enforce")
        cluster.add_pod("kept-off", node=bad)
        assert reasons.CLOSED_STARTS_FAIL in cluster.wait_refused("kept-off")
        cluster.use_extender(softly.url, weight=10)
        pods = [f"placed-{number}" for number in range(12)]
        for pod in pods:
            cluster.add_pod(pod)
        assert bad not in [cluster.wait_bound(pod) for pod in pods]
        said = next(line for line in extender.process.lines() if "node closed" in line)
        assert "pods of 3 namespaces fail to start here and start elsewhere: starts-api/web (without a sandbox)" in said

        kubelets.say(lasts[0], "Running", sandbox=True)  # the way back: a pod of one of them starts there after all
        figures["opened_s"] = closed_after(kubelets, extender, nodes, [], LIMIT_S)

        for owner in teams:
            kubelets.runs(owner, good)
            kubelets.rejected(owner, bad)
        figures["rejected_closed_s"] = closed_after(kubelets, extender, nodes, [bad], LIMIT_S)


def test_neither_one_tenant_nor_pods_bound_past_kube_scheduler_close_a_node(cluster: Cluster) -> None:
    nodes = cluster.add_nodes(3)
    good, bad, _ = nodes
    cluster.add_health_pods(nodes, ready=True)
    extender = cluster.start_extender(gates=[HEALTH, STARTS | {"severity": "gate"}], heartbeat={})
    kubelets = Kubelets(cluster, [extender])
    evil = [f"{EVIL}/own-{number}" for number in range(10)]
    teams = [f"{namespace}/web" for namespace in TEAMS]
    kubelets.own(*evil, *teams)

    for owner in evil:
        kubelets.runs(owner, good)
        kubelets.stuck(owner, bad)
        kubelets.rejected(owner, bad)
    for owner in teams:
        kubelets.runs(owner, good)
        kubelets.stuck(owner, bad, asked=False)
        kubelets.rejected(owner, bad, asked=False)
    closed_for(kubelets, extender, nodes, [], STUCK_S + 5)

    for owner in teams:  # the same pods, asked about
        kubelets.runs(owner, good)
        kubelets.rejected(owner, bad)
    closed_after(kubelets, extender, nodes, [bad], LIMIT_S)
