"""Pods that try to get onto one node, one after the other, and what became of each: how a gate looks from outside.

They tolerate every taint, so that a pod that does not land was kept off by the extender and not by the taint that
Kubernetes itself puts on a node whose network is gone.
"""

import threading
import time
from dataclasses import dataclass, field
from typing import Any

from extender.policy.reasons import REASONS
from kube import contract
from tests.hosts.waiting import wait_for
from tools.testbed.shared.api import Api, ApiError, condition

NAMESPACE = "default"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_EVERY_S = 0.5


def pod(name: str, node: str | None, image: str) -> dict[str, Any]:
    """node None: any worker."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "probing"}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "nodeSelector": {} if node is None else {"kubernetes.io/hostname": node},
            "tolerations": [{"operator": "Exists"}] if node else [],
            "containers": [{"name": "pause", "image": image, "imagePullPolicy": "IfNotPresent"}],
        },
    }


def health_pod(api: Api, node: str) -> dict[str, Any]:
    """The agent's pod on the node."""
    selector = f"?labelSelector={contract.LABEL_NAME}%3D{contract.NAME_AGENT}&fieldSelector=spec.nodeName%3D{node}"
    pods = api.items(f"/api/v1/namespaces/{contract.NAMESPACE}/pods{selector}")
    (found,) = [p for p in pods if "deletionTimestamp" not in p["metadata"]]
    return found


@dataclass
class Timeline:
    """Seconds since the fault. `landed`: when each pod was seen bound; `refused`: when each was seen refused by the
    extender; `reasons`: when each of its reasons was first seen on a pod; `told`: what the last refused pod says."""

    landed: dict[str, float] = field(default_factory=dict)
    refused: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, float] = field(default_factory=dict)
    told: str = ""

    @property
    def last_landing_s(self) -> float:
        return max(self.landed.values(), default=0.0)


class Prober:
    """Sends a pod to the node each half second from `start` to `stop`; those that land are deleted at once."""

    def __init__(self, api: Api, node: str, image: str) -> None:
        self._api = api
        self._node = node
        self._image = image
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="prober", daemon=True)
        self._epoch = time.monotonic()
        self.timeline = Timeline()
        self.error: Exception | None = None

    def fault_now(self) -> None:
        """From here the seconds count. What has landed before is forgotten."""
        self._epoch = time.monotonic()
        self.timeline = Timeline()

    def seconds(self) -> float:
        return time.monotonic() - self._epoch

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(5.0)
        if self.error:
            raise self.error

    def wait_told(self, reason: str) -> bool:
        """A pod was refused by the extender for that reason; False when the time is over."""
        return bool(wait_for(lambda: reason in self.timeline.reasons or self.error))

    def _run(self) -> None:
        number = 0
        try:
            while not self._stop.wait(_EVERY_S):
                number += 1
                self._api.create(PODS, pod(f"probing-{number}", self._node, self._image))
                self._look()
        except ApiError as e:
            self.error = e

    def _look(self) -> None:
        timeline, now = self.timeline, self.seconds()
        for seen in self._api.items(f"{PODS}?labelSelector=app%3Dprobing"):
            name = seen["metadata"]["name"]
            if seen["spec"].get("nodeSelector", {}) == {}:
                continue  # one that may go anywhere
            if seen["spec"].get("nodeName"):
                timeline.landed.setdefault(name, now)
                self._api.delete(f"{PODS}/{name}", grace_s=0)
                continue
            message = condition(seen, "PodScheduled").get("message", "")
            for reason in REASONS:
                if reason in message:
                    timeline.refused.setdefault(name, now)
                    timeline.reasons.setdefault(reason, now)
                    timeline.told = message


def told(api: Api, name: str) -> str:
    """Why the pod is pending, as it says itself; "" if it does not."""
    seen = condition(api.get(f"{PODS}/{name}"), "PodScheduled")
    return str(seen.get("message", "")) if seen.get("status") == "False" else ""


def clear(api: Api) -> None:
    """Deletes all pods of this module."""
    for seen in api.items(f"{PODS}?labelSelector=app%3Dprobing"):
        api.delete(f"{PODS}/{seen['metadata']['name']}", grace_s=0)
    wait_for(lambda: not api.items(f"{PODS}?labelSelector=app%3Dprobing"))


def failed_scheduling(api: Api, name: str) -> list[str]:
    """The notes of the pod's FailedScheduling events."""
    selector = f"?fieldSelector=involvedObject.name%3D{name},reason%3DFailedScheduling"
    return [event["message"] for event in api.items(f"/api/v1/namespaces/{NAMESPACE}/events{selector}")]
