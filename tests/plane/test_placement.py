"""Where the pods of a DaemonSet can run: the extender's word and the real DaemonSet controller's, by chance."""

import json
import random
from collections.abc import Iterator
from typing import TypeVar

import msgspec
import pytest

from extender.cluster import objects, observed
from tools.kit.waiting import wait_for
from tools.testbed.plane.plane import Plane
from tools.testbed.shared import bare
from tools.testbed.shared.api import Object

T = TypeVar("T")
NODES, DAEMON_SETS = 16, 60
PATH = "/apis/apps/v1/namespaces/default/daemonsets"
PODS = "/api/v1/namespaces/default/pods"
LABELS = {"kubernetes.io/os": ("linux", "windows"), "pool": ("web", "db", ""), "cores": ("2", "16", "many")}
ROLE = "node-role.kubernetes.io/"
TAINTS = (("control-plane", ""), ("infra", "yes"), ("edge", ""))


@pytest.fixture
def nodes(plane: Plane, seed: int) -> Iterator[list[Object]]:
    """With labels and the taints of roles; no kubelet is on them, so that pods stay where they were made for."""
    chance = random.Random(seed)
    names = [f"placed-{number}" for number in range(NODES)]
    made = []
    try:
        for name in names:
            labels = {key: chance.choice(values) for key, values in LABELS.items() if chance.random() < 0.7}
            bare.add_node(plane.api, name, labels=labels)
            taints = [
                {"key": ROLE + key, "value": value, "effect": chance.choice(["NoSchedule", "NoExecute"])}
                for key, value in TAINTS
                if chance.random() < 0.2
            ]
            made.append(plane.api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": taints}}))
        yield made
    finally:
        for name in names:
            plane.api.delete(f"/api/v1/nodes/{name}")


def a_daemon_set(chance: random.Random, number: int, names: list[str]) -> Object:
    def expression() -> Object:
        key = chance.choice([*LABELS, "gone"])
        operator = chance.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
        if operator in {"Gt", "Lt"}:
            values = [chance.choice(["1", "2", "8", "16"])]
        else:
            values = chance.sample(LABELS.get(key, ("", "x")), 2) if operator in {"In", "NotIn"} else []
        return {"key": key, "operator": operator, "values": values}

    def term() -> Object:
        by_name = {"key": "metadata.name", "operator": chance.choice(["In", "NotIn"]), "values": [chance.choice(names)]}
        return {
            "matchExpressions": [expression() for _ in range(chance.choice([0, 1, 1, 2]))],
            "matchFields": [by_name] if chance.random() < 0.3 else [],
        }

    def toleration() -> Object:
        key, value = chance.choice(TAINTS)
        exists = {"key": chance.choice([ROLE + key, ROLE + key, ""]), "operator": "Exists"}
        equal = {"key": ROLE + key, "value": chance.choice([value, "no"])}
        effect = chance.choice([{}, {}, {"effect": "NoSchedule"}, {"effect": "NoExecute"}])
        return {**chance.choice([exists, equal]), **effect}

    # Those of pod_spec tolerate everything.
    spec = {**bare.pod_spec(), "tolerations": [toleration() for _ in range(chance.choice([0, 1, 1, 2, 3]))]}
    if chance.random() < 0.4:
        key = chance.choice([*LABELS])
        spec["nodeSelector"] = {key: chance.choice(LABELS[key])}
    if chance.random() < 0.6:
        terms = {"nodeSelectorTerms": [term() for _ in range(chance.choice([1, 1, 2, 3]))]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    labels = {"placed": str(number)}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "metadata": {"name": f"placed-{number}"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def test_a_node_is_gated_where_the_real_controller_wants_a_pod(plane: Plane, nodes: list[Object], seed: int) -> None:
    chance = random.Random(seed)
    names = [node["metadata"]["name"] for node in nodes]
    made = [a_daemon_set(chance, number, names) for number in range(DAEMON_SETS)]
    try:
        for one in made:
            plane.api.create(PATH, one)
        evidence = [observed.observed_node(decoded(node, observed.Node), 0.0) for node in nodes]
        expected = {}
        for one in made:
            placement = objects.placement(decoded(one, objects.DaemonSet))
            expected[one["metadata"]["name"]] = sorted(
                node.name for node in evidence if not placement.why_not(node.name, node.labels, node.roles)
            )
        assert wait_for(lambda: actual(plane) == expected, timeout_s=60, every_s=0.5), different(
            expected, actual(plane)
        )
        assert {True, False} == {bool(found) for found in expected.values()}, "some run somewhere, some nowhere"
        assert any(0 < len(found) < NODES for found in expected.values())
    finally:
        for one in plane.api.items(PATH):
            plane.api.delete(f"{PATH}/{one['metadata']['name']}")
        assert wait_for(lambda: not plane.api.items(f"{PODS}?labelSelector=placed"), timeout_s=60, every_s=0.5)


def decoded(thing: Object, kind: type[T]) -> T:
    """As the extender does it."""
    return msgspec.json.decode(json.dumps(thing).encode(), type=kind)


def actual(plane: Plane) -> dict[str, list[str]]:
    """The nodes of this test that the controller wants each DaemonSet on: it makes a pod for each, and pins it."""
    found: dict[str, list[str]] = {one["metadata"]["name"]: [] for one in plane.api.items(PATH)}
    for pod in plane.api.items(f"{PODS}?labelSelector=placed"):
        required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        node = required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]
        if node.startswith("placed-"):
            found[f"placed-{pod['metadata']['labels']['placed']}"].append(node)
    return {name: sorted(nodes) for name, nodes in found.items()}


def different(expected: dict[str, list[str]], found: dict[str, list[str]]) -> dict[str, object]:
    return {name: (expected.get(name), found.get(name)) for name in expected if expected.get(name) != found.get(name)}
