"""The phase of a pod from its container statuses. Pure. Mirrors getPhase of pkg/kubelet/kubelet_pods.go of v1.36.3."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.kubelet.status.restarts import is_sidecar, should_restart
from agent.wire.model import (
    Container,
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Pod,
    PodPhase,
    RestartPolicy,
)
from agent.wire.semantics import Semantics

REASON_RESTARTING_ALL = "RestartingAllContainers"


@dataclass(slots=True)
class _Counts:
    """How many containers are in which state. `*_for_good`: of those, how many will not be started again.

    `init_*` are regular init containers, `sidecar_pending` sidecars that have not started; the others count app
    containers and sidecars (`stopped*` app containers alone).
    """

    init_pending: int = 0
    init_failed: int = 0
    init_failed_for_good: int = 0
    sidecar_pending: int = 0
    waiting: int = 0
    running: int = 0
    unknown: int = 0
    stopped: int = 0
    stopped_for_good: int = 0
    succeeded: int = 0


def pod_phase(
    pod: Pod,
    statuses: Sequence[ContainerStatus],
    *,
    pod_is_terminal: bool,
    initialized: bool,
    semantics: Semantics,
) -> PodPhase:
    """Phase of `pod`; `statuses` holds app and init containers together. First match wins:

        an init container failed for good                       Failed
        an init container is not done, a container waits, or    Pending
        a sidecar has not started and `initialized` is False
        some container runs, none is unknown                    Running
        all app containers stopped, no sidecar runs             see `_stopped_phase`
        else                                                    Pending

    `pod_is_terminal`: every container was stopped by termination and none will start again.
    `initialized`: some app container belongs to the newest sandbox.
    """
    counts = _counts(pod, statuses, semantics)
    if _init_failed(pod, counts, semantics):
        return PodPhase.FAILED
    if counts.init_pending or counts.waiting or (counts.sidecar_pending and not initialized):
        return PodPhase.PENDING
    if counts.running and not counts.unknown:
        return PodPhase.RUNNING
    if counts.stopped and not counts.running and not counts.unknown:
        return _stopped_phase(pod, counts, semantics, pod_is_terminal=pod_is_terminal)
    return PodPhase.PENDING


def _init_failed(pod: Pod, counts: _Counts, semantics: Semantics) -> bool:
    if semantics.container_restart_rules:
        return counts.init_failed_for_good > 0
    return counts.init_failed > 0 and pod.restart_policy == RestartPolicy.NEVER


def _stopped_phase(pod: Pod, counts: _Counts, semantics: Semantics, *, pod_is_terminal: bool) -> PodPhase:
    """Running while some container will start again, else Succeeded, or Failed when one ended with an error."""
    ended = PodPhase.SUCCEEDED if counts.stopped == counts.succeeded else PodPhase.FAILED
    if pod_is_terminal and not pod.static and semantics.lost_containers_fail:
        return ended
    if semantics.container_restart_rules:
        return PodPhase.RUNNING if counts.stopped != counts.stopped_for_good else ended
    if pod.restart_policy == RestartPolicy.ALWAYS:
        return PodPhase.RUNNING
    if ended is PodPhase.SUCCEEDED or pod.restart_policy == RestartPolicy.NEVER:
        return ended
    return PodPhase.RUNNING


def _counts(pod: Pod, statuses: Sequence[ContainerStatus], semantics: Semantics) -> _Counts:
    by_name = {status.name: status for status in reversed(statuses)}
    counts = _Counts()
    for container in pod.init_containers:
        status = by_name.get(container.name)
        if is_sidecar(container):
            _count_sidecar(status, counts)
        else:
            _count_init(container, pod, status, semantics, counts)
    for container in pod.containers:
        _count_app(container, pod, by_name.get(container.name), semantics, counts)
    return counts


def _count_init(
    container: Container, pod: Pod, status: ContainerStatus | None, semantics: Semantics, counts: _Counts
) -> None:
    ended = _end_of(status)
    if ended is None:
        counts.init_pending += 1
    elif ended.exit_code != 0:
        counts.init_failed += 1
        if _is_for_good(container, pod, ended, semantics):
            counts.init_failed_for_good += 1


def _count_sidecar(status: ContainerStatus | None, counts: _Counts) -> None:
    # A sidecar that ended, now or before its present wait, says nothing about the phase.
    if status is None:
        counts.unknown += 1
        return
    match status.state:
        case ContainerRunning():
            counts.running += 1
            if status.started is not True:
                counts.sidecar_pending += 1
        case ContainerTerminated():
            pass
        case ContainerWaiting():
            if not isinstance(status.last_state, ContainerTerminated):
                counts.sidecar_pending += 1
                counts.waiting += 1
        case None:
            counts.sidecar_pending += 1
            counts.unknown += 1


def _count_app(
    container: Container, pod: Pod, status: ContainerStatus | None, semantics: Semantics, counts: _Counts
) -> None:
    state: ContainerState | None = status.state if status is not None else None
    ended = _end_of(status)
    if ended is not None:
        counts.stopped += 1
        if _is_for_good(container, pod, ended, semantics):
            counts.stopped_for_good += 1
        if isinstance(state, ContainerTerminated) and ended.exit_code == 0:
            counts.succeeded += 1
    elif isinstance(state, ContainerRunning):
        counts.running += 1
    elif isinstance(state, ContainerWaiting):
        counts.waiting += 1
    else:
        counts.unknown += 1


def _end_of(status: ContainerStatus | None) -> ContainerTerminated | None:
    """How the container ended, now or before its present wait."""
    if status is None:
        return None
    if isinstance(status.state, ContainerTerminated):
        return status.state
    if isinstance(status.state, ContainerWaiting) and isinstance(status.last_state, ContainerTerminated):
        return status.last_state
    return None


def _is_for_good(container: Container, pod: Pod, ended: ContainerTerminated, semantics: Semantics) -> bool:
    in_place = semantics.restart_all_containers_on_container_exits and ended.reason == REASON_RESTARTING_ALL
    return not in_place and not should_restart(container, pod, ended.exit_code, semantics)
