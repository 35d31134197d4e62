"""Work queue of pod UIDs, deduplicated, and the consumer of the bounded channel of pod events."""

import threading

from agent.kubelet.pleg.channel import EventChannel
from agent.kubelet.pleg.events import EventType, PodEvent


class WorkQueue:
    """Each UID at most once, however often it was put. Any thread may put or deliver; the sync loop takes."""

    def __init__(self) -> None:
        self._filled = threading.Condition()
        self._uids: set[str] = set()
        self._events = EventChannel()
        self.events_full = self._events.full

    def put(self, uid: str) -> None:
        """Never waits for the loop."""
        with self._filled:
            self._uids.add(uid)
            self._filled.notify()

    def deliver(self, event: PodEvent) -> bool:
        """Never waits for the loop. Returns False where the channel is full: the event is discarded."""
        with self._filled:
            delivered = self._events.put(event)
            self._filled.notify()
        return delivered

    def take(self, timeout_s: float) -> set[str]:
        """Everything that is there, after waiting for the first one; empty when none came in time. What is gone from
        the runtime makes no sync (isSyncPodWorthy)."""
        with self._filled:
            if timeout_s > 0:
                self._filled.wait_for(lambda: self._uids or len(self._events), timeout_s)
            taken, self._uids = self._uids, set()
            taken.update(event.uid for event in self._events.take() if event.type is not EventType.REMOVED)
            return taken
