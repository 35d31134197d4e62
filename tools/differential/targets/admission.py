"""Pods that come one after the other to a node of the history's making: which are refused, and why (rows AM and N94).

A pod asks for one resource beyond those of each node at most: of several a kubelet names any, by the order of a Go map.
Of critical pods it is left out that a kubelet ends others for them.
"""

from dataclasses import replace
from random import Random
from typing import Any

import msgspec

from agent.kubelet.pods.admission import refusal
from agent.wire.model import Pod
from agent.wire.node import parse_node
from agent.wire.pod import ANNOTATION_CONFIG_SOURCE, parse_pod
from agent.wire.semantics import Semantics
from tools.differential.target import Answers, History
from tools.differential.worlds import maybe

NAME = "n"
LABELS = {"pool": ("a", "b"), "size": ("3", "7", "x"), "kubernetes.io/os": ("linux",), "zone": ("", "z")}
# A pod takes no more than the larger amounts, so that some fit and some do not.
NODE = {
    "cpu": ("2", "1500m", "4"),
    "memory": ("1000", "1Ki", "2k"),
    "ephemeral-storage": ("500",),
    "pods": ("9", "5", "2"),
    "hugepages-2Mi": ("4Mi", "0"),
    "example.com/gpu": ("2", "0"),
    "attachable-volumes-x": ("1",),
    "kubernetes.io/odd": ("1",),
}
ASKED = {
    "cpu": ("100m", "100m", "0.5", "1", "1.0005", "3", "0", "1u"),
    "memory": ("10", "100", "300", "0.5", "1Ki", "0"),
    "ephemeral-storage": ("100", "0.3k"),
}
BEYOND = {
    "hugepages-2Mi": ("2Mi",),
    "example.com/gpu": ("1", "2"),
    "example.com/shared": ("1",),
    "attachable-volumes-x": ("1", "2"),
    "kubernetes.io/odd": ("1", "2"),
    "unknown": ("1",),
}
TAINTS = (
    {"key": "out", "value": "yes", "effect": "NoExecute"},
    {"key": "gone", "effect": "NoExecute"},
    {"key": "soft", "effect": "NoSchedule"},
)
VALUES = {"pool": ("a", "b", "c"), "size": ("3", "5", "x"), "zone": ("", "z"), "none": ("a",), "a b": ("a",)}
OPERATORS = ("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Like")


class AdmissionTarget:
    name = "admission"

    def draw(self, random: Random) -> History:
        labels = {key: random.choice(of) for key, of in LABELS.items() if maybe(random, 0.7)}
        names: list[str] = []
        steps = []
        for number in range(random.randint(1, 7)):
            gone = [name for name in names if maybe(random, 0.1)]
            names.append(f"p{number}")
            steps.append({"gone": gone, "pod": _pod(random, names[-1])})
            if maybe(random, 0.05):
                steps[-1]["allocatable"] = _node_amounts(random)
        return {
            "node": {
                "metadata": {"name": NAME, "labels": labels},
                "spec": {"taints": [taint for taint in TAINTS if maybe(random, 0.1)]},
                "status": {"allocatable": _node_amounts(random)},
            },
            "declared": random.choice(([], ["RestartAllContainersOnContainerExits"])),
            "steps": steps,
        }

    def answer(self, history: History, semantics: Semantics) -> Answers:
        node = parse_node(msgspec.json.encode(history["node"]))
        features = history["declared"] if semantics.node_declared_features else None
        active: list[Pod] = []
        answers: list[Answers] = []
        for step in history["steps"]:
            if "allocatable" in step:
                node = replace(node, status=replace(node.status, allocatable=step["allocatable"]))
            active = [pod for pod in active if pod.name not in step["gone"]]
            pod = parse_pod(msgspec.json.encode(step["pod"]))
            refused = refusal(pod, active, node, features)
            if refused is None:
                active.append(pod)
            answers.append(refused and [refused.reason, refused.text])
        return answers

    def told(self, answer: Answers) -> Answers:
        return answer


def _node_amounts(random: Random) -> dict[str, str]:
    return {name: random.choice(of) for name, of in NODE.items() if maybe(random, 0.9)}


def _pod(random: Random, name: str) -> Any:
    action = random.choice(("Restart", "RestartAllContainers"))
    rules = [{"action": action, "exitCodes": {"operator": "In", "values": [1]}}] if maybe(random, 0.1) else []
    beyond = random.choice(tuple(BEYOND)) if maybe(random, 0.3) else None
    spec: Any = {
        "nodeName": NAME if maybe(random, 0.97) else "other",
        "containers": [
            {**_container(random, f"c{n}", beyond), "restartPolicyRules": rules, "restartPolicy": "Never"}
            for n in range(random.choice((1, 1, 2)))
        ],
        "initContainers": [
            {**_container(random, f"i{n}", beyond), **({"restartPolicy": "Always"} if maybe(random, 0.5) else {})}
            for n in range(random.choice((0, 0, 1, 3)))
        ],
        "hostNetwork": maybe(random, 0.1),
        "hostUsers": maybe(random, 0.9),
    }
    if maybe(random, 0.15):
        spec["nodeSelector"] = {key: random.choice(VALUES[key]) for key in ("pool", "zone") if maybe(random, 0.25)}
    if maybe(random, 0.2):
        spec["affinity"] = _affinity(random)
    if maybe(random, 0.6):
        spec["tolerations"] = [_toleration(random) for _ in range(random.randint(1, 2))]
    if maybe(random, 0.1):
        spec["overhead"] = _amounts(random)
    if maybe(random, 0.1):
        spec["resources"] = {random.choice(("requests", "limits")): {**_amounts(random), "unknown": "1"}}
    if maybe(random, 0.05):
        spec["os"] = {"name": random.choice(("linux", "windows"))}
    if maybe(random, 0.2):
        spec["priority"] = random.choice((0, -1, 1999999999, 2000000000))
    labels = {"kubernetes.io/os": random.choice(("linux", "windows"))} if maybe(random, 0.05) else {}
    source = {"annotations": {ANNOTATION_CONFIG_SOURCE: "file"}} if maybe(random, 0.05) else {}
    return {"metadata": {"name": name, "namespace": "ns", "uid": name, "labels": labels, **source}, "spec": spec}


def _amounts(random: Random) -> dict[str, str]:
    return {name: random.choice(of) for name, of in ASKED.items() if maybe(random, 0.4)}


def _container(random: Random, name: str, beyond: str | None) -> Any:
    requests = _amounts(random)
    if beyond is not None and maybe(random, 0.7):
        requests[beyond] = random.choice(BEYOND[beyond])
    made: Any = {"name": name, "resources": {"requests": requests, "limits": _amounts(random)}}
    if maybe(random, 0.4):
        port: Any = {"containerPort": 80}
        for key, of in {
            "hostPort": (80, 80, 81),
            "hostIP": ("", "10.0.0.1", "10.0.0.2", "0.0.0.0"),
            "protocol": ("TCP", "UDP"),
        }.items():
            if maybe(random, 0.7):
                port[key] = random.choice(of)
        made["ports"] = [port]
    return made


def _affinity(random: Random) -> Any:
    terms = [_term(random) for _ in range(random.choice((0, 1, 1, 1, 2)))]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return random.choice(({}, {"nodeAffinity": {}}, *[{"nodeAffinity": required}] * 6))


def _term(random: Random) -> Any:
    term: Any = {}
    if maybe(random, 0.8):
        term["matchExpressions"] = [_requirement(random) for _ in range(random.choice((0, 1, 1, 2)))]
    if maybe(random, 0.5):
        values = random.choice(([NAME], [NAME], ["other"], [NAME, "other"], []))
        key, operator = random.choice(("metadata.name",) * 4 + ("odd",)), random.choice(("In", "In", "NotIn", "Exists"))
        term["matchFields"] = [{"key": key, "operator": operator, "values": values}]
    return term


def _requirement(random: Random) -> Any:
    key, operator = random.choice(tuple(VALUES)), random.choice(OPERATORS)
    if operator in ("Exists", "DoesNotExist"):
        values: list[str] = []
    elif operator in ("Gt", "Lt"):
        values = [random.choice(("1", "5", "-3", "x"))]
    else:
        values = [random.choice(VALUES[key]) for _ in range(random.choice((1, 1, 2)))]
    if maybe(random, 0.05):
        values = random.choice(([], ["a b"], ["1", "2"]))
    return {"key": key, "operator": operator, "values": values}


def _toleration(random: Random) -> Any:
    made = {
        "key": random.choice(("out", "gone", "soft", "other", "")),
        "operator": random.choice(("Equal", "Exists", "Exists", "", "Lt", "Gt")),
        "value": random.choice(("", "yes", "5")),
        "effect": random.choice(("", "NoExecute", "NoSchedule")),
    }
    return {key: value for key, value in made.items() if maybe(random, 0.9)}
