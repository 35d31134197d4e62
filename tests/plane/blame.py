"""Nodes and pods by chance, and which of the nodes kube-scheduler's own filters pass for a pod, worked out here anew
from the objects: taints, node selector and affinity, resources. It knows nothing of readygate.
"""

import random
from collections import defaultdict
from collections.abc import Iterable

from tools.testbed.shared.api import Object

ZONES, DISKS = ("a", "b", "c"), ("ssd", "hdd")
TAINT = "blame.test/dedicated"
MIB = 2**20
# New Nodes get this taint, and the controller that would take it away does not run.
TOLERATES_NEW = {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}


def node(chance: random.Random, name: str) -> Object:
    resources = {
        "cpu": f"{chance.choice([1, 2, 4, 8])}",
        "memory": f"{chance.choice([1, 2, 4, 8])}Gi",
        "pods": f"{chance.choice([3, 6, 12, 110])}",
    }
    labels = {"kubernetes.io/hostname": name, "zone": chance.choice(ZONES), "size": str(chance.randrange(10))}
    if chance.random() < 0.7:
        labels["disk"] = chance.choice(DISKS)
    taints = []
    if chance.random() < 0.3:
        effect = chance.choice(["NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"])
        taints.append({"key": TAINT, "value": chance.choice(["gpu", "db"]), "effect": effect})
    spec = {"taints": taints, **({"unschedulable": True} if chance.random() < 0.1 else {})}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
    status = {"capacity": resources, "allocatable": resources, "conditions": [ready]}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def pod(chance: random.Random, name: str, *, on: str = "") -> Object:
    """on: bound there from birth."""
    requests = {}
    if chance.random() < 0.8:
        requests["cpu"] = f"{chance.choice([50, 100, 250, 500, 1000, 3000])}m"
    if chance.random() < 0.6:
        requests["memory"] = f"{chance.choice([64, 256, 1024, 3000])}Mi"
    container = {"name": "main", "image": "registry.invalid/none:1", "resources": {"requests": requests}}
    spec: Object = {
        "containers": [container],
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "tolerations": [TOLERATES_NEW, *_tolerations(chance)],
    }
    if on:
        spec["nodeName"] = on
    elif chance.random() < 0.4:
        spec["nodeSelector"] = {"zone": chance.choice(ZONES)}
    if not on and chance.random() < 0.4:
        terms = [{"matchExpressions": _expressions(chance)} for _ in range(chance.randrange(1, 3))]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": required}
    return {"metadata": {"name": name, "labels": {"blame": "test"}}, "spec": spec}


def _tolerations(chance: random.Random) -> list[Object]:
    return chance.choice(
        [
            [],
            [],
            [{"key": TAINT, "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}],
            [{"key": TAINT, "operator": "Equal", "value": "db"}],
            [{"key": TAINT, "operator": "Exists"}],
            [{"operator": "Exists"}],
        ]
    )


def _expressions(chance: random.Random) -> list[Object]:
    return chance.choice(
        [
            [{"key": "disk", "operator": "In", "values": ["ssd"]}],
            [{"key": "disk", "operator": "NotIn", "values": ["hdd"]}],
            [{"key": "disk", "operator": "Exists"}],
            [{"key": "disk", "operator": "DoesNotExist"}],
            [{"key": "size", "operator": "Gt", "values": ["4"]}],
            [
                {"key": "size", "operator": "Lt", "values": ["7"]},
                {"key": "zone", "operator": "In", "values": list(chance.sample(ZONES, 2))},
            ],
        ]
    )


class Filters:
    """kube-scheduler's, over these objects: TaintToleration, NodeUnschedulable, NodeAffinity, NodeResourcesFit."""

    def __init__(self, nodes: Iterable[Object], pods: Iterable[Object]):
        self.nodes = {one["metadata"]["name"]: one for one in nodes}
        self._used: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for one in pods:
            used = self._used[one["spec"].get("nodeName", "")]
            used["pods"] += 1
            for resource, amount in requests_of(one).items():
                used[resource] += amount

    def pass_for(self, pod: Object) -> set[str]:
        """Names of the nodes that they pass for a pod that is not there yet."""
        return {name for name, node in self.nodes.items() if self._fits(pod, node)}

    def _fits(self, pod: Object, node: Object) -> bool:
        labels, spec, wanted = node["metadata"]["labels"], node["spec"], pod["spec"]
        tolerations = wanted.get("tolerations", [])
        taints = [taint for taint in spec.get("taints", []) if taint["effect"] != "PreferNoSchedule"]
        if spec.get("unschedulable"):
            taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
        if not all(any(_tolerates(toleration, taint) for toleration in tolerations) for taint in taints):
            return False
        if not wanted.get("nodeSelector", {}).items() <= labels.items():
            return False
        affinity = wanted.get("affinity", {}).get("nodeAffinity", {})
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
        if required and not any(
            all(_matches(expression, labels) for expression in term["matchExpressions"])
            for term in required["nodeSelectorTerms"]
        ):
            return False
        used, free = self._used[node["metadata"]["name"]], node["status"]["allocatable"]
        if used["pods"] + 1 > int(free["pods"]):
            return False
        return all(
            used[resource] + amount <= quantity(resource, free[resource])
            for resource, amount in requests_of(pod).items()
            if amount
        )


def _tolerates(toleration: Object, taint: Object) -> bool:
    return (
        toleration.get("effect", taint["effect"]) == taint["effect"]
        and toleration.get("key", taint["key"]) == taint["key"]
        and (toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""))
    )


def _matches(expression: Object, labels: Object) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values", [])
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case _:
            return value is not None and int(value) < int(values[0])


def requests_of(pod: Object) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for container in pod["spec"]["containers"]:
        for resource, text in container.get("resources", {}).get("requests", {}).items():
            found[resource] += quantity(resource, text)
    return found


def quantity(resource: str, text: str) -> int:
    """Thousandths of a processor, or bytes."""
    if resource == "cpu":
        return int(text[:-1]) if text.endswith("m") else int(text) * 1000
    return int(text[:-2]) * {"Mi": MIB, "Gi": 1024 * MIB}[text[-2:]]
