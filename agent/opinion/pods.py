"""The health pods of this node as the API server has them. While it is away the last known ones stay."""

import logging
import threading
import time
from collections.abc import Callable, Sequence

from agent.model import Pod
from agent.opinion.selection import Chosen, HealthPods, joined
from agent.wire.pod import PodObject, pod_from_object
from kube import paths
from kube.client import Client
from kube.objects import UNREADABLE, daemon_set_of
from kube.reflector import ListerWatcher, Reflector

log = logging.getLogger(__name__)

NEWS_LIMIT_S = 75.0  # a quiet watch tells a bookmark about once a minute


class HealthPodTable:
    """A store of kube.reflector: those pods of one list that are health pods of this node. Thread-safe."""

    def __init__(self, chosen: HealthPods, node_name: str, on_change: Callable[[], None]) -> None:
        self.chosen = chosen
        self._node_name = node_name
        self._on_change = on_change
        self._lock = threading.Lock()
        self._pods: dict[str, Pod] = {}

    def pods(self) -> list[Pod]:
        with self._lock:
            return list(self._pods.values())

    def replace(self, items: Sequence[PodObject]) -> None:
        found = {item.metadata.uid: self._pod(item) for item in items if self._is_ours(item)}
        with self._lock:
            old = self._pods
            # One that can no longer be decoded is still there: it stays as it was.
            known = ((uid, pod or old.get(uid)) for uid, pod in found.items())
            self._pods = {uid: pod for uid, pod in known if pod is not None}
        self._on_change()

    def upsert(self, item: PodObject) -> None:
        pod = self._pod(item) if self._is_ours(item) else None
        if pod is None:
            return
        with self._lock:
            self._pods[pod.uid] = pod
        self._on_change()

    def remove(self, item: PodObject) -> None:
        with self._lock:
            self._pods.pop(item.metadata.uid, None)
        self._on_change()

    def _is_ours(self, item: PodObject) -> bool:
        """The server has chosen by node and labels; a server that did not must not make us write elsewhere."""
        if item.spec.node_name != self._node_name or item.metadata.namespace != self.chosen.namespace:
            return False
        return self.chosen.daemon_set in ("", daemon_set_of(item.metadata.owner_references))

    def _pod(self, item: PodObject) -> Pod | None:
        try:
            pod = pod_from_object(item)
        except (*UNREADABLE, ValueError, OverflowError) as e:
            where = f"{item.metadata.namespace}/{item.metadata.name}"
            log.warning("health pod not decoded", extra={"pod": where, "cause": type(e).__name__, "error": str(e)})
            return None
        return None if pod.mirror or pod.static else pod


class HealthPodSource:
    """A Service: one watch for each DaemonSet that is named. `on_change` is called in the threads of the watches."""

    name = "health pods"

    def __init__(
        self,
        client: Client,
        node_name: str,
        chosen: Sequence[HealthPods],
        on_change: Callable[[], None],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._tables = [HealthPodTable(one, node_name, on_change) for one in chosen]
        self._reflectors = [
            Reflector(
                ListerWatcher(
                    client,
                    paths.pods(one.namespace),
                    PodObject,
                    field_selector=f"spec.nodeName={node_name}",
                    label_selector=one.label_selector,
                ),
                table,
                name=f"health-pods-{index}",
            )
            for index, (one, table) in enumerate(zip(chosen, self._tables, strict=True))
        ]

    def pods(self) -> list[Chosen]:
        return joined((table.chosen, table.pods()) for table in self._tables)

    @property
    def synced(self) -> bool:
        return all(reflector.synced for reflector in self._reflectors)

    @property
    def news(self) -> bool:
        """Whether the API server has told of late what there is to tell."""
        monotonic = self._monotonic()
        return all(reflector.age_s(monotonic) <= NEWS_LIMIT_S for reflector in self._reflectors)

    def start(self) -> None:
        for reflector in self._reflectors:
            reflector.start()

    def stop(self) -> None:
        for reflector in self._reflectors:
            reflector.stop()

    def healthy(self, monotonic: float) -> bool:
        return all(reflector.healthy(monotonic) for reflector in self._reflectors)
