"""Keeps a mirror of each static pod in the API server. As tryReconcileMirrorPods of pkg/kubelet, v1.36.3, and its
clean-up of orphaned mirrors.

A kubelet makes and deletes mirrors in the worker of the pod. Here one thread does, as no step of the sync loop may wait
for the network.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from agent.wire.manifest import StaticPod
from agent.wire.model import Node, Pod
from agent.wire.pod import ANNOTATION_CONFIG_HASH, ANNOTATION_CONFIG_MIRROR, delete_options, write_mirror
from component.loop import Loop
from kube import paths
from kube.errors import AlreadyExists, Conflict, CredentialsInvalid, KubeError, NotFound, Unreachable

log = logging.getLogger(__name__)

TURN_S = 2.0  # the kubelet's housekeeping
RETRY_S = 10.0
STUCK_AFTER_S = 60.0


class PodClient(Protocol):
    """The part of kube.client.Client that is used."""

    def create(self, path: str, body: bytes) -> bytes: ...
    def delete(self, path: str, body: bytes = b"") -> bytes: ...


class Table(Protocol):
    """The part of agent.kubelet.pods.source.PodTable that is used."""

    def mirror_of(self, pod: Pod) -> Pod | None: ...
    def orphaned_mirrors(self) -> list[Pod]: ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """`delete`: the mirror that must go. `create`: the static pod that has none then."""

    delete: Pod | None = None
    create: StaticPod | None = None


def is_mirror_of(mirror: Pod, pod: Pod) -> bool:
    """Of pods with one name: IsMirrorPodOf."""
    given = mirror.annotations.get(ANNOTATION_CONFIG_MIRROR)
    return given is not None and given == pod.annotations.get(ANNOTATION_CONFIG_HASH, "")


def wanted_of(one: StaticPod, mirror: Pod | None) -> Wanted:
    if mirror is None:
        return Wanted(create=one)
    if mirror.deletion_timestamp is not None or not is_mirror_of(mirror, one.pod):
        return Wanted(delete=mirror, create=one)
    return Wanted()


class Mirrors:
    """A Service. `pods`: the static pods of files. `synced`: whether they and the pods of the API server are known,
    without which no mirror is an orphan. `runs(uid)`: whether the sync loop has begun with the pod, as one waits
    for an earlier pod of its name. `ends(namespace, name)`: whether a static pod of that name is being ended, whose
    mirror shows how. `node`: as it is registered, None where it is not: each mirror belongs to it."""

    name = "mirror pods"

    def __init__(
        self,
        client: PodClient,
        table: Table,
        *,
        pods: Callable[[], Sequence[StaticPod]],
        synced: Callable[[], bool],
        runs: Callable[[str], bool],
        ends: Callable[[str, str], bool],
        node: Callable[[], Node | None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._table = client, table
        self._pods, self._synced, self._runs, self._ends, self._node = pods, synced, runs, ends, node
        self._monotonic = monotonic
        # By namespace and name: the mirrors' uids, "" for none, for which the last try was made, and when.
        self._tried: dict[tuple[str, str], tuple[frozenset[str], float]] = {}
        self._loop = Loop("mirror-pods", self.turn, stuck_after_s=STUCK_AFTER_S, monotonic=monotonic)
        # A Service by its loop.
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy
        self.wake = self._loop.wake

    def turn(self) -> float:
        """Makes and deletes what it must; returns the seconds until the next turn."""
        for one in self._pods():
            mirror = self._table.mirror_of(one.pod)
            if self._runs(one.pod.uid):
                self._do(one.pod, wanted_of(one, mirror), "" if mirror is None else mirror.uid)
        if self._synced():
            for mirror in self._table.orphaned_mirrors():
                if not self._ends(mirror.namespace, mirror.name):
                    self._do(mirror, Wanted(delete=mirror), mirror.uid)
        return TURN_S

    def _do(self, pod: Pod, wanted: Wanted, seen: str) -> None:
        """Once in ten seconds for what the table shows, which is later than the answer."""
        name = (pod.namespace, pod.name)
        if wanted == Wanted():
            self._tried.pop(name, None)
            return
        uids, at = self._tried.get(name, (frozenset[str](), 0.0))
        if seen in uids and self._monotonic() - at < RETRY_S:
            return
        node = self._node()
        if wanted.create is not None and wanted.delete is None and node is None:
            return  # it is registered first
        self._loop.progressed()
        self._tried[name] = (frozenset({seen, ""}), self._monotonic())
        facts = {"pod": f"{pod.namespace}/{pod.name}"}
        try:
            if wanted.delete is not None and not self._delete(wanted.delete, facts):
                return
            if wanted.create is not None and node is not None:
                self._create(wanted.create, node, facts)
        except (KubeError, CredentialsInvalid) as e:
            if not isinstance(e, Unreachable):
                log.warning("mirror pod not written", extra={**facts, "cause": type(e).__name__, "error": str(e)})

    def _delete(self, mirror: Pod, facts: Mapping[str, str]) -> bool:
        """Whether it was there."""
        try:
            self._client.delete(paths.pod(mirror.namespace, mirror.name), delete_options(mirror.uid))
        except (NotFound, Conflict):
            return False
        log.info("mirror pod deleted", extra={**facts, "uid": mirror.uid})
        return True

    def _create(self, one: StaticPod, node: Node, facts: Mapping[str, str]) -> None:
        try:
            self._client.create(paths.pods(one.pod.namespace), write_mirror(one.manifest, node.name, node.uid))
        except AlreadyExists:  # the table shows soon which
            return
        log.info("mirror pod created", extra=facts)
