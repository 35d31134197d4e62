"""Several gates before the real kube-scheduler: pods by gate, the brakes, and orders in a real ConfigMap."""

import json
import time

import pytest

from extender.policy import reasons
from kube import contract
from kube.times import format_time
from tests.plane.cluster import LIMIT_S, Cluster
from tests.plane.load import ask
from tools.kit.scope import draws
from tools.kit.waiting import wait_for
from tools.testbed.plane.programs import Extender
from tools.testbed.shared import bare

ORDERS = f"/api/v1/namespaces/{contract.NAMESPACE}/configmaps"
NAME = "readygate-orders"
VALIDATOR = {
    "name": "gpu",
    "healthPods": {
        "namespace": contract.NAMESPACE,
        "labelSelector": f"{contract.LABEL_NAME}=validator",
        "daemonSet": "validator",
    },
    "for": {"podSelector": "gpu=yes"},
    "damping": False,
}
HEALTH = {"name": "health", "damping": False}
MANY, PENDING = draws(gate=60, whole=100), draws(gate=20, whole=50)


def order(cluster: Cluster, **entries: object) -> None:
    """By id, what is ordered; None takes one back. As `kubectl` and our own command write it."""
    data = {id_: None if entry is None else json.dumps(entry) for id_, entry in entries.items()}
    cluster.api.create_unless_there(ORDERS, {"metadata": {"name": NAME}})
    cluster.api.patch(f"{ORDERS}/{NAME}", {"data": data})


@pytest.fixture
def cluster(cluster: Cluster):
    yield cluster
    cluster.api.delete(f"{ORDERS}/{NAME}")


def closed(extender: Extender, nodes: list[str]) -> dict[str, str]:
    answer = ask(extender.port, nodes)
    assert not answer.get("Error", "no answer")
    return answer["FailedAndUnresolvableNodes"]  # type: ignore[return-value]


def wait_closed(extender: Extender, nodes: list[str], expected: set[str], *, timeout_s: float = LIMIT_S) -> None:
    found = wait_for(lambda: set(closed(extender, nodes)) == expected, timeout_s=timeout_s, every_s=0.05)
    assert found, f"{closed(extender, nodes)}, expected {expected}"


def add_gpu_pod(cluster: Cluster, name: str) -> None:
    path = "/api/v1/namespaces/default/pods"
    cluster.api.create(path, {"metadata": {"name": name, "labels": {"gpu": "yes"}}, "spec": bare.pod_spec()})
    cluster._exit.callback(cluster.api.delete, f"{path}/{name}", grace_s=0)


def test_each_pod_is_kept_off_by_the_gates_that_speak_for_it_and_comes_when_the_last_of_them_opens(cluster: Cluster):
    first, second = cluster.add_nodes(2)
    cluster.add_health_pods([first], ready=True)
    cluster.add_health_pods([second], ready=False)
    owner = bare.add_health_daemon_set(cluster.api, name="validator")
    daemon_sets = f"/apis/apps/v1/namespaces/{contract.NAMESPACE}/daemonsets"
    cluster._exit.callback(cluster.api.delete, f"{daemon_sets}/validator")
    validators = {
        node: bare.HealthPod(cluster.api, node, owner=owner).create(ready=ready)
        for node, ready in ((first, False), (second, True))
    }
    for one in validators.values():
        cluster._exit.callback(one.delete)
    extender = cluster.start_extender(gates=[HEALTH, VALIDATOR])
    cluster.use_extender(extender.url, mode="enforce")
    cluster.add_pod("plain")
    add_gpu_pod(cluster, "wants-gpu")

    assert first == cluster.wait_bound("plain")
    text = cluster.wait_refused("wants-gpu")
    assert text.startswith(f"0/2 nodes are available: 2 {reasons.CLOSED_NOT_READY}. ")

    validators[first].say(ready=True)
    assert first == cluster.wait_bound("wants-gpu")


def test_orders_in_a_real_configmap_hold_over_a_restart_and_end_at_once(cluster: Cluster):
    first, second = nodes = cluster.add_nodes(2)
    cluster.add_health_pods(nodes, ready=True)
    extender = cluster.start_extender()
    order(cluster, disk={"order": "hold", "scope": {"node": first}, "author": "anna", "reason": "disk"})
    wait_closed(extender, nodes, {first})
    cluster.health_pods[second].say(ready=False)
    wait_closed(extender, nodes, {first, second})
    order(cluster, sure={"order": "exempt", "scope": {"node": second}})
    wait_closed(extender, nodes, {first})
    extender.stop()

    again = cluster.start_extender()
    assert {first: reasons.CLOSED_HELD} == closed(again, nodes)

    cluster.use_extender(again.url, mode="enforce")
    cluster.add_pod("held-back", node=first)
    assert reasons.CLOSED_HELD in cluster.wait_refused("held-back")
    order(cluster, disk=None)
    assert first == cluster.wait_bound("held-back")
    order(cluster, sure=None)
    wait_closed(again, nodes, {second})
    order(cluster, wait={"order": "pause", "created": format_time(time.time() + 1)})
    time.sleep(2)  # the objects tell whole seconds: what fails from now on has failed after the order
    cluster.health_pods[first].say(ready=False, since=format_time(time.time()))
    time.sleep(1)
    assert {second} == set(closed(again, nodes)), "a pause lets nothing close"
    third = cluster.start_extender()
    assert {second} == set(closed(third, nodes)), "nor does a restart: who had failed before stays closed"
    order(cluster, wait=None)
    for one in (again, third):
        wait_closed(one, nodes, {first, second})


def test_a_gate_in_shadow_is_armed_by_an_order_without_a_restart(cluster: Cluster):
    (node,) = cluster.add_nodes(1)
    cluster.add_health_pods([node], ready=False)
    extender = cluster.start_extender(gates=[HEALTH | {"enforcement": "shadow"}])
    cluster.use_extender(extender.url, mode="enforce")
    cluster.add_pod("passes")
    assert node == cluster.wait_bound("passes")

    order(cluster, go={"order": "arm"})
    wait_closed(extender, [node], {node})
    cluster.add_pod("waits")
    assert reasons.CLOSED_NOT_READY in cluster.wait_refused("waits")
    order(cluster, go=None)
    assert node == cluster.wait_bound("waits")


@pytest.fixture
def many(cluster: Cluster) -> tuple[Cluster, list[str]]:
    nodes = cluster.add_nodes(MANY)
    cluster.add_health_pods(nodes, ready=True)
    return cluster, nodes


def test_when_many_nodes_fail_at_once_pending_pods_still_find_one(many: tuple[Cluster, list[str]]):
    """With the brakes as they are by default."""
    cluster, nodes = many
    extender = cluster.start_extender(gates=[{}], cap={}, storm={})
    cluster.use_extender(extender.url, mode="enforce")
    order(cluster, stop={"order": "hold", "author": "anna", "reason": "to have pods wait"})
    wait_closed(extender, nodes, set(nodes))
    pending = [f"in-a-storm-{number}" for number in range(PENDING)]
    for name in pending:
        cluster.add_pod(name)
    for name in pending:
        assert reasons.CLOSED_HELD in cluster.wait_refused(name)
    for node in nodes:
        cluster.health_pods[node].say(ready=False)

    order(cluster, stop=None)

    began = time.monotonic()
    bound = [cluster.wait_bound(name) for name in pending]
    assert "" not in bound
    print(f"{PENDING} pods bound {time.monotonic() - began:.2f} s after the release of {MANY} nodes that have failed")
    assert len(closed(extender, nodes)) <= 0.3 * MANY
    assert wait_for(lambda: "storm began" in "\n".join(extender.process.lines()), timeout_s=LIMIT_S)


def test_a_mass_release_is_kicked_and_every_pod_comes(many: tuple[Cluster, list[str]]):
    cluster, nodes = many
    for node in nodes:
        cluster.health_pods[node].say(ready=False)
    extender = cluster.start_extender()
    cluster.use_extender(extender.url, mode="enforce")
    wait_closed(extender, nodes, set(nodes))
    pending = {f"released-{number}": nodes[number] for number in range(PENDING)}
    for name, node in pending.items():
        cluster.add_pod(name, node=node)
    for name in pending:
        assert reasons.CLOSED_NOT_READY in cluster.wait_refused(name)

    for node in nodes:
        cluster.health_pods[node].say(ready=True)

    began = time.monotonic()
    assert pending == {name: cluster.wait_bound(name) for name in pending}
    print(f"{PENDING} pods bound {time.monotonic() - began:.2f} s after the release of {MANY} nodes")
