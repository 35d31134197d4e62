"""The health pods of one list: by uid, and by node for each of those who asked for it. No lock: its owner holds one.

Gates whose health pods lie in one namespace under one label selector share a list and its watch. Each then takes the
pods of its DaemonSet; those of none are not kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from extender.policy.evidence import HealthPod


class PodList(NamedTuple):
    """What is listed and watched."""

    namespace: str
    label_selector: str


class GatePods(NamedTuple):
    """The health pods of one gate. daemon_set: the name of their owner, None = any."""

    gate: str
    pods: PodList
    daemon_set: str | None


class Found(NamedTuple):
    """A health pod and the DaemonSet that controls it, "" if none does."""

    pod: HealthPod
    daemon_set: str


_OnNode = dict[str, tuple[HealthPod, ...]]  # by node; nearly always one


class HealthPods:
    """daemon_sets: the owners that are asked for, None = any."""

    def __init__(self, daemon_sets: Iterable[str | None]) -> None:
        self._views: Mapping[str | None, _OnNode] = {name: {} for name in daemon_sets}
        self._pods: dict[str, Found] = {}

    def earlier(self, uid: str) -> HealthPod | None:
        """This pod as it was seen last."""
        found = self._pods.get(uid)
        return None if found is None else found.pod

    def wanted(self, daemon_set: str) -> bool:
        """Whether anybody asks for the pods of this owner."""
        return daemon_set in self._views or None in self._views

    def on(self, daemon_set: str | None, node: str) -> tuple[HealthPod, ...]:
        return self._views[daemon_set].get(node, ())

    def any_of(self, daemon_set: str | None) -> bool:
        return bool(self._views[daemon_set])

    def replace(self, pods: Sequence[Found]) -> list[str]:
        """Takes these instead of all; the nodes for which something differs."""
        before = self._views
        self._views = {name: {} for name in before}
        self._pods = {}
        for found in pods:
            self._keep(found)
        nodes = dict.fromkeys(node for views in (before, self._views) for view in views.values() for node in view)
        return [
            node
            for node in nodes
            if any(view.get(node) != before[name].get(node) for name, view in self._views.items())
        ]

    def upsert(self, uid: str, found: Found | None) -> list[str]:
        """found: None if nobody speaks through it (any more). The nodes for which something differs."""
        before = self._pods.get(uid)
        if before == found:
            return []
        nodes = self.remove(uid)
        if found is not None:
            self._keep(found)
            nodes.append(found.pod.node)
        return nodes

    def remove(self, uid: str) -> list[str]:
        """The node it was on, if it was known."""
        found = self._pods.pop(uid, None)
        if found is None:
            return []
        node = found.pod.node
        for view in self._of(found):
            others = tuple(pod for pod in view[node] if pod.uid != uid)
            if others:
                view[node] = others
            else:
                del view[node]
        return [node]

    def _keep(self, found: Found) -> None:
        self._pods[found.pod.uid] = found
        for view in self._of(found):
            view[found.pod.node] = (*view.get(found.pod.node, ()), found.pod)

    def _of(self, found: Found) -> list[_OnNode]:
        return [self._views[name] for name in {found.daemon_set, None} if name in self._views]
