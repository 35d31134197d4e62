"""A runtime as it was seen last: what is asked is answered from memory, however slow it is; what is done, it does."""

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from agent.kubelet.pleg.generator import EventGenerator
from agent.kubelet.runtime.base import ContainerRuntime
from agent.processes.command import Completed, RuntimeUnavailable
from agent.wire.containers import RuntimePod
from agent.wire.model import Container, Pod


class EndingRuntime(ContainerRuntime, Protocol):
    def end_all(self, grace_s: float, wait_s: float) -> bool: ...


class CachedRuntime:
    """For the sync loop and its workers. What they did shows at once: they do not wait for events that tell of it."""

    def __init__(self, runtime: EndingRuntime, generator: EventGenerator, *, wake: Callable[[str], None]) -> None:
        self._runtime = runtime
        self._generator = generator
        self._cache = generator.cache
        self._wake = wake

    def ready(self, uid: str) -> bool:
        """Is anything known of the pod, be it that there is nothing? If not, `wake` is called when it is."""
        return self._cache.newer_than(uid, -math.inf, lambda _entry: self._wake(uid)) is not None

    def pod(self, uid: str) -> RuntimePod:
        """Raises RuntimeUnavailable where it could not be inspected."""
        entry = self._cache.get(uid)
        if entry.error is not None:
            raise RuntimeUnavailable(f"pod {uid} could not be inspected: {entry.error}") from entry.error
        return entry.pod

    def list_pods(self, uid: str = "") -> Sequence[RuntimePod]:
        return [self.pod(known) for known in self._cache.uids() if uid in ("", known)]

    def known_pods(self) -> frozenset[str]:
        return self._cache.uids()

    def prepare_pod(self, pod: Pod) -> str:
        try:
            return self._runtime.prepare_pod(pod)
        finally:
            self._inspect(pod.uid)

    def start_container(self, pod: Pod, container: Container, restart_count: int) -> str:
        try:
            return self._runtime.start_container(pod, container, restart_count)
        finally:
            self._inspect(pod.uid)

    def stop_container(self, container_id: str, grace_s: float) -> None:
        self._runtime.stop_container(container_id, grace_s)

    def remove_container(self, container_id: str) -> None:
        uids = [
            uid for uid in self._cache.uids() if any(c.id == container_id for c in self._cache.get(uid).pod.containers)
        ]
        self._runtime.remove_container(container_id)
        for uid in uids:
            self._generator.inspect(uid)

    def stop_pod(self, uid: str) -> None:
        try:
            self._runtime.stop_pod(uid)
        finally:
            self._inspect(uid)

    def remove_pod(self, uid: str) -> None:
        try:
            self._runtime.remove_pod(uid)
        finally:
            self._inspect(uid)

    def exec(self, container_id: str, command: Sequence[str], timeout_s: float) -> Completed:
        return self._runtime.exec(container_id, command, timeout_s)

    def end_all(self, grace_s: float, wait_s: float) -> bool:
        """Ends every container; what is left of them is known then."""
        ended = self._runtime.end_all(grace_s, wait_s=wait_s)
        for uid in self._cache.uids():
            self._generator.inspect(uid)
        return ended

    def _inspect(self, uid: str) -> None:
        """After what was done, whatever has been told meanwhile: that may lie in the middle of it. So the next sync
        sees what is newer than what the last one has done, or that nothing is known (GetNewerThan of the kubelet)."""
        self._generator.inspect(uid)
