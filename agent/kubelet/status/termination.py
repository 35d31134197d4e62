"""The status of a pod whose containers are gone for good. Pure; as TerminatePod of status_manager.go, v1.36.3."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from agent.kubelet.status.conditions import is_terminal
from agent.kubelet.status.restarts import is_sidecar
from agent.wire.model import (
    ContainerRunning,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Pod,
    PodPhase,
    PodStatus,
)
from agent.wire.semantics import Semantics

REASON_STATUS_UNKNOWN = "ContainerStatusUnknown"
MESSAGE_TERMINATED = "The container could not be located when the pod was terminated"
EXIT_CODE_UNKNOWN = 137

_LOST = ContainerTerminated(exit_code=EXIT_CODE_UNKNOWN, reason=REASON_STATUS_UNKNOWN, message=MESSAGE_TERMINATED)


class Termination(NamedTuple):
    """The labels of kubelet_terminated_containers_total."""

    container_type: str
    exit_code: int
    reason: str


def terminations(old: PodStatus, new: PodStatus) -> list[Termination]:
    """Of the containers that have ended in the new status and had not in the old one."""
    lists = (
        ("init_container", old.init_container_statuses, new.init_container_statuses),
        ("container", old.container_statuses, new.container_statuses),
        ("ephemeral_container", old.ephemeral_container_statuses, new.ephemeral_container_statuses),
    )
    found: list[Termination] = []
    for kind, before, after in lists:
        had_ended = {c.name for c in before or () if isinstance(c.state, ContainerTerminated)}
        found += [
            Termination(kind, container.state.exit_code, container.state.reason)
            for container in after or ()
            if isinstance(container.state, ContainerTerminated) and container.name not in had_ended
        ]
    return found


def terminated_status(pod: Pod, status: PodStatus, semantics: Semantics) -> PodStatus:
    """`status` (the newest known) with every container that cannot be accounted for ended by 137, and a terminal phase.

    Whether the app containers ever started is read from `pod.status`, the API's copy, as upstream does.
    """
    app, init = status.container_statuses, status.init_container_statuses
    if not semantics.lost_containers_fail:
        return replace(status, container_statuses=_blank(app), init_container_statuses=_blank(init))
    if app is not None and has_initialized(pod):
        app = tuple(_ended(s) for s in app)
    if init is not None:
        started = _started_count(init)
        init = tuple(_ended(s) if index < started else s for index, s in enumerate(init))
    phase = status.phase if pod.static or is_terminal(status.phase) else PodPhase.FAILED
    return replace(status, container_statuses=app, init_container_statuses=init, phase=phase)


def has_initialized(pod: Pod) -> bool:
    """Is there evidence that the pod's init containers were done? (hasPodInitialized)"""
    if not pod.init_containers:
        return True
    for status in pod.status.container_statuses or ():
        if isinstance(status.last_state, ContainerTerminated) or not isinstance(status.state, ContainerWaiting):
            return True
    init = pod.status.init_container_statuses or ()
    if not init:
        return False
    last = init[-1]
    if len(init) > len(pod.init_containers) or pod.init_containers[len(init) - 1].name != last.name:
        return False
    if is_sidecar(pod.init_containers[len(init) - 1]):
        return isinstance(last.state, ContainerRunning) and last.started is True
    return any(isinstance(s, ContainerTerminated) and s.exit_code == 0 for s in (last.last_state, last.state))


def _blank(statuses: Sequence[ContainerStatus] | None) -> tuple[ContainerStatus, ...] | None:
    """Whatever they were."""
    if statuses is None:
        return None
    return tuple(replace(status, state=ContainerTerminated(exit_code=0)) for status in statuses)


def _ended(status: ContainerStatus) -> ContainerStatus:
    return status if isinstance(status.state, ContainerTerminated) else replace(status, state=_LOST)


def _started_count(statuses: Sequence[ContainerStatus]) -> int:
    """All but the last ones that never started; the first is always counted (initializedContainers)."""
    for index in range(len(statuses) - 1, -1, -1):
        status = statuses[index]
        if not isinstance(status.state, ContainerWaiting) or isinstance(status.last_state, ContainerTerminated):
            return index + 1
    return min(1, len(statuses))
