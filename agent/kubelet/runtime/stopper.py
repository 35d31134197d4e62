"""Containers that are being stopped: a thread each, since the call comes back when the container has ended.

A stop that fails is tried again until the container has ended or is gone: who asked for it does not ask twice.
"""

import logging
import threading
import time
from collections.abc import Callable

from agent.processes.command import RuntimeUnavailable
from component.backoff import Backoff

log = logging.getLogger(__name__)

FIRST_S, LIMIT_S = 1.0, 10.0


class Stopper:
    """Any thread may ask. `stop(container_id, grace_s)` makes one try; it raises RuntimeUnavailable."""

    def __init__(self, stop: Callable[[str, float], None], *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._stop = stop
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._deadlines: dict[str, float] = {}
        self._closing = threading.Event()

    def ask(self, container_id: str, grace_s: float) -> None:
        """Never waits. Of several for one container the nearest deadline counts."""
        deadline = self._monotonic() + grace_s
        arguments = (container_id, deadline)
        thread = threading.Thread(target=self._run, args=arguments, name=f"stop-{container_id[-8:]}", daemon=True)
        with self._lock:  # which the new thread waits for, and one of before, before it gives up
            known = self._deadlines.get(container_id)
            if known is not None and known <= deadline:
                return
            try:
                thread.start()
            except RuntimeError as e:
                raise RuntimeUnavailable(f"container {container_id} not stopped: no thread for it: {e}") from e
            self._deadlines[container_id] = deadline

    def close(self) -> None:
        """Nothing is tried again."""
        self._closing.set()

    def _run(self, container_id: str, deadline: float) -> None:
        backoff, said = Backoff(FIRST_S, LIMIT_S), ""
        while not self._closing.is_set() and self._counts(container_id, deadline):
            try:
                self._stop(container_id, max(0.0, deadline - self._monotonic()))
                break
            except RuntimeUnavailable as e:
                if str(e) != said:
                    log.warning("container not stopped", extra={"id": container_id, "error": str(e)})
                said = str(e)
            except Exception:
                log.exception("container not stopped", extra={"id": container_id})
            delay_s, backoff = backoff.next(lambda: 0.0)
            self._closing.wait(delay_s)
        self._over(container_id, deadline)

    def _counts(self, container_id: str, deadline: float) -> bool:
        with self._lock:
            return self._deadlines.get(container_id) == deadline

    def _over(self, container_id: str, deadline: float) -> None:
        with self._lock:
            if self._deadlines.get(container_id) == deadline:
                del self._deadlines[container_id]
