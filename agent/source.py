"""The pods bound to this node, as the API server tells them: a table that the reflector fills and everybody reads."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.model import Pod
from agent.status.conditions import is_terminal, need_to_reconcile_readiness
from agent.wire import PodObject, pod_from_object
from kube import paths
from kube.client import Client
from kube.reflector import ListerWatcher, Reflector


class PodTable:
    """uid -> newest Pod. `on_change(uid)` is called outside the lock for each pod that somebody must look at."""

    def __init__(self, on_change: Callable[[str], None]) -> None:
        self._on_change = on_change
        self._lock = threading.Lock()
        self._pods: dict[str, Pod] = {}

    def pod_by_uid(self, uid: str) -> Pod | None:
        with self._lock:
            return self._pods.get(uid)

    def uids(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._pods)

    # --- kube.reflector.Store ---

    def replace(self, items: Sequence[PodObject]) -> None:
        new = {pod.uid: pod for pod in map(pod_from_object, items)}
        with self._lock:
            old, self._pods = self._pods, new
        for uid in old.keys() | new.keys():
            if uid not in old or uid not in new or concerns_sync(old[uid], new[uid]):
                self._on_change(uid)

    def upsert(self, item: PodObject) -> None:
        pod = pod_from_object(item)
        with self._lock:
            old = self._pods.get(pod.uid)
            self._pods[pod.uid] = pod
        if old is None or concerns_sync(old, pod):
            self._on_change(pod.uid)

    def remove(self, item: PodObject) -> None:
        with self._lock:
            gone = self._pods.pop(item.metadata.uid, None)
        if gone is not None:
            self._on_change(gone.uid)


def concerns_sync(old: Pod, new: Pod) -> bool:
    """Must the pod be synced? A changed status alone concerns us only by its readiness gates or a terminal phase.

    Our own writes come back as such changes; a sync on each would also probe containers that are not ready once more.
    """
    if replace(new, status=old.status) != old:
        return True
    return need_to_reconcile_readiness(new) or (is_terminal(new.status.phase) and not is_terminal(old.status.phase))


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

    def healthy(self, now: float) -> bool:
        return self._reflector.healthy(now)
