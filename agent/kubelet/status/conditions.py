"""Conditions owned by the kubelet. Pure. Mirrors pkg/kubelet/status/generate.go of v1.36.3.

Every generator takes the pod (spec), the old status or None (its presence decides observedGeneration), the container
statuses and the phase. `None` statuses mean "not known at all"; an empty sequence means "known, and there are none".
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from agent.kubelet.status.restarts import is_sidecar
from agent.wire.model import Condition, ContainerRunning, ContainerStatus, ContainerTerminated, Pod, PodPhase, PodStatus
from agent.wire.semantics import Semantics
from kube.contract import (
    CONDITION_CONTAINERS_READY,
    CONDITION_POD_READY_TO_START_CONTAINERS,
    CONDITION_POD_SCHEDULED,
    CONDITION_READY,
    STATUS_FALSE,
    STATUS_TRUE,
)

CONDITION_INITIALIZED = "Initialized"
CONDITION_POD_RESIZE_IN_PROGRESS = "PodResizeInProgress"
CONDITION_POD_RESIZE_PENDING = "PodResizePending"
CONDITION_ALL_CONTAINERS_RESTARTING = "AllContainersRestarting"
CONDITION_UNSCHEDULABLE = "Unschedulable"
CONDITION_DISRUPTION_TARGET = "DisruptionTarget"

REASON_UNKNOWN_STATUSES = "UnknownContainerStatuses"
REASON_POD_COMPLETED = "PodCompleted"
REASON_POD_FAILED = "PodFailed"
REASON_CONTAINERS_NOT_READY = "ContainersNotReady"
REASON_CONTAINERS_NOT_INITIALIZED = "ContainersNotInitialized"
REASON_GATES_NOT_READY = "ReadinessGatesNotReady"

# pkg/kubelet/types/pod_status.go
OWNED = frozenset(
    {
        CONDITION_POD_SCHEDULED,
        CONDITION_READY,
        CONDITION_INITIALIZED,
        CONDITION_CONTAINERS_READY,
        CONDITION_POD_RESIZE_IN_PROGRESS,
        CONDITION_POD_RESIZE_PENDING,
        CONDITION_POD_READY_TO_START_CONTAINERS,
    }
)
OWNED_SINCE = frozenset({CONDITION_POD_RESIZE_IN_PROGRESS, CONDITION_POD_RESIZE_PENDING})
"""A kubelet that owned Unschedulable knew none of these."""
SHARED = frozenset({CONDITION_DISRUPTION_TARGET})

Statuses = Sequence[ContainerStatus]


def is_owned(condition_type: str, semantics: Semantics) -> bool:
    """Written by the kubelet alone (PodConditionByKubelet)."""
    if condition_type == CONDITION_ALL_CONTAINERS_RESTARTING:
        return semantics.restart_all_containers_on_container_exits
    if condition_type == CONDITION_POD_READY_TO_START_CONTAINERS:
        return semantics.pod_ready_to_start_containers_condition
    if semantics.owns_unschedulable and condition_type in OWNED_SINCE:
        return False
    return condition_type in OWNED or (semantics.owns_unschedulable and condition_type == CONDITION_UNSCHEDULABLE)


def is_shared(condition_type: str) -> bool:
    """Written by the kubelet and by the control plane (PodConditionSharedByKubelet)."""
    return condition_type in SHARED


def is_terminal(phase: PodPhase | str) -> bool:
    return phase in (PodPhase.FAILED, PodPhase.SUCCEEDED)


def find_condition(conditions: Iterable[Condition], condition_type: str) -> Condition | None:
    return next((c for c in conditions if c.type == condition_type), None)


def replace_or_append(conditions: Sequence[Condition], condition: Condition) -> tuple[Condition, ...]:
    """Replaces the first condition of the same type in place, else appends (ReplaceOrAppendPodCondition)."""
    kept = list(conditions)
    for index, existing in enumerate(kept):
        if existing.type == condition.type:
            kept[index] = condition
            return tuple(kept)
    return (*kept, condition)


def containers_ready_condition(
    pod: Pod,
    old: PodStatus | None,
    statuses: Statuses | None,
    phase: PodPhase | str,
    *,
    failed_is_unready: bool = True,
) -> Condition:
    """ContainersReady: sidecars in spec order, then app containers; regular init containers never count.
    `failed_is_unready`: whatever they say, no container of a Failed pod is ready (row CM20)."""
    build = partial(_condition, CONDITION_CONTAINERS_READY, pod, old)
    if statuses is None:
        return build(STATUS_FALSE, REASON_UNKNOWN_STATUSES)
    by_name = {status.name: status for status in reversed(statuses)}
    counted = [c.name for c in pod.init_containers if is_sidecar(c)] + [c.name for c in pod.containers]
    unknown = [name for name in counted if name not in by_name]
    unready = [name for name in counted if name in by_name and not by_name[name].ready]
    if phase == PodPhase.SUCCEEDED and not unknown:
        return terminal_condition(CONDITION_CONTAINERS_READY, pod, old, phase)
    if phase == PodPhase.FAILED and failed_is_unready:
        return terminal_condition(CONDITION_CONTAINERS_READY, pod, old, phase)
    message = _joined(("containers with unknown status", unknown), ("containers with unready status", unready))
    if message:
        return build(STATUS_FALSE, REASON_CONTAINERS_NOT_READY, message)
    return build(STATUS_TRUE)


def ready_condition(
    pod: Pod,
    old: PodStatus | None,
    conditions: Sequence[Condition],
    statuses: Statuses | None,
    phase: PodPhase | str,
    *,
    failed_is_unready: bool = True,
) -> Condition:
    """Ready: ContainersReady, and every readiness gate of the spec True among `conditions`."""
    build = partial(_condition, CONDITION_READY, pod, old)
    containers = containers_ready_condition(pod, old, statuses, phase, failed_is_unready=failed_is_unready)
    if containers.status != STATUS_TRUE:
        return build(containers.status, containers.reason, containers.message)
    messages = []
    for gate in pod.readiness_gates:
        condition = find_condition(conditions, gate)
        if condition is None:
            messages.append(f'corresponding condition of pod readiness gate "{gate}" does not exist.')
        elif condition.status != STATUS_TRUE:
            messages.append(f'the status of pod readiness gate "{gate}" is not "True", but {condition.status}')
    if messages:
        return build(STATUS_FALSE, REASON_GATES_NOT_READY, ", ".join(messages))
    return build(STATUS_TRUE)


def initialized_condition(
    pod: Pod,
    old: PodStatus | None,
    statuses: Statuses | None,
    phase: PodPhase | str,
    semantics: Semantics,
) -> Condition:
    """Initialized: every init container done. `statuses` holds init and app containers together. First match wins:

    there are init containers, statuses are not known       False UnknownContainerStatuses
    phase Succeeded, every init container has a status      True PodCompleted
    some app container runs or has ended                    True, unless `initialized_by_apps` is off
    every init container is done (a sidecar: has started)   True
    Initialized was True before                             True, unless RestartAllContainersOnContainerExits is off
    else                                                    False ContainersNotInitialized, names in the message
    """
    build = partial(_condition, CONDITION_INITIALIZED, pod, old)
    if statuses is None and pod.init_containers:
        return build(STATUS_FALSE, REASON_UNKNOWN_STATUSES)
    known = statuses or ()
    by_name = {status.name: status for status in reversed(known)}
    unknown, incomplete = [], []
    for container in pod.init_containers:
        status = by_name.get(container.name)
        if status is None:
            unknown.append(container.name)
        elif not (status.started is True if is_sidecar(container) else status.ready):
            incomplete.append(container.name)
    if phase == PodPhase.SUCCEEDED and not unknown:
        return build(STATUS_TRUE, REASON_POD_COMPLETED)
    app_names = {container.name for container in pod.containers}
    begun = any(s.name in app_names and isinstance(s.state, ContainerRunning | ContainerTerminated) for s in known)
    if begun and semantics.initialized_by_apps:
        return build(STATUS_TRUE)
    message = _joined(("containers with unknown status", unknown), ("containers with incomplete status", incomplete))
    if not message:
        return build(STATUS_TRUE)
    before = find_condition(old.conditions, CONDITION_INITIALIZED) if old is not None else None
    was_initialized = before is not None and before.status == STATUS_TRUE
    if was_initialized and semantics.restart_all_containers_on_container_exits:
        return build(STATUS_TRUE)
    return build(STATUS_FALSE, REASON_CONTAINERS_NOT_INITIALIZED, message)


def ready_to_start_condition(pod: Pod, old: PodStatus | None, *, sandbox_usable: bool) -> Condition:
    """PodReadyToStartContainers: True iff no new sandbox is needed."""
    build = partial(_condition, CONDITION_POD_READY_TO_START_CONTAINERS, pod, old)
    return build(STATUS_TRUE if sandbox_usable else STATUS_FALSE)


def with_ready_sandbox(pod: Pod, status: PodStatus) -> PodStatus:
    """As soon as there is a sandbox (OnPodSandboxReady)."""
    made = ready_to_start_condition(pod, status, sandbox_usable=True)
    return replace(status, conditions=replace_or_append(status.conditions, made))


def scheduled_condition(pod: Pod, old: PodStatus | None) -> Condition:
    return _condition(CONDITION_POD_SCHEDULED, pod, old, STATUS_TRUE)


def terminal_condition(condition_type: str, pod: Pod, old: PodStatus | None, phase: PodPhase | str) -> Condition:
    """Ready or ContainersReady of a pod that is over: False, with the reason its phase gives."""
    reasons: dict[str, str] = {PodPhase.FAILED: REASON_POD_FAILED, PodPhase.SUCCEEDED: REASON_POD_COMPLETED}
    return _condition(condition_type, pod, old, STATUS_FALSE, reasons.get(phase, ""))


def need_to_reconcile_readiness(pod: Pod, semantics: Semantics) -> bool:
    """True when the API copy's Ready does not say what its readiness gates say (NeedToReconcilePodReadiness)."""
    if not pod.readiness_gates:
        return False
    status = pod.status
    current = find_condition(status.conditions, CONDITION_READY)
    if current is None:
        return False
    statuses: Statuses | None = status.container_statuses
    if statuses is not None and semantics.fix_readiness_without_sidecars:
        statuses = (*(status.init_container_statuses or ()), *statuses)
    wanted = ready_condition(
        pod, status, status.conditions, statuses, status.phase, failed_is_unready=semantics.phase_ends_readiness
    )
    return (current.status, current.message) != (wanted.status, wanted.message)


def _condition(
    condition_type: str, pod: Pod, old: PodStatus | None, status: str, reason: str = "", message: str = ""
) -> Condition:
    # CalculatePodConditionObservedGeneration, with PodObservedGenerationTracking locked on since 1.35.
    generation = pod.generation if old is not None else 0
    return Condition(condition_type, status, reason, message, observed_generation=generation)


def _joined(*lists: tuple[str, list[str]]) -> str:
    """Go's %s of a string slice: names separated by blanks, in brackets."""
    return ", ".join(f"{title}: [{' '.join(names)}]" for title, names in lists if names)
