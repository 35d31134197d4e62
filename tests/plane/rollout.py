"""A DaemonSet of health pods that the real controller rolls out, and the kubelets of bare nodes played to it."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from kube import contract
from tools.testbed.shared import bare
from tools.testbed.shared.api import Api, Object
from tools.testbed.shared.removal import delete_all

ANSWERS_AFTER_S = 1.0
PODS = f"/api/v1/namespaces/{contract.NAMESPACE}/pods"
DAEMON_SETS = f"/apis/apps/v1/namespaces/{contract.NAMESPACE}/daemonsets"
LABELS = {contract.LABEL_NAME: contract.NAME_AGENT}
_EVERY_S = 0.2
_WRITERS = 6


@dataclass(frozen=True)
class Image:
    """What a pod of it does: Ready ANSWERS_AFTER_S after its start, for ready_for_s; 0 = never, infinite = always.
    waits: reason and message of a container that does not run."""

    name: str
    ready_for_s: float
    waits: tuple[str, str] = ("", "")

    def ready(self, age_s: float) -> bool:
        return ANSWERS_AFTER_S <= age_s < ANSWERS_AFTER_S + self.ready_for_s


GOOD = Image("registry.invalid/good:1", float("inf"))


@dataclass(frozen=True)
class _Pod:
    """As its kubelet knows it. started: monotonic. said: what was written of Ready last, None = nothing yet."""

    image: str
    started: float
    started_text: str
    said: bool | None = None


class Kubelets:
    """Of all nodes: starts the health pods that are bound, probes them, ends those that are told to end.

    dead: nodes whose kubelet does nothing any more. closed: nodes on which every agent says that they are not fit."""

    def __init__(
        self,
        api: Api,
        images: tuple[Image, ...],
        *,
        dead: frozenset[str] = frozenset(),
    ):
        self._api = api
        self._dead = dead
        self.closed: frozenset[str] = frozenset()
        self._images = {image.name: image for image in images}
        self._pods: dict[str, _Pod] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubelets", daemon=True)
        self.error: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join(20)

    def ready(self) -> int:
        return sum(pod.said is True for pod in list(self._pods.values()))

    def of(self, image: Image) -> int:
        """Pods of it that run."""
        return sum(pod.image == image.name for pod in list(self._pods.values()))

    def _run(self) -> None:
        with ThreadPoolExecutor(_WRITERS) as pool:
            while not self._end.wait(_EVERY_S):
                try:
                    self._turn(pool)
                except Exception as e:  # noqa: BLE001 - told by the test, which would wait in vain
                    self.error = e
                    return

    def _turn(self, pool: ThreadPoolExecutor) -> None:
        found = {pod["metadata"]["name"]: pod for pod in self._api.items(PODS)}
        for name in self._pods.keys() - found.keys():
            del self._pods[name]
        writes: list[Callable[[], object]] = []
        for name, pod in found.items():
            path = f"{PODS}/{name}"
            if bare.bound_to(pod) in self._dead:
                continue
            if "deletionTimestamp" in pod["metadata"]:
                writes.append(lambda path=path: self._api.delete(path, grace_s=0))
            elif bare.bound_to(pod):
                known = self._pods.get(name) or _Pod(pod["spec"]["containers"][0]["image"], time.monotonic(), _now())
                image, closed = self._images[known.image], bare.bound_to(pod) in self.closed
                ready = not closed and image.ready(time.monotonic() - known.started)
                self._pods[name] = replace(known, said=ready)
                if ready is not known.said:
                    body = _status(known, ready=ready, waits=image.waits, closed=closed)
                    writes.append(lambda path=path, body=body: self._api.patch(f"{path}/status", body))
        list(pool.map(lambda write: write(), writes))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _status(pod: _Pod, *, ready: bool, waits: tuple[str, str], closed: bool) -> Object:
    status = contract.STATUS_TRUE if ready else contract.STATUS_FALSE
    turned = [contract.CONDITION_READY, contract.CONDITION_CONTAINERS_READY]
    conditions = [{"type": kind, "status": status, "lastTransitionTime": _now()} for kind in turned]
    conditions.append({"type": "Initialized", "status": "True", "lastTransitionTime": pod.started_text})
    if closed:
        told = {"status": "False", "reason": "CheckFailed", "message": "cni: no plugin"}
        conditions.append({"type": contract.CONDITION_NODE_HEALTHY, "lastTransitionTime": pod.started_text, **told})
    state = {"waiting": {"reason": waits[0], "message": waits[1]}} if waits[0] else {"running": {}}
    container = {"name": "agent", "image": pod.image, "imageID": "", "ready": ready, "restartCount": 0, "state": state}
    status = {"phase": "Running", "startTime": pod.started_text, "conditions": conditions}
    return {"status": {**status, "containerStatuses": [container]}}


def install(api: Api, spec: Object) -> Callable[[], None]:
    """A DaemonSet with the good image and this of its spec besides. Returns what takes it and its pods away."""
    metadata = {"name": contract.NAME_AGENT, "labels": LABELS}
    own = {"selector": {"matchLabels": LABELS}, "template": _template(GOOD)}
    api.create(DAEMON_SETS, {"metadata": metadata, "spec": own | spec})

    def remove() -> None:
        api.delete(f"{DAEMON_SETS}/{contract.NAME_AGENT}")
        delete_all(api, PODS)

    return remove


def available(api: Api) -> int:
    """Nodes whose health pod the controller counts as available: Ready for minReadySeconds."""
    daemon_set = api.get(f"{DAEMON_SETS}/{contract.NAME_AGENT}")
    seen: int = daemon_set.get("status", {}).get("numberAvailable", 0)
    return seen


def roll_out(api: Api, image: Image) -> None:
    api.patch(f"{DAEMON_SETS}/{contract.NAME_AGENT}", {"spec": {"template": _template(image)}})


def _template(image: Image) -> dict[str, Any]:
    """A pod that its kubelet has to end."""
    spec = bare.pod_spec() | {"terminationGracePeriodSeconds": 5}
    spec["containers"][0]["image"] = image.name
    return {"metadata": {"labels": LABELS}, "spec": spec}
