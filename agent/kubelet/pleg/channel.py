"""The bounded channel of pod events: between the threads that find changes and the thread that syncs pods.

Mirrors the channel of pkg/kubelet/kubelet.go and the sends of pkg/kubelet/pleg/{generic,evented}.go, v1.36.3. A full
channel discards the new event: a sender that waits deadlocks with its consumer (kubernetes/kubernetes#72482, fixed by
#72709). Nothing lists the pod again for it (#136408 proposed that, and was closed): the cache is true, and the consumer
comes back to each pod by itself.
"""

import logging
import threading
from collections import deque

from agent.kubelet.pleg.events import PodEvent

log = logging.getLogger(__name__)

CAPACITY = 1000  # plegChannelCapacity


class EventChannel:
    """Any thread may put and take; neither waits."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._events: deque[PodEvent] = deque()
        self._logged = False  # since the last take

    def __len__(self) -> int:
        return len(self._events)

    def put(self, event: PodEvent) -> bool:
        """Returns False where there is no room: the event is discarded, and the first one in a row is logged."""
        with self._lock:
            if len(self._events) < self._capacity:
                self._events.append(event)
                return True
            first, self._logged = not self._logged, True
        if first:
            log.error(
                "event channel is full, events are discarded", extra={"uid": event.uid, "event": event.type.value}
            )
        return False

    def take(self) -> list[PodEvent]:
        """All events, oldest first."""
        with self._lock:
            taken, self._events, self._logged = list(self._events), deque(), False
        return taken

    def full(self) -> str:
        """The error of EventedPLEG's health check; "" while there is room."""
        waiting = len(self._events)
        if waiting < self._capacity:
            return ""
        return f"EventedPLEG: pleg event channel capacity is full with {waiting} events"
