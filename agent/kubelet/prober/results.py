"""The last stable result of every container: three of these, one per probe type (pkg/kubelet/prober/results)."""

import threading
from collections.abc import Callable

from agent.wire.model import ProbeUpdate, Result


class Results:
    """Container id -> last stable result, safe for threads.

    `on_update` is called in the thread of the writer, outside the lock, for each new or changed value. It may block:
    the worker then waits, as kubelet's does on its full channel. One writer per container keeps updates in order.
    """

    def __init__(self, on_update: Callable[[ProbeUpdate], None] | None = None) -> None:
        self._on_update = on_update
        self._lock = threading.Lock()
        self._results: dict[str, Result] = {}

    def get(self, container_id: str) -> Result | None:
        """The stable result, None if there is none."""
        with self._lock:
            return self._results.get(container_id)

    def set(self, container_id: str, result: Result, pod_uid: str) -> None:
        with self._lock:
            changed = self._results.get(container_id) is not result
            self._results[container_id] = result
        if changed and self._on_update is not None:
            self._on_update(ProbeUpdate(container_id, result, pod_uid))

    def restore(self, container_id: str, result: Result) -> None:
        """What an agent before us has found: no update."""
        with self._lock:
            self._results[container_id] = result

    def remove(self, container_id: str) -> None:
        """Forgets the container, without an update."""
        with self._lock:
            self._results.pop(container_id, None)
