"""Registration and reports of a node's status by kubelet 1.16 and its setters, and by the agent with `compat: v1.16`.

Draws what row CM45 is about. Not drawn is what differs on purpose: labels that are not each release's own, labels of
system and processor that somebody else has changed, huge pages, the time between reports, and fields that came later.
"""

from random import Random
from typing import Any

from agent.kubelet.node.facts import in_order
from agent.kubelet.node.pressure import thresholds_of
from agent.kubelet.node.reserved import reservation
from agent.wire.semantics import Semantics
from tools.differential.target import Answers, History
from tools.differential.targets.node import NodeTarget, Scene, capacity_of
from tools.differential.worlds import maybe

_ZONE, _OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
_SYSTEM = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
_LATER = ("runtimeHandlers", "features", "declaredFeatures")
_CAUSES = {
    "runtime": ("container runtime is down", "PLEG is not healthy"),
    "network": ("no CNI", "PLEG is not healthy"),
}
_RESERVED = {"cpu": ("100m", "0.25", "2"), "memory": ("512Mi", "1G")}


class OldNodeTarget(NodeTarget):
    name = "node-1.16"

    def draw(self, random: Random) -> History:
        drawn = super().draw(random)
        return {
            **drawn,
            "labels": {key: value for key, value in _labels(drawn["labels"]).items() if key not in _SYSTEM},
            "system": {name: random.choice(of) for name, of in _RESERVED.items() if maybe(random, 0.2)},
            "kube": {},
            "hard": {},
            "huge": {},
            "swap": 0,
            "declared": None,
            "steps": [_step(random, step) for step in drawn["steps"]],
        }

    def answer(self, history: History, semantics: Semantics) -> Answers:
        capacity = capacity_of(history)
        reserved = reservation(capacity, (history["system"], {}), thresholds_of({}, {}, {}, {}))
        return _Scene(history, semantics, capacity, reserved).play()

    def told(self, answer: Answers) -> Answers:
        """Not the versions of kubelet and kube-proxy."""
        told = super().told(answer)
        for step in told if isinstance(told, list) else ():
            for name in ("kubeletVersion", "kubeProxyVersion") if step.get("node") else ():
                step["node"]["nodeInfo"].pop(name, None)
        return told


class _Scene(Scene):
    def _errors(self) -> list[str]:
        causes = self.now["causes"]
        of = {kind: [causes[kind]] if kind in causes else [] for kind in _CAUSES}
        return in_order(runtime=of["runtime"], network=of["network"])


def _labels(labels: dict[str, str]) -> dict[str, str]:
    return {_OLD_ZONE if key == _ZONE else key: value for key, value in labels.items()}


def _step(random: Random, step: Any) -> Any:
    made = {key: step[key] for key in ("wall", "faults", "node", "found", "info") if key in step}
    made |= {"op": "report" if step["op"] == "fast" else step["op"], "random": 0.5}
    made["causes"] = {kind: random.choice(of) for kind, of in _CAUSES.items() if maybe(random, 0.15)}
    if made.get("node") is not None:
        made["node"] = _node(made["node"])
    if "found" in made:
        made["found"] = {**made["found"], "handlers": [], "groups": None}
    made.get("info", {}).pop("kubeletVersion", None)
    return made


def _node(node: Any) -> Any:
    """As a kubelet of 1.16, or anybody else, may have written it."""
    metadata = {**node["metadata"], "labels": {**_labels(node["metadata"]["labels"]), **_SYSTEM}}
    status = {key: value for key, value in node["status"].items() if key not in _LATER}
    for kind in ("capacity", "allocatable"):
        amounts = status.get(kind, {"pods": "110"})
        status[kind] = {name: value for name, value in amounts.items() if not name.startswith("hugepages-")}
    return {**node, "metadata": metadata, "status": status}
