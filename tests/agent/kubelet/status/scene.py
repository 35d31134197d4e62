"""A status manager with a fake API server that knows one pod, and a fake clock."""

import json
from dataclasses import replace
from typing import Any

from agent.kubelet.status.manager import StatusManager
from agent.wire.model import Pod, PodStatus
from agent.wire.pod import parse_pod
from agent.wire.semantics import Semantics
from agent.wire.status import write_status
from kube.errors import KubeError, NotFound
from kube.times import format_time
from tests.agent.kubelet.status.builders import NOW, make_pod, make_status
from tools.fakes.pods import Pods
from tools.kit.clock import Clock


class FakeClient:
    """One pod as the API server has it; `actions` are the verbs that were asked for. `errors`: verb -> what the next
    requests raise, None for one that succeeds."""

    def __init__(self, pod: Pod) -> None:
        self.pod: Pod | None = pod
        self.actions: list[str] = []
        self.bodies: list[Any] = []
        self.errors: dict[str, list[type[KubeError] | None]] = {}

    def _take(self, verb: str, path: str) -> Pod:
        self.actions.append(verb)
        failures = self.errors.get(verb, [])
        if failures and (error := failures.pop(0)):
            raise error(path=path)
        if self.pod is None:
            raise NotFound(path=path)
        return self.pod

    def get(self, path: str) -> bytes:
        return as_json(self._take("GET", path))

    def patch(self, path: str, body: bytes, *, content_type: str) -> bytes:
        assert (path.endswith("/status"), content_type) == (True, "application/strategic-merge-patch+json")
        pod = self._take("PATCH", path)
        self.bodies.append(json.loads(body))
        changes = self.bodies[-1]["status"]
        phase = changes.get("phase", pod.status.phase)
        kept = {c.type: write_status(make_status(conditions=(c,)))["conditions"][0] for c in pod.status.conditions}
        for item in changes.get("conditions", []):
            merged = {**kept.get(item["type"], {}), **item}
            kept[item["type"]] = {key: value for key, value in merged.items() if value is not None}
        status = {**write_status(pod.status), **changes, "phase": phase, "conditions": list(kept.values())}
        status = {key: value for key, value in status.items() if not key.startswith("$") and value is not None}
        self.pod = replace(pod, status=parse_pod(json.dumps({"metadata": {}, "status": status}).encode()).status)
        return as_json(self.pod)

    def delete(self, path: str, body: bytes = b"") -> bytes:
        self._take("DELETE", path)
        self.bodies.append(json.loads(body))
        self.pod = None
        return b"{}"


def as_json(pod: Pod) -> bytes:
    meta: dict[str, Any] = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod.uid,
        "generation": pod.generation,
    }
    if pod.annotations:
        meta["annotations"] = dict(pod.annotations)
    if pod.deletion_timestamp is not None:
        meta["deletionTimestamp"] = format_time(pod.deletion_timestamp)
    spec = {"restartPolicy": str(pod.restart_policy), "containers": [{"name": c.name} for c in pod.containers]}
    return json.dumps({"metadata": meta, "spec": spec, "status": write_status(pod.status)}).encode()


class Scene:
    """A manager with a fake API server and fake clocks."""

    def __init__(self, pod: Pod | None = None, *, could_run: bool = False, semantics: Semantics | None = None) -> None:
        self.semantics = semantics or Semantics()
        self.pod = pod or make_pod("c1", "c2")
        self.client = FakeClient(self.pod)
        self.pods = Pods({self.pod.uid: self.pod})
        self.clock = Clock(NOW)
        self.monotonic = Clock(1000.0)
        self.could_run = could_run
        self.restart()

    def restart(self) -> None:
        """A new agent: its manager knows nothing yet."""
        self.manager = StatusManager(
            self.client,
            self.pods,
            lambda _uid: self.could_run,
            self.semantics,
            wall=self.clock,
            monotonic=self.monotonic,
        )

    def set(self, status: PodStatus, pod: Pod | None = None) -> bool:
        return self.manager.set_pod_status(pod or self.pod, status)

    def sync(self, *, everything: bool = False) -> str:
        """What was asked of the API server by one batch."""
        before = len(self.client.actions)
        self.manager.sync_batch(everything=everything)
        return " ".join(self.client.actions[before:])

    def learn(self) -> None:
        """The pod source has caught up with the API server."""
        assert self.client.pod is not None
        self.pods[self.pod.uid] = self.client.pod

    @property
    def status(self) -> PodStatus | None:
        return self.manager.pod_status(self.pod.uid)

    @property
    def version(self) -> int:
        """Of the pod's status; 0 for none."""
        kept = self.manager.versioned_status(self.pod.uid)
        return 0 if kept is None else kept.version

    @property
    def finished(self) -> bool:
        kept = self.manager.versioned_status(self.pod.uid)
        return kept is not None and kept.finished
