"""What the API server shows of the stage: the only eyes of the play."""

from collections import Counter

from kube import contract
from tools.demo.stage import NODES
from tools.testbed.shared import bare
from tools.testbed.shared.api import Api, Object, condition

_HEALTH_PODS = (
    f"/api/v1/namespaces/{contract.NAMESPACE}/pods?labelSelector=app.kubernetes.io%2Fname%3D{contract.NAME_AGENT}"
)


class Observed:
    """Every method asks the API server anew."""

    def __init__(self, api: Api):
        self._api = api

    def ready_nodes(self) -> list[str]:
        """Ready, and rid of the taint that every new node has until the controller manager has seen it Ready."""
        return sorted(
            node["metadata"]["name"]
            for node in self._api.items("/api/v1/nodes")
            if condition(node, contract.CONDITION_READY).get("status") == contract.STATUS_TRUE
            and not node["spec"].get("taints")
        )

    def health(self) -> dict[str, str]:
        """Of each node: healthy or unhealthy by its health pod, "changing" between the two, "none" without a pod."""
        found = dict.fromkeys(NODES, "none")
        for pod in self._api.items(_HEALTH_PODS):
            statuses = {
                condition(pod, kind).get("status")
                for kind in (contract.CONDITION_READY, contract.CONDITION_NODE_HEALTHY)
            }
            words = {contract.STATUS_TRUE: "healthy", contract.STATUS_FALSE: "unhealthy"}
            found[bare.bound_to(pod)] = (
                words.get(statuses.pop() or "", "changing") if len(statuses) == 1 else "changing"
            )
        return {node: found[node] for node in NODES}

    def health_is(self, **wanted: str) -> bool:
        """Of the named nodes, written with `_` for `-`."""
        health = self.health()
        return all(health[node.replace("_", "-")] == word for node, word in wanted.items())

    def pods(self, app: str) -> list[Object]:
        return self._api.items(f"/api/v1/namespaces/default/pods?labelSelector=app%3D{app}")

    def running(self, app: str) -> Counter[str]:
        """Running and Ready pods by node."""
        return Counter(
            bare.bound_to(pod)
            for pod in self.pods(app)
            if condition(pod, contract.CONDITION_READY).get("status") == contract.STATUS_TRUE
        )

    def pending(self, app: str) -> list[str]:
        """Names of pods without a node."""
        return sorted(pod["metadata"]["name"] for pod in self.pods(app) if not bare.bound_to(pod))

    def bound_to(self, pod: str) -> str:
        return bare.bound_to(bare.pod(self._api, pod))

    def refused(self, pod: str) -> str:
        return bare.refused(bare.pod(self._api, pod))

    def failed_scheduling(self, pod: str) -> str:
        """The newest FailedScheduling event of the pod, "" if there is none."""
        return next(iter(reversed(bare.scheduling_events(self._api, pod))), "")

    def summary(self) -> str:
        """One line for a step that was not seen."""
        health = ", ".join(f"{node} {word}" for node, word in self.health().items())
        apps = "; ".join(
            f"{app}: {spread(self.running(app))}, pending {len(self.pending(app))}" for app in ("web", "late")
        )
        return f"Ready nodes {self.ready_nodes()}; health: {health}; {apps}"


def spread(running: Counter[str]) -> str:
    return ", ".join(f"{node} {running[node]}" for node in NODES)
