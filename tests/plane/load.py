"""Pods at a steady rate for the real kube-scheduler, where and when each was bound; what an extender answers."""

import contextlib
import http.client
import itertools
import json
import math
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from tools.kit.waiting import wait_for
from tools.testbed.shared import bare
from tools.testbed.shared.api import Api, ApiError, condition
from tools.testbed.shared.removal import delete_all

LABEL = "readygate.dev/test-load"
ASKED = {"metadata": {"name": "asks", "namespace": "default"}, "spec": {}}
_PODS = "/api/v1/namespaces/default/pods"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Binding:
    """at: by the monotonic clock, when it was there at the latest: the API server told of it, or has written so."""

    node: str
    at: float


class Load:
    """Makes pods until its end; then deletes them all. bound: by pod. begun: when the request that makes a pod was
    sent, by the monotonic clock. made: when it was answered. moved: pods that were told to be on another node than
    first. spec: of each pod."""

    def __init__(self, api: Api, *, per_s: float = 20.0, spec: Mapping[str, object] | None = None):
        self.begun: dict[str, float] = {}
        self.made: dict[str, float] = {}
        self.bound: dict[str, Binding] = {}
        self.moved: set[str] = set()
        self._api = api
        self._spec = bare.pod_spec() if spec is None else spec
        self._every_s = 1 / per_s
        self._mark = f"load-{next(_numbers)}"
        self._stop = threading.Event()
        self._closed = threading.Event()
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._watch, self._make)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._closed.set()
        delete_all(self._api, _PODS, selector=f"{LABEL}={self._mark}")

    def stop(self) -> None:
        """No more pods; those that were made are still watched."""
        self._stop.set()
        self._threads[1].join(20)

    def unbound(self) -> set[str]:
        return set(self.made) - set(self.bound)

    def bound_within(self, seconds: float) -> int:
        """How many pods were bound so soon after they had been made."""
        return sum(self.bound[pod].at - at <= seconds for pod, at in self.made.items() if pod in self.bound)

    def bound_twice(self) -> set[str]:
        """Pods that moved, or of which the scheduler has said more than once that it has bound them."""
        events = self._api.items("/api/v1/namespaces/default/events?fieldSelector=reason=Scheduled")
        said = Counter[str]()
        for event in events:
            said[event["involvedObject"]["name"]] += (event.get("series") or {}).get("count") or event.get("count") or 1
        return self.moved | {name for name in self.made if said[name] > 1}

    def wait_all_bound(self, *, timeout_s: float) -> float:
        """Seconds it took; raises AssertionError with those that are not."""
        began = time.monotonic()
        assert wait_for(lambda: not self.unbound(), timeout_s=timeout_s), f"not bound: {sorted(self.unbound())[:9]}"
        return time.monotonic() - began

    def on(
        self, nodes: Sequence[str], *, after: float = 0.0, until: float = math.inf, begun_after: float = -math.inf
    ) -> list[str]:
        """Pods bound to these nodes in that time. A pod is bound before it is `made` where the answer comes late."""
        bound = [pod for pod, b in list(self.bound.items()) if b.node in nodes and after < b.at <= until]
        return [pod for pod in bound if self.begun[pod] >= begun_after]

    def _make(self) -> None:
        due = time.monotonic()
        for number in itertools.count(1):
            due += self._every_s
            if self._stop.wait(max(0.0, due - time.monotonic())):
                return
            name = f"{self._mark}-{number:05}"
            body = {"metadata": {"name": name, "labels": {LABEL: self._mark}}, "spec": self._spec}
            self.begun[name] = time.monotonic()
            try:
                self._api.create(_PODS, body)
            except ApiError:
                continue  # the API server may be away; what was not made is not missed
            self.made[name] = time.monotonic()

    def _watch(self) -> None:
        while not self._closed.is_set():
            try:
                for _, pod in self._api.watch(f"{_PODS}?labelSelector={LABEL}={self._mark}", timeout_s=5):
                    node = bare.bound_to(pod)
                    if node:
                        name, at = pod["metadata"]["name"], bound_by(pod, time.time(), time.monotonic())
                        if self.bound.setdefault(name, Binding(node, at)).node != node:
                            self.moved.add(name)
                    if self._closed.is_set():
                        return
            except Exception:  # noqa: BLE001 - the API server is away: again
                time.sleep(0.1)


def bound_by(pod: Mapping[str, object], wall: float, monotonic: float) -> float:
    """By the monotonic clock: when this pod was bound at the latest, of which we hear now. The API server writes whole
    seconds, and one that was away, or a watch that was cut, tells late."""
    written = condition(dict(pod), "PodScheduled").get("lastTransitionTime")
    if not written:
        return monotonic
    latest = datetime.fromisoformat(written).timestamp() + 1.0
    return monotonic + min(0.0, latest - wall)


def ask(
    port: int, names: Sequence[str], *, pod: Mapping[str, object] = ASKED, timeout_s: float = 15.0
) -> dict[str, object]:
    """One filter call as kube-scheduler makes it: the answer, or `{}` without one."""
    body = json.dumps({"Pod": pod, "NodeNames": list(names)})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        connection.request("POST", "/filter", body, {"Content-Type": "application/json"})
        answer: dict[str, object] = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException):
        return {}
    finally:
        connection.close()
    return answer


def told_after(port: int, node: str, *, is_open: bool, timeout_s: float = 120.0) -> float:
    """Seconds until the extender calls the node so. Raises AssertionError."""
    began = time.monotonic()

    def tells() -> bool:
        answer = ask(port, [node])
        return not answer.get("Error") and answer.get("NodeNames") == ([node] if is_open else [])

    assert wait_for(tells, timeout_s=timeout_s, every_s=0.02), f"{node} not told {is_open=} in {timeout_s:.0f} s"
    return time.monotonic() - began


@contextlib.contextmanager
def noted() -> Iterator[dict[str, float]]:
    """Figures of a test, printed at its end."""
    figures: dict[str, float] = {}
    try:
        yield figures
    finally:
        print({name: round(value, 3) for name, value in figures.items()})
