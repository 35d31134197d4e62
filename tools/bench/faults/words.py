"""Who has said what of a node, and when: its kubelet (Ready of the Node), its agent (our condition of the health pod),
and the kubelet of that pod (Ready). With what the extender says, they tell whose a wait is."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple, Self

import urllib3

from kube import contract
from tools.testbed.shared.api import Api, ApiError, condition

KUBELET, AGENT, POD, EXTENDER = "kubelet", "agent", "pod", "extender"
NODES = "/api/v1/nodes"
HEALTH_PODS = (
    f"/api/v1/namespaces/{contract.NAMESPACE}/pods?labelSelector={contract.LABEL_NAME}%3D{contract.NAME_AGENT}"
)
_WATCH_S = 240  # then anew: what has not changed is not said again


class Word(NamedTuple):
    """`at`: when it was heard, wall seconds; in a round since it was healed. `status`: True, False, Unknown, of the
    extender why it is closed; "" is open, or nothing."""

    at: float
    who: str
    status: str
    reason: str = ""

    def __str__(self) -> str:
        said = f"{self.status or 'open'}{f'({self.reason})' if self.reason else ''}"
        return f"{self.at:+.2f} {self.who} {said}"


class Words:
    """In a `with` block, which begins when all nodes have been heard."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._heard: dict[str, list[Word]] = {}
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._follow, args=what, name="words", daemon=True)
            for what in ((NODES, self._of_node), (HEALTH_PODS, self._of_pod))
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()  # the threads end with their watches, or with the process

    def of(self, node: str) -> list[Word]:
        with self._lock:
            return list(self._heard.get(node, ()))

    def hear(self, node: str, who: str, status: str, reason: str = "") -> None:
        """Nothing where it has said the same before."""
        with self._lock:
            words = self._heard.setdefault(node, [])
            before = next((word for word in reversed(words) if word.who == who), None)
            if before is None or (before.status, before.reason) != (status, reason):
                words.append(Word(time.time(), who, status, reason))

    def _of_node(self, seen: dict[str, Any]) -> None:
        ready = condition(seen, "Ready")
        self.hear(seen["metadata"]["name"], KUBELET, ready.get("status", ""), ready.get("reason", ""))

    def _of_pod(self, seen: dict[str, Any]) -> None:
        node = seen["spec"].get("nodeName")
        if not node or "deletionTimestamp" in seen["metadata"]:
            return
        ours, ready = condition(seen, contract.CONDITION_NODE_HEALTHY), condition(seen, "Ready")
        self.hear(node, AGENT, ours.get("status", ""), ours.get("reason", ""))
        self.hear(node, POD, ready.get("status", ""), ready.get("reason", ""))

    def _follow(self, path: str, take: Callable[[dict[str, Any]], None]) -> None:
        while not self._over.is_set():
            try:
                for kind, seen in self._api.watch(path, timeout_s=_WATCH_S):
                    if self._over.is_set():
                        return
                    if kind in ("ADDED", "MODIFIED"):
                        take(seen)
            except (ApiError, urllib3.exceptions.HTTPError, ValueError):
                self._over.wait(0.5)


def around(words: list[Word], began: float, healed: float) -> tuple[Word, ...]:
    """Those since it began, in order, by seconds since it was healed; before them what each has said last by then."""
    before = {word.who: word for word in sorted(words) if word.at < began}
    after = [word for word in words if word.at >= began]
    return tuple(word._replace(at=round(word.at - healed, 3)) for word in sorted([*before.values(), *after]))


def stood_unready(words: tuple[Word, ...]) -> bool:
    """Whether the kubelet called its node not ready at the moment when it was healed, or after it: until it takes that
    back, no later than with its next status in ten seconds, Kubernetes itself lets no pod in."""
    theirs = [word for word in words if word.who == KUBELET]
    last = [word for word in theirs if word.at < 0][-1:]
    return any(word.status != contract.STATUS_TRUE for word in [*last, *(word for word in theirs if word.at >= 0)])
