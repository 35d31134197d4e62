"""Nodes and pods that are API objects only: the scheduler and the extender see them, nobody runs them."""

from collections.abc import Mapping, Sequence

from kube import contract
from tools.testbed.shared.api import Api, ApiError, Object, condition

HEALTH_POD_SUFFIX = "health"
_TIME = "2026-01-01T00:00:00Z"


def add_node(
    api: Api,
    name: str,
    *,
    cpu: str = "8",
    memory: str = "32Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
) -> Object:
    """labels: more of them."""
    own = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    resources = {"cpu": cpu, "memory": memory, "pods": pods}
    return api.create(
        "/api/v1/nodes",
        {
            "metadata": {"name": name, "labels": {**own, **(labels or {})}},
            "status": {
                "capacity": resources,
                "allocatable": resources,
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True",
                        "reason": "KubeletReady",
                        "message": "",
                        "lastHeartbeatTime": _TIME,
                        "lastTransitionTime": _TIME,
                    }
                ],
            },
        },
    )


def add_health_daemon_set(api: Api, namespace: str = contract.NAMESPACE, *, name: str = contract.NAME_AGENT) -> Object:
    """The owner the extender looks for; the plane must run without daemonset-controller, the test writes the pods."""
    labels = {contract.LABEL_NAME: name}
    return api.create(
        f"/apis/apps/v1/namespaces/{namespace}/daemonsets",
        {
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod_spec()},
            },
        },
    )


class HealthPod:
    """The health pod of one node, bound to it from birth; its status is what the test says."""

    def __init__(self, api: Api, node: str, *, owner: Object | None = None, namespace: str = contract.NAMESPACE):
        self.node = node
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        of = owner["metadata"]["name"] if owner else contract.NAME_AGENT
        self.name = f"{node}-{HEALTH_POD_SUFFIX if of == contract.NAME_AGENT else of}"
        metadata: Object = {"name": self.name, "labels": {contract.LABEL_NAME: of}}
        if owner:
            metadata["ownerReferences"] = [
                {
                    "apiVersion": "apps/v1",
                    "kind": "DaemonSet",
                    "name": owner["metadata"]["name"],
                    "uid": owner["metadata"]["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ]
        self._metadata = metadata

    def create(self, *, ready: bool) -> "HealthPod":
        body = {"metadata": self._metadata, "spec": {**pod_spec(), "nodeName": self.node}}
        self._api.create(self._path, body)
        self.say(ready=ready)
        return self

    def say(self, *, ready: bool, since: str = _TIME) -> None:
        """One status write, as a kubelet would make it after a readiness probe. since: when it turned so, RFC 3339."""
        status = contract.STATUS_TRUE if ready else contract.STATUS_FALSE
        conditions = [
            {"type": contract.CONDITION_READY, "status": status, "lastTransitionTime": since},
            {"type": contract.CONDITION_CONTAINERS_READY, "status": status, "lastTransitionTime": _TIME},
            {"type": "Initialized", "status": contract.STATUS_TRUE, "lastTransitionTime": _TIME},
            {"type": "PodScheduled", "status": contract.STATUS_TRUE, "lastTransitionTime": _TIME},
        ]
        self._api.patch(f"{self._path}/{self.name}/status", {"status": {"phase": "Running", "conditions": conditions}})

    def delete(self) -> None:
        self._api.delete(f"{self._path}/{self.name}", grace_s=0)


def pod_spec(command: Sequence[str] = ()) -> Object:
    container: Object = {"name": "main", "image": "registry.invalid/none:1"}
    if command:
        container["command"] = list(command)
    return {
        "containers": [container],
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"operator": "Exists"}],
    }


def add_pod(api: Api, name: str, *, node: str | None = None, namespace: str = "default", **spec: object) -> Object:
    """A pod for the scheduler; `node` pins it there by a node selector, so that the scheduler still decides."""
    body = {"metadata": {"name": name}, "spec": {**pod_spec(), **spec}}
    if node:
        body["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    return api.create(f"/api/v1/namespaces/{namespace}/pods", body)


def pod(api: Api, name: str, namespace: str = "default") -> Object:
    """An empty object when it is not there."""
    try:
        return api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
    except ApiError as e:
        if e.status == 404:
            return {}
        raise


def bound_to(thing: Object) -> str:
    """The node of a pod, "" while it is pending."""
    return thing.get("spec", {}).get("nodeName", "")


def refused(thing: Object) -> str:
    """What the scheduler wrote into the pod when it found no node, "" when it wrote nothing."""
    scheduled = condition(thing, "PodScheduled")
    return scheduled.get("message", "") if scheduled.get("status") == contract.STATUS_FALSE else ""


def scheduling_events(api: Api, pod_name: str, namespace: str = "default") -> list[str]:
    """The texts of FailedScheduling events of that pod, the oldest first."""
    events = [
        event
        for event in api.items(f"/api/v1/namespaces/{namespace}/events")
        if event.get("reason") == "FailedScheduling" and event["involvedObject"]["name"] == pod_name
    ]
    return [event["message"] for event in sorted(events, key=lambda event: event["metadata"]["creationTimestamp"])]
