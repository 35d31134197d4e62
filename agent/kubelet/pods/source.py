"""The pods of this node: a table that the reflector and the manifests of static pods fill, and that everybody reads."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from agent.kubelet.pods.index import PodIndex
from agent.kubelet.status.conditions import need_to_reconcile_readiness
from agent.wire.model import Pod
from agent.wire.pod import ANNOTATION_CONFIG_SOURCE, PodObject, pod_from_object
from agent.wire.semantics import Semantics
from kube import paths
from kube.client import Client
from kube.objects import UNREADABLE
from kube.reflector import ListerWatcher, Reflector

log = logging.getLogger(__name__)


class PodTable:
    """uid -> newest Pod, of the API server and of files. `on_change(uid)` is called outside the lock for each pod that
    must be synced, `on_mirror()` where a mirror pod or the set of static pods has changed.

    Mirror pods are looked up only: they are not run, nor does a change of one concern a sync.
    """

    def __init__(
        self, on_change: Callable[[str], None], semantics: Semantics, on_mirror: Callable[[], None] = lambda: None
    ) -> None:
        self._on_change, self._on_mirror = on_change, on_mirror
        self._semantics = semantics
        self._lock = threading.Lock()
        self._index = PodIndex()

    def pod_by_uid(self, uid: str) -> Pod | None:
        with self._lock:
            return self._index.pods.get(uid)

    def uids(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._index.pods)

    def mirror_of(self, pod: Pod) -> Pod | None:
        with self._lock:
            return self._index.mirror_of(pod)

    def orphaned_mirrors(self) -> list[Pod]:
        """Those of no pod (GetPodsAndMirrorPods)."""
        with self._lock:
            return self._index.orphaned_mirrors()

    def resolved_uid(self, uid: str) -> str:
        with self._lock:
            return self._index.resolved_uid(uid)

    def status_uid(self, uid: str) -> str | None:
        with self._lock:
            return self._index.status_uid(uid)

    def replace_static(self, pods: Sequence[Pod]) -> None:
        """These are the static pods from now on."""
        new = {pod.uid: pod for pod in pods}
        with self._lock:
            old = self._index.static_pods()
            for uid in old.keys() - new.keys():
                self._index.remove(old[uid])
            for uid, pod in new.items():
                if old.get(uid) != pod:
                    self._index.put(pod)
        self._report(old, new)
        if old != new:
            self._on_mirror()

    # --- kube.reflector.Store ---

    def replace(self, items: Sequence[PodObject]) -> None:
        found = {item.metadata.uid: _decoded(item) for item in items}
        with self._lock:
            old, mirrors = dict(self._index.pods), self._index.mirrors
            for pod in (*old.values(), *mirrors.values()):
                if not pod.static and pod.uid not in found:
                    self._index.remove(pod)
            for new in found.values():
                if new is not None:  # one that can no longer be decoded is still there: it stays as it was
                    self._index.put(new)
            known, known_mirrors = dict(self._index.pods), self._index.mirrors
        self._report(old, known)
        if mirrors != known_mirrors:
            self._on_mirror()

    def upsert(self, item: PodObject) -> None:
        pod = _decoded(item)
        if pod is None:
            return
        with self._lock:
            old = self._index.pods.get(pod.uid)
            self._index.put(pod)
        if pod.mirror:
            self._on_mirror()
        elif old is None or concerns_sync(old, pod, self._semantics):
            self._on_change(pod.uid)

    def remove(self, item: PodObject) -> None:
        with self._lock:
            uid = item.metadata.uid
            gone = self._index.pods.get(uid) or self._index.mirrors.get(uid)
            if gone is not None:
                self._index.remove(gone)
        if gone is not None and gone.mirror:
            self._on_mirror()
        elif gone is not None:
            self._on_change(gone.uid)

    def _report(self, old: Mapping[str, Pod], new: Mapping[str, Pod]) -> None:
        for uid in old.keys() | new.keys():
            if uid not in old or uid not in new or concerns_sync(old[uid], new[uid], self._semantics):
                self._on_change(uid)


def _decoded(item: PodObject) -> Pod | None:
    """None for an object whose status or times make no sense: it costs itself, not the others. What the API server has
    is not static, whatever its annotation says: a kubelet writes there where it has a pod from."""
    try:
        pod = pod_from_object(item)
        annotations = {**pod.annotations, ANNOTATION_CONFIG_SOURCE: "api"} if pod.static else pod.annotations
        return replace(pod, static=False, annotations=annotations)
    except (*UNREADABLE, ValueError, OverflowError) as e:
        where = f"{item.metadata.namespace}/{item.metadata.name}"
        log.warning("pod could not be decoded", extra={"pod": where, "cause": type(e).__name__, "error": str(e)})
        return None


def concerns_sync(old: Pod, new: Pod, semantics: Semantics) -> bool:
    """Must the pod be synced? A changed status alone concerns us only by its readiness gates: whatever phase another
    client writes, the status manager writes its own again (RECONCILE of pkg/kubelet/config).

    Our own writes come back as such changes; a sync on each would also probe containers that are not ready once more.
    """
    if new == old:
        return False
    return replace(new, status=old.status) != old or need_to_reconcile_readiness(new, semantics)


class PodSource:
    """A Service: keeps the table equal to the API server's pods of one node."""

    name = "pod source"

    def __init__(self, client: Client, node_name: str, table: PodTable) -> None:
        lister = ListerWatcher(client, paths.pods(), PodObject, field_selector=f"spec.nodeName={node_name}")
        self._reflector = Reflector(lister, table, name="pods")

    @property
    def synced(self) -> bool:
        return self._reflector.synced

    def start(self) -> None:
        self._reflector.start()

    def stop(self) -> None:
        self._reflector.stop()

    def healthy(self, monotonic: float) -> bool:
        return self._reflector.healthy(monotonic)
