"""The phase of a pod from its container statuses. Pure. Mirrors getPhase of pkg/kubelet/kubelet_pods.go of v1.36.3."""

from collections import Counter
from collections.abc import Sequence

from agent.model import (
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
from agent.status.restarts import is_sidecar, should_restart

REASON_RESTARTING_ALL = "RestartingAllContainers"


def pod_phase(
    pod: Pod,
    statuses: Sequence[ContainerStatus],
    *,
    pod_is_terminal: bool,
    initialized: bool,
    restart_rules: bool = True,
) -> PodPhase:
    """Phase of `pod`; `statuses` holds app and init containers together.

    `pod_is_terminal`: every container was stopped by termination and none will start again.
    `initialized`: some app container belongs to the newest sandbox.
    `restart_rules` is the gate ContainerRestartRules.
    """
    by_name = {status.name: status for status in reversed(statuses)}
    counts: Counter[str] = Counter()
    for container in pod.init_containers:
        if not is_sidecar(container):
            _count_init(container, pod, by_name.get(container.name), counts)
    for container in pod.init_containers:
        if is_sidecar(container):
            _count_sidecar(by_name.get(container.name), counts)
    for container in pod.containers:
        _count_app(container, pod, by_name.get(container.name), counts)

    if counts["init failed for good" if restart_rules else "init failed"] and (
        restart_rules or pod.restart_policy == RestartPolicy.NEVER
    ):
        return PodPhase.FAILED
    if counts["init pending"] or (counts["sidecar pending"] and not initialized) or counts["waiting"]:
        return PodPhase.PENDING
    if counts["running"] and not counts["unknown"]:
        return PodPhase.RUNNING
    if counts["stopped"] and not counts["running"] and not counts["unknown"]:
        return _stopped_phase(pod, counts, pod_is_terminal=pod_is_terminal, restart_rules=restart_rules)
    return PodPhase.PENDING


def _stopped_phase(pod: Pod, counts: Counter[str], *, pod_is_terminal: bool, restart_rules: bool) -> PodPhase:
    ended = PodPhase.SUCCEEDED if counts["stopped"] == counts["succeeded"] else PodPhase.FAILED
    if pod_is_terminal and not pod.static:
        return ended
    if restart_rules:
        return PodPhase.RUNNING if counts["stopped"] != counts["stopped for good"] else ended
    if pod.restart_policy == RestartPolicy.ALWAYS:
        return PodPhase.RUNNING
    if ended is PodPhase.SUCCEEDED or pod.restart_policy == RestartPolicy.NEVER:
        return ended
    return PodPhase.RUNNING


def _count_init(container: Container, pod: Pod, status: ContainerStatus | None, counts: Counter[str]) -> None:
    ended = _end_of(status)
    if ended is None:
        counts["init pending"] += 1
    elif ended.exit_code != 0:
        counts["init failed"] += 1
        if _is_for_good(container, pod, ended):
            counts["init failed for good"] += 1


def _count_sidecar(status: ContainerStatus | None, counts: Counter[str]) -> None:
    # A sidecar that ended, now or before its present wait, says nothing about the phase.
    if status is None:
        counts["unknown"] += 1
        return
    match status.state:
        case ContainerRunning():
            counts["running"] += 1
            if status.started is not True:
                counts["sidecar pending"] += 1
        case ContainerTerminated():
            pass
        case ContainerWaiting():
            if not isinstance(status.last_state, ContainerTerminated):
                counts["sidecar pending"] += 1
                counts["waiting"] += 1
        case None:
            counts["sidecar pending"] += 1
            counts["unknown"] += 1


def _count_app(container: Container, pod: Pod, status: ContainerStatus | None, counts: Counter[str]) -> None:
    state: ContainerState | None = status.state if status is not None else None
    ended = _end_of(status)
    if ended is not None:
        counts["stopped"] += 1
        if _is_for_good(container, pod, ended):
            counts["stopped for good"] += 1
        if isinstance(state, ContainerTerminated) and ended.exit_code == 0:
            counts["succeeded"] += 1
    elif isinstance(state, ContainerRunning):
        counts["running"] += 1
    elif isinstance(state, ContainerWaiting):
        counts["waiting"] += 1
    else:
        counts["unknown"] += 1


def _end_of(status: ContainerStatus | None) -> ContainerTerminated | None:
    """How the container ended, now or before its present wait."""
    if status is None:
        return None
    if isinstance(status.state, ContainerTerminated):
        return status.state
    if isinstance(status.state, ContainerWaiting) and isinstance(status.last_state, ContainerTerminated):
        return status.last_state
    return None


def _is_for_good(container: Container, pod: Pod, ended: ContainerTerminated) -> bool:
    return not should_restart(container, pod, ended.exit_code) and ended.reason != REASON_RESTARTING_ALL
