"""All containers of a pod restarted in place. Pure. Mirrors ShouldAllContainersRestart and its like of v1.36.3.

A container whose end matches a rule RestartAllContainers has all containers of the pod ended, forgotten by the runtime
and started anew, in the same sandbox.
"""

from collections.abc import Sequence

from agent.kubelet.status.conditions import (
    CONDITION_ALL_CONTAINERS_RESTARTING,
    REASON_POD_COMPLETED,
    REASON_POD_FAILED,
    find_condition,
)
from agent.kubelet.status.restarts import ACTION_RESTART_ALL, matching_rule
from agent.wire.containers import ContainerPhase, RuntimePod
from agent.wire.model import Condition, Container, ContainerTerminated, Pod, PodPhase, PodStatus
from kube.contract import STATUS_FALSE, STATUS_TRUE

REASON_STARTED = "RestartAllContainersStarted"
MESSAGE_STARTED = "container exited with restart policy rule"


def all_containers_restart(pod: Pod, status: PodStatus, runtime: RuntimePod | None = None) -> bool:
    """Are they being restarted by `status`, or has one ended, by `runtime` or by `status`, that demands it?

    With a runtime a container counts by `status` only if it has ended by the runtime too.
    """
    going_on = find_condition(status.conditions, CONDITION_ALL_CONTAINERS_RESTARTING)
    if going_on is not None and going_on.status == STATUS_TRUE:
        return True
    states = {s.name: s.state for s in (*(status.init_container_statuses or ()), *(status.container_statuses or ()))}
    for container in _all(pod):
        if runtime is not None:
            newest = runtime.newest(container.name)
            if newest is None or newest.phase is not ContainerPhase.EXITED:
                continue
            if demands_restart(container, newest.exit_code):
                return True
        state = states.get(container.name)
        if isinstance(state, ContainerTerminated) and demands_restart(container, state.exit_code):
            return True
    return False


def demands_restart(container: Container, exit_code: int) -> bool:
    """Does this end of the container have all containers of its pod restarted?"""
    rule = matching_rule(container, exit_code)
    return rule is not None and rule.action == ACTION_RESTART_ALL


def cleaned_up(pod: Pod, runtime: RuntimePod) -> bool:
    """Has the runtime forgotten all containers of the pod? (AllContainersRestartCleanedUp)"""
    return all(runtime.newest(container.name) is None for container in _all(pod))


def restarting_condition(pod: Pod, old: PodStatus, runtime: RuntimePod, phase: PodPhase | str) -> Condition:
    """AllContainersRestarting: True from the end that demanded it until the runtime has forgotten all containers."""
    reasons: dict[str, str] = {PodPhase.SUCCEEDED: REASON_POD_COMPLETED, PodPhase.FAILED: REASON_POD_FAILED}
    if phase in reasons:
        return Condition(CONDITION_ALL_CONTAINERS_RESTARTING, STATUS_FALSE, reasons[phase])
    if all_containers_restart(pod, old, runtime) and not cleaned_up(pod, runtime):
        return Condition(CONDITION_ALL_CONTAINERS_RESTARTING, STATUS_TRUE, REASON_STARTED, MESSAGE_STARTED)
    return Condition(CONDITION_ALL_CONTAINERS_RESTARTING, STATUS_FALSE)


def _all(pod: Pod) -> Sequence[Container]:
    return (*pod.init_containers, *pod.containers)
