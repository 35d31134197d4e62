"""The pods bound to this node, as the API server has them: a table that the reflector fills and everybody reads."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.model import Pod
from agent.pods.index import PodIndex
from agent.semantics import Semantics
from agent.status.conditions import need_to_reconcile_readiness
from agent.wire.pod import ANNOTATION_CONFIG_SOURCE, PodObject, pod_from_object
from kube import paths
from kube.client import Client
from kube.objects import UNREADABLE
from kube.reflector import ListerWatcher, Reflector

log = logging.getLogger(__name__)


class PodTable:
    """uid -> newest Pod. `on_change(uid)` is called outside the lock for each pod that must be synced.

    Mirror pods are looked up only: they are not run, nor does a change of one concern a sync.
    """

    def __init__(self, on_change: Callable[[str], None], semantics: Semantics) -> None:
        self._on_change = on_change
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

    def resolved_uid(self, uid: str) -> str:
        with self._lock:
            return self._index.resolved_uid(uid)

    def status_uid(self, uid: str) -> str | None:
        with self._lock:
            return self._index.status_uid(uid)

    # --- kube.reflector.Store ---

    def replace(self, items: Sequence[PodObject]) -> None:
        found = {item.metadata.uid: _decoded(item) for item in items}
        with self._lock:
            old, mirrors = self._index.pods, self._index.mirrors
            # One that can no longer be decoded is still there: it stays as it was.
            known = (pod or old.get(uid) or mirrors.get(uid) for uid, pod in found.items())
            self._index = PodIndex(pod for pod in known if pod is not None)
            new = self._index.pods
        for uid in old.keys() | new.keys():
            if uid not in old or uid not in new or concerns_sync(old[uid], new[uid], self._semantics):
                self._on_change(uid)

    def upsert(self, item: PodObject) -> None:
        pod = _decoded(item)
        if pod is None:
            return
        with self._lock:
            old = self._index.pods.get(pod.uid)
            self._index.put(pod)
        if pod.mirror:
            return
        if old is None or concerns_sync(old, pod, self._semantics):
            self._on_change(pod.uid)

    def remove(self, item: PodObject) -> None:
        with self._lock:
            uid = item.metadata.uid
            gone = self._index.pods.get(uid) or self._index.mirrors.get(uid)
            if gone is not None:
                self._index.remove(gone)
        if gone is not None and not gone.mirror:
            self._on_change(gone.uid)


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
