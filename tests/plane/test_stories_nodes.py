"""Nodes come and go under their names, and in crowds; and one wrong check closes all of them."""

import time
from datetime import UTC, datetime, timedelta

from extender.policy import reasons
from kube import contract
from tests.plane.cluster import LIMIT_S, Cluster
from tests.plane.load import ask, told_after
from tools.kit.waiting import wait_for, wait_until
from tools.testbed.shared import bare

MANY = 30


def test_a_node_made_anew_is_closed_until_its_health_pod_turns_ready_anew(cluster: Cluster, shared):
    (node,) = cluster.add_nodes(1)
    cluster.add_health_pods([node], ready=True)
    extender = shared()
    cluster.use_extender(extender.url, mode="enforce")
    for _ in range(3):  # within one second, so that its times tell nothing
        cluster.api.delete(f"/api/v1/nodes/{node}")
        bare.add_node(cluster.api, node)
    cluster.add_pod("for-the-new-one", node=node)
    assert reasons.CLOSED_NO_HEALTH_POD in cluster.wait_refused("for-the-new-one")

    for ready in (False, True):
        cluster.health_pods[node].say(ready=ready, since=_in_a_second())

    assert node == cluster.wait_bound("for-the-new-one")


def _in_a_second() -> str:
    """Certainly after all that was made so far; API times have whole seconds."""
    return (datetime.now(UTC) + timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_node_under_a_new_name_is_another_node(cluster: Cluster, shared):
    old, new = cluster.add_nodes(2)
    cluster.api.delete(f"/api/v1/nodes/{new}")
    cluster.add_health_pods([old], ready=True)
    extender = shared()
    cluster.use_extender(extender.url, mode="enforce")
    assert ask(extender.port, [old, new])["NodeNames"] == [old]

    cluster.api.delete(f"/api/v1/nodes/{old}")
    bare.add_node(cluster.api, new)
    cluster.add_pod("for-the-renamed", node=new)

    # kube-scheduler may see the pod before the node: then it says first that there are no nodes.
    words = lambda: bare.refused(bare.pod(cluster.api, "for-the-renamed"))  # noqa: E731
    wait_until(lambda: reasons.CLOSED_NO_HEALTH_POD in words(), words, timeout_s=LIMIT_S)
    assert wait_for(lambda: ask(extender.port, [old, new])["NodeNames"] == [], timeout_s=LIMIT_S)
    cluster.add_health_pods([new], ready=True)
    assert new == cluster.wait_bound("for-the-renamed")


def test_when_one_check_fails_everywhere_what_must_run_still_runs_and_one_that_heals_takes_all(
    cluster: Cluster, shared
):
    """The brakes are off: what is promised then is a constant reason, exempt pods that pass, and an end at once."""
    nodes = cluster.add_nodes(MANY)
    cluster.add_health_pods(nodes, ready=True)
    extender = shared()
    cluster.use_extender(extender.url, mode="enforce")
    for node in nodes:
        cluster.health_pods[node].say(ready=False)
    told_after(extender.port, nodes[-1], is_open=False)
    pending = [f"everywhere-{number}" for number in range(20)]
    for pod in pending:
        cluster.add_pod(pod)
    text = f"0/{MANY} nodes are available: {MANY} {reasons.CLOSED_NOT_READY}. "
    assert [True] * len(pending) == [cluster.wait_refused(pod).startswith(text) for pod in pending]

    for namespace in ("kube-system", contract.NAMESPACE):
        cluster.plane.wait_namespace(namespace)
        labels = {contract.LABEL_NAME: contract.NAME_AGENT}
        path = f"/api/v1/namespaces/{namespace}/pods"
        body = {"metadata": {"name": "must-run", "labels": labels}, "spec": bare.pod_spec()}
        cluster.api.create(path, body)
        try:
            bound = wait_for(
                lambda ns=namespace: bare.bound_to(bare.pod(cluster.api, "must-run", ns)), timeout_s=LIMIT_S
            )
        finally:
            cluster.api.delete(f"{path}/must-run", grace_s=0)
        assert bound in nodes, f"an exempt pod in {namespace} was not placed"

    healed = nodes[7]
    cluster.health_pods[healed].say(ready=True)
    began = time.monotonic()
    assert {healed} == {cluster.wait_bound(pod) for pod in pending}
    print(f"all {len(pending)} bound {time.monotonic() - began:.2f} s after one node healed")


def place_in(cluster: Cluster, namespace: str) -> str:
    """The node of the pod that must run there."""
    return bare.bound_to(bare.pod(cluster.api, "must-run", namespace))


def test_thirty_nodes_at_once_open_as_soon_as_their_health_pods_are_ready(cluster: Cluster):
    extender = cluster.start_extender()
    cluster.use_extender(extender.url, mode="enforce")
    nodes = cluster.add_nodes(MANY)
    pods = {node: f"pinned-to-{node}" for node in nodes}
    for node, pod in pods.items():
        cluster.add_pod(pod, node=node)
    for pod in pods.values():
        assert reasons.CLOSED_NO_HEALTH_POD in cluster.wait_refused(pod)

    cluster.add_health_pods(nodes, ready=True)

    began = time.monotonic()
    assert {node: node for node in nodes} == {node: cluster.wait_bound(pod) for node, pod in pods.items()}
    print(f"{MANY} nodes at once: all bound {time.monotonic() - began:.2f} s after the last health pod")
