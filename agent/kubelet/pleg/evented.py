"""What follows from what the runtime tells by itself, and when that is given up. Pure.

Mirrors processCRIEvents and the retries of watchEventsChannel in pkg/kubelet/pleg/evented.go, v1.36.3.
"""

from collections.abc import Callable
from dataclasses import dataclass

from agent.kubelet.pleg.cache import Cache
from agent.kubelet.pleg.events import EventType, PodEvent
from agent.kubelet.pleg.relist import with_kept_ip
from agent.wire.containers import ContainerEvent, EventKind, RuntimePod

FAILURES = 5  # eventedPlegMaxStreamRetries

_TOLD = {
    EventKind.CREATED: (),
    EventKind.STARTED: (EventType.STARTED,),
    EventKind.STOPPED: (EventType.DIED,),
    EventKind.DELETED: (EventType.DIED, EventType.REMOVED),
}


@dataclass(slots=True)
class Stream:
    """Of the runtime's events: after `most_failures` lists alone are believed, for good."""

    in_use: bool
    most_failures: float = FAILURES
    failures: int = 0

    def failed(self) -> None:
        self.failures += 1
        if self.failures >= self.most_failures:
            self.in_use = False


def take_event(
    event: ContainerEvent,
    pod: RuntimePod,
    monotonic: float,
    *,
    cache: Cache,
    deliver: Callable[[PodEvent], bool],
    fix_removed_container_stays_known: bool,
) -> int:
    """`pod`: as the runtime has it after the event, read at that time or later. Returns how many events were lost."""
    pod = with_kept_ip(pod, cache)
    if event.kind is not EventKind.DELETED:
        if not cache.set(pod, None, monotonic):
            return 0
    elif any(sandbox.id == event.container_id for sandbox in pod.sandboxes):
        cache.delete(event.uid)
    elif fix_removed_container_stays_known:
        if pod.sandboxes or pod.containers:
            cache.set(pod, None, monotonic)
        else:
            cache.delete(event.uid)
    return sum(not deliver(PodEvent(event.uid, type_, event.container_id)) for type_ in _TOLD[event.kind])
