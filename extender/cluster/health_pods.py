"""The health pods of one list: by uid, and by node for each DaemonSet. There is no lock: the owner holds one.

Gates whose health pods are in one namespace under one label selector share a list and its watch. Each gate uses the
pods of its DaemonSet; other pods are not kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from extender.policy.evidence import HealthPod


class PodList(NamedTuple):
    """A list and its watch."""

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
    """The health pods of one list. daemon_sets: the owners that gates use, None = any."""

    def __init__(self, daemon_sets: Iterable[str | None]) -> None:
        self._views: Mapping[str | None, _OnNode] = {name: {} for name in daemon_sets}
        self._pods: dict[str, Found] = {}

    def earlier(self, uid: str) -> HealthPod | None:
        """Returns this pod as it was last seen."""
        found = self._pods.get(uid)
        return None if found is None else found.pod

    def wanted(self, daemon_set: str) -> bool:
        """Returns whether a gate uses the pods of this owner."""
        return daemon_set in self._views or None in self._views

    def on(self, daemon_set: str | None, node: str) -> tuple[HealthPod, ...]:
        return self._views[daemon_set].get(node, ())

    def any_of(self, daemon_set: str | None) -> bool:
        return bool(self._views[daemon_set])

    def replace(self, pods: Sequence[Found]) -> list[str]:
        """Replaces all pods. Returns the nodes for which something differs."""
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
        """Stores one pod; found: None if it no longer counts for a node. Returns the nodes for which something
        differs."""
        before = self._pods.get(uid)
        if before == found:
            return []
        nodes = self.remove(uid)
        if found is not None:
            self._keep(found)
            nodes.append(found.pod.node)
        return nodes

    def remove(self, uid: str) -> list[str]:
        """Removes one pod. Returns its node, if it was known."""
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
