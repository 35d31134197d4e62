"""Preemption by the real kube-scheduler beside a full node that readygate has closed and whose pods are the cheapest.

The node fails kube-scheduler's own filters, so the verb `filter` is never asked about it.
"""

import itertools
from collections.abc import Iterator, Sequence

import pytest

from tests.plane.cluster import Cluster
from tools.kit.scope import draws
from tools.kit.waiting import wait_for
from tools.testbed.shared import bare
from tools.testbed.shared.api import Api

ROUNDS = draws(gate=5, whole=20)
PRIORITIES = {"cheap": 10, "dear": 100, "above-all": 1000}
_numbers = itertools.count(1)


@pytest.fixture
def priorities(cluster: Cluster) -> Iterator[None]:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    for name, value in PRIORITIES.items():
        cluster.api.create(path, {"metadata": {"name": name}, "value": value})
    yield
    for name in PRIORITIES:
        cluster.api.delete(f"{path}/{name}")


def spec(priority: str, **more: object) -> dict[str, object]:
    """Of a pod that fills a node of one processor."""
    container = {"name": "main", "image": "registry.invalid/none:1", "resources": {"requests": {"cpu": "1"}}}
    return {"containers": [container], "priorityClassName": priority, **more}


class Fillers:
    """One pod on each node, bound there from birth, put back when it was evicted."""

    def __init__(self, api: Api, priority_of: dict[str, str]) -> None:
        self._api = api
        self._priority_of = priority_of
        self._on: dict[str, str] = {}

    def fill(self) -> None:
        for node, priority in self._priority_of.items():
            if node not in self._on:
                self._on[node] = f"fills-{next(_numbers)}"
                bare.add_pod(self._api, self._on[node], **spec(priority, nodeName=node))

    def evicted(self) -> list[str]:
        """The nodes whose pod is gone; they are empty until fill()."""
        gone = [node for node, name in self._on.items() if not bare.pod(self._api, name)]
        for node in gone:
            del self._on[node]
        return gone

    def remove(self) -> None:
        for name in self._on.values():
            self._api.delete(f"/api/v1/namespaces/default/pods/{name}", grace_s=0)


def victims(cluster: Cluster, fillers: Fillers, rounds: int) -> list[list[str]]:
    """The nodes on which a pod was evicted, in each round: one pod above all comes and is placed."""
    found = []
    for _ in range(rounds):
        fillers.fill()
        name = f"above-all-{next(_numbers)}"
        bare.add_pod(cluster.api, name, **spec("above-all"))
        bound = cluster.wait_bound(name)  # each node that is refused costs a back-off
        found.append(fillers.evicted())
        cluster.api.delete(f"/api/v1/namespaces/default/pods/{name}", grace_s=0)
        assert bound, "the pod above all was not placed"
        assert wait_for(lambda name=name: not bare.pod(cluster.api, name), timeout_s=60)
    return found


def three_full_nodes(cluster: Cluster) -> tuple[Fillers, str, Sequence[str]]:
    """(fillers, the closed node, whose pods are the cheapest; the open ones)."""
    closed, *opened = cluster.add_nodes(3, cpu="1")
    cluster.add_health_pods([closed], ready=False)
    cluster.add_health_pods(opened, ready=True)
    return Fillers(cluster.api, {closed: "cheap", **dict.fromkeys(opened, "dear")}), closed, opened


@pytest.mark.usefixtures("priorities")
@pytest.mark.parametrize("mode", ["protect", "enforce"])
def test_no_pod_is_evicted_from_a_closed_node(cluster: Cluster, mode: str):
    fillers, closed, _ = three_full_nodes(cluster)
    cluster.use_extender(cluster.start_extender().url, mode=mode)
    try:
        found = victims(cluster, fillers, ROUNDS)
    finally:
        fillers.remove()
    assert (0, {1}) == (sum(closed in nodes for nodes in found), {len(nodes) for nodes in found})


@pytest.mark.usefixtures("priorities")
def test_without_the_verb_pods_are_evicted_from_a_closed_node(cluster: Cluster):
    """What the test above is worth: with the verb unregistered there are victims on the closed node."""
    fillers, closed, _ = three_full_nodes(cluster)
    cluster.use_extender(cluster.start_extender().url, preempt=False)
    try:
        found = victims(cluster, fillers, 4)
    finally:
        fillers.remove()
    assert 4 == sum(closed in nodes for nodes in found)


@pytest.mark.usefixtures("priorities")
@pytest.mark.parametrize("mode", ["protect", "enforce"])
def test_where_only_a_closed_node_could_be_made_room_on_nothing_is_evicted(cluster: Cluster, mode: str):
    (closed,) = cluster.add_nodes(1, cpu="1")
    cluster.add_health_pods([closed], ready=False)
    fillers = Fillers(cluster.api, {closed: "cheap"})
    cluster.use_extender(cluster.start_extender().url, mode=mode)
    fillers.fill()
    cluster.add_pod("waits", **spec("above-all"))
    try:
        text = cluster.wait_refused("waits")
        assert "no candidate node for preemption" in text
        assert [] == fillers.evicted()
    finally:
        fillers.remove()


@pytest.mark.usefixtures("priorities")
def test_who_waits_for_a_closed_node_to_be_made_room_on_is_woken_by_the_next_pod_that_ends(cluster: Cluster):
    """Not by the kick: no extender has refused it a node, as far as kube-scheduler knows."""
    (node,) = cluster.add_nodes(1, cpu="2")
    cluster.add_health_pods([node], ready=False)
    fillers = Fillers(cluster.api, {node: "cheap"})
    cluster.use_extender(cluster.start_extender().url)
    fillers.fill()
    cluster.add_pod("ends", **spec("above-all", nodeName=node))
    cluster.add_pod("waits", **spec("above-all"))
    try:
        cluster.wait_refused("waits")
        cluster.health_pods[node].say(ready=True)
        assert "" == cluster.wait_bound("waits", timeout_s=6)  # the kick and its repeat were given by then
        cluster.api.delete("/api/v1/namespaces/default/pods/ends", grace_s=0)
        assert node == cluster.wait_bound("waits")
    finally:
        fillers.remove()
