"""Pods of one node are made and deleted; a watch tells when each was Ready and when each was gone."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

import urllib3

from kube.contract import CONDITION_READY, STATUS_TRUE
from tools.bench.processes import MeasurementError
from tools.testbed.shared.api import Api, ApiError, Object, condition

NAMESPACE = "default"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
LABEL = "readygate-bench-pods"
WRITERS = 8
WATCH_S = 3600
LIMIT_S = 600.0
STAYS = ["/bin/sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"]


@dataclass(frozen=True)
class Round:
    """`arm`: who ran the pods. `began`: when the first pod was made, seconds since 1970. `ready_s`: from then until all
    were Ready; `gone_s`: from the first deletion until none was left."""

    arm: str
    pods: int
    began: float
    ready_s: float
    gone_s: float
    load: float


@dataclass
class Seen:
    """What a watch has told of pods. Events may come in any order of pods, and more than once for one."""

    ready: dict[str, float] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)

    def take(self, kind: str, pod: Object, at: float) -> None:
        """at: when the event came (monotonic)."""
        name = pod["metadata"]["name"]
        if kind == "DELETED":
            self.gone.setdefault(name, at)
        elif condition(pod, CONDITION_READY).get("status") == STATUS_TRUE:
            self.ready.setdefault(name, at)

    def all_ready_at(self, names: Sequence[str]) -> float | None:
        """When the last of them was Ready for the first time; None while one is not."""
        return max((self.ready[name] for name in names), default=None) if self.ready.keys() >= set(names) else None

    def all_gone_at(self, names: Sequence[str]) -> float | None:
        return max((self.gone[name] for name in names), default=None) if self.gone.keys() >= set(names) else None


class Pods:
    """The pods of this benchmark in one cluster. Constructed, then used by `with`."""

    def __init__(self, api: Api, image: str) -> None:
        self._api, self._image = api, image
        self._seen, self._lock = Seen(), threading.Lock()
        self._told = threading.Condition(self._lock)
        self._ended = False
        self._made = 0
        self._thread = threading.Thread(target=self._watch, name="pods-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        with suppress(ApiError):
            self._api.request("DELETE", f"{PODS}?labelSelector=app%3D{LABEL}&gracePeriodSeconds=0")

    def play(self, node: str, count: int) -> tuple[float, float, float]:
        """Makes so many pods on a node, and deletes them when all are Ready: (began, ready_s, gone_s) as of Round.

        Raises MeasurementError.
        """
        self._made += 1
        names = [f"pods-{self._made}-{number}" for number in range(count)]
        wall, began = time.time(), time.monotonic()
        self._each(names, lambda name: self._api.create(PODS, self._pod(name, node)))
        ready_s = self._wait(lambda: self._seen.all_ready_at(names), f"{count} pods of {node} are Ready") - began
        began = time.monotonic()
        self._each(names, lambda name: self._api.delete(f"{PODS}/{name}"))
        gone_s = self._wait(lambda: self._seen.all_gone_at(names), f"{count} pods of {node} are gone") - began
        return wall, ready_s, gone_s

    def _each(self, names: Sequence[str], call: Callable[[str], object]) -> None:
        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(call, names))

    def _wait(self, at: Callable[[], float | None], what: str) -> float:
        until = time.monotonic() + LIMIT_S
        with self._told:
            while (found := at()) is None:
                left_s = until - time.monotonic()
                if left_s <= 0:
                    raise MeasurementError(f"not after {LIMIT_S:.0f} s: {what}")
                self._told.wait(left_s)
        return found

    def _watch(self) -> None:
        """One that breaks begins again: it then tells of what exists, and of nothing that is gone meanwhile."""
        while not self._ended:
            with suppress(ApiError, urllib3.exceptions.HTTPError, OSError):
                for kind, pod in self._api.watch(f"{PODS}?labelSelector=app%3D{LABEL}", timeout_s=WATCH_S):
                    with self._told:
                        self._seen.take(kind, pod, time.monotonic())
                        self._told.notify_all()

    def _pod(self, name: str, node: str) -> dict[str, Any]:
        container = {"name": "a", "image": self._image, "imagePullPolicy": "Never", "command": STAYS}
        spec = {
            "nodeName": node,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 30,
            "tolerations": [{"operator": "Exists"}],
            "containers": [container],
        }
        return {"metadata": {"name": name, "labels": {"app": LABEL}}, "spec": spec}
