"""What is told when containers and sandboxes of a pod change. Pure.

Mirrors generateEvents, computeEvents and getContainersFromPods of pkg/kubelet/pleg/generic.go, v1.36.3.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from agent.wire.containers import ContainerPhase, RuntimePod


class EventType(StrEnum):
    STARTED = "ContainerStarted"
    DIED = "ContainerDied"
    REMOVED = "ContainerRemoved"
    CHANGED = "ContainerChanged"  # told to nobody; it makes the pod be inspected
    POD_SYNC = "PodSync"


@dataclass(frozen=True, slots=True)
class PodEvent:
    """`container_id`: of the container or sandbox, "" for the pod as a whole."""

    uid: str
    type: EventType
    container_id: str = ""


_BECAME = {
    ContainerPhase.RUNNING: EventType.STARTED,
    ContainerPhase.EXITED: EventType.DIED,
    ContainerPhase.UNKNOWN: EventType.CHANGED,
}


def pod_events(uid: str, old: RuntimePod | None, new: RuntimePod | None) -> list[PodEvent]:
    """What is to be told of a pod, `old` as it was told of last. None: the runtime does not know it."""
    if old == new:
        return []
    before, after = _phases(old), _phases(new)
    return [
        PodEvent(uid, type_, container_id)
        for container_id in before | after
        for type_ in events_between(before.get(container_id), after.get(container_id))
    ]


def events_between(before: ContainerPhase | None, after: ContainerPhase | None) -> tuple[EventType, ...]:
    """Of one container. None: it is not there. One that was made and not started is unknown, as for the kubelet."""
    if before is ContainerPhase.CREATED:
        before = ContainerPhase.UNKNOWN
    if after is ContainerPhase.CREATED:
        after = ContainerPhase.UNKNOWN
    if before is after:
        return ()
    if after is not None:
        return (_BECAME[after],)
    # One that was seen to have ended was told of before.
    return (EventType.REMOVED,) if before is ContainerPhase.EXITED else (EventType.DIED, EventType.REMOVED)


def _phases(pod: RuntimePod | None) -> dict[str, ContainerPhase]:
    """By id, containers before sandboxes. Of two with one id the first counts."""
    found: dict[str, ContainerPhase] = {}
    for container_id, phase in _each(pod) if pod is not None else ():
        found.setdefault(container_id, phase)
    return found


def _each(pod: RuntimePod) -> Iterator[tuple[str, ContainerPhase]]:
    for container in pod.containers:
        yield container.id, container.phase
    for sandbox in pod.sandboxes:
        yield sandbox.id, ContainerPhase.RUNNING if sandbox.ready else ContainerPhase.EXITED
