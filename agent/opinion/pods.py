"""The health pods of this node as the API server has them. While it is away the last known ones stay."""

import itertools
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from agent.opinion.selection import Chosen, HealthPods, joined
from agent.wire.model import Pod
from agent.wire.pod import ANNOTATION_CONFIG_HASH, PodObject, pod_from_object
from component.lifecycle import StartFailed
from kube import paths
from kube.client import Client
from kube.objects import UNREADABLE, daemon_set_of
from kube.reflector import ListerWatcher, Reflector
from kube.selector import parse as parse_selector

log = logging.getLogger(__name__)

NEWS_LIMIT_S = 75.0  # a quiet watch tells a bookmark about once a minute


class _Held(NamedTuple):
    """A pod, and the DaemonSet that owns it, or ""."""

    pod: Pod
    daemon_set: str


class HealthPodTable:
    """A store of kube.reflector: those pods of one list that are health pods of this node. Thread-safe."""

    def __init__(self, chosen: HealthPods, node_name: str, on_change: Callable[[], None]) -> None:
        self.chosen = chosen
        self._node_name = node_name
        self._on_change = on_change
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {}

    def pods(self) -> list[Pod]:
        with self._lock:
            return [held.pod for held in self._held.values()]

    def begin_with(self, others: Iterable["HealthPodTable"]) -> None:
        """Until it is told its own: those that others have and it would have chosen. What was found of them stays."""
        selector = parse_selector(self.chosen.label_selector)
        known = {
            uid: held
            for other in others
            for uid, held in other.held().items()
            if held.pod.namespace == self.chosen.namespace
            and selector.matches(held.pod.labels)
            and self.chosen.daemon_set in ("", held.daemon_set)
        }
        with self._lock:
            self._held = known

    def held(self) -> dict[str, _Held]:
        with self._lock:
            return dict(self._held)

    def replace(self, items: Sequence[PodObject]) -> None:
        found = {item.metadata.uid: self._read(item) for item in items if self._is_ours(item)}
        with self._lock:
            old = self._held
            # One that can no longer be decoded is still there: it stays as it was.
            known = ((uid, held or old.get(uid)) for uid, held in found.items())
            self._held = {uid: held for uid, held in known if held is not None}
        self._on_change()

    def upsert(self, item: PodObject) -> None:
        held = self._read(item) if self._is_ours(item) else None
        if held is None:
            return
        with self._lock:
            self._held[item.metadata.uid] = held
        self._on_change()

    def remove(self, item: PodObject) -> None:
        with self._lock:
            self._held.pop(item.metadata.uid, None)
        self._on_change()

    def _is_ours(self, item: PodObject) -> bool:
        """The server has chosen by node and labels; a server that did not must not make us write elsewhere."""
        if item.spec.node_name != self._node_name or item.metadata.namespace != self.chosen.namespace:
            return False
        return self.chosen.daemon_set in ("", daemon_set_of(item.metadata.owner_references))

    def _read(self, item: PodObject) -> _Held | None:
        try:
            pod = pod_from_object(item)
        except (*UNREADABLE, ValueError, OverflowError) as e:
            where = f"{item.metadata.namespace}/{item.metadata.name}"
            log.warning("health pod not decoded", extra={"pod": where, "cause": type(e).__name__, "error": str(e)})
            return None
        if pod.mirror:  # the kubelet and the runtime know a static pod by its own uid, which is the hash
            pod = replace(pod, uid=pod.annotations.get(ANNOTATION_CONFIG_HASH) or pod.uid)
        return _Held(pod, daemon_set_of(item.metadata.owner_references))


class _Watched(NamedTuple):
    """One entry. `since`: when it came to those that were there, monotonic; before that no news of it are missed."""

    table: HealthPodTable
    reflector: Reflector[PodObject]
    since: float


class HealthPodSource:
    """A Service: one watch for each entry of node.healthPods. `on_change` is called in the threads of the watches.
    `first_pause_s`: from the start to their first requests."""

    name = "health pods"

    def __init__(
        self,
        client: Client,
        node_name: str,
        chosen: Sequence[HealthPods],
        on_change: Callable[[], None],
        *,
        first_pause_s: float = 0.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._node_name = node_name
        self._on_change = on_change
        self._monotonic = monotonic
        self._numbers = itertools.count()
        self._lock = threading.Lock()  # _stopped, and with it which are watched
        self._stopped = False
        self._watched = tuple(self._made(one, -math.inf, first_pause_s) for one in dict.fromkeys(chosen))

    def _made(self, chosen: HealthPods, since: float, first_pause_s: float = 0.0) -> _Watched:
        table = HealthPodTable(chosen, self._node_name, self._on_change)
        lister = ListerWatcher(
            self._client,
            paths.pods(chosen.namespace),
            PodObject,
            field_selector=f"spec.nodeName={self._node_name}",
            label_selector=chosen.label_selector,
        )
        name = f"health-pods-{next(self._numbers)}"
        return _Watched(table, Reflector(lister, table, name=name, first_pause_s=first_pause_s), since)

    def follow(self, chosen: Sequence[HealthPods]) -> None:
        """From now on these, by one thread. A watch goes on where its entry has stayed. A pod that an entry which is
        new chooses as one did that is gone is known all the time. Raises StartFailed: all is as it was."""
        before = {one.table.chosen: one for one in self._watched}
        after = {entry: before.get(entry) or self._made(entry, self._monotonic()) for entry in chosen}
        new = [one for entry, one in after.items() if entry not in before]
        for one in new:
            one.table.begin_with(other.table for other in before.values())
        try:
            for one in new:
                one.reflector.start()
        except RuntimeError as e:  # no thread is left
            _end(new)
            raise StartFailed(f"no watch for health pods: {e}: raise the limit of processes (pids)") from None
        with self._lock:
            stopped = self._stopped
            if not stopped:
                self._watched = tuple(after.values())
        _end(new if stopped else [one for entry, one in before.items() if entry not in after])
        self._on_change()

    def pods(self) -> list[Chosen]:
        return joined((one.table.chosen, one.table.pods()) for one in self._watched)

    @property
    def synced(self) -> bool:
        return all(one.reflector.synced for one in self._watched)

    @property
    def news(self) -> bool:
        """Whether the API server has told of late what there is to tell."""
        monotonic = self._monotonic()
        ages = (min(one.reflector.age_s(monotonic), monotonic - one.since) for one in self._watched)
        return all(age_s <= NEWS_LIMIT_S for age_s in ages)

    def start(self) -> None:
        for one in self._watched:
            one.reflector.start()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
        _end(self._watched)

    def healthy(self, monotonic: float) -> bool:
        return all(one.reflector.healthy(monotonic) for one in self._watched)


def _end(watched: Iterable[_Watched]) -> None:
    for one in watched:
        one.reflector.stop()
