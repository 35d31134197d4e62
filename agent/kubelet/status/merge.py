"""What may change in a pod status, and what is written to the API server. Pure: time is an argument.

Mirrors the pure half of pkg/kubelet/status/status_manager.go of v1.36.3: normalizeStatus, isPodStatusByKubeletEqual,
checkContainerStateTransition, updateLastTransitionTime, mergePodStatus, canBeDeleted.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from agent.kubelet.status.conditions import (
    CONDITION_ALL_CONTAINERS_RESTARTING,
    CONDITION_DISRUPTION_TARGET,
    CONDITION_INITIALIZED,
    find_condition,
    is_owned,
    is_shared,
    is_terminal,
    replace_or_append,
    terminal_condition,
)
from agent.kubelet.status.restarts import all_containers_could_restart, is_sidecar, should_restart
from agent.wire.model import (
    Condition,
    Container,
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    Pod,
    PodStatus,
    RestartPolicy,
)
from agent.wire.semantics import Semantics
from kube.contract import (
    CONDITION_CONTAINERS_READY,
    CONDITION_POD_READY_TO_START_CONTAINERS,
    CONDITION_POD_SCHEDULED,
    CONDITION_READY,
    STATUS_TRUE,
)

# All termination messages of a pod together (MaxPodTerminationMessageLogLength); each container gets an equal share.
TERMINATION_MESSAGES_BYTES = 12 * 1024

# The conditions whose transition time the manager keeps.
TIMED_CONDITIONS = (
    CONDITION_CONTAINERS_READY,
    CONDITION_READY,
    CONDITION_INITIALIZED,
    CONDITION_POD_READY_TO_START_CONTAINERS,
    CONDITION_POD_SCHEDULED,
    CONDITION_DISRUPTION_TARGET,
    CONDITION_ALL_CONTAINERS_RESTARTING,
)

OLD_TIMED_CONDITIONS = (
    CONDITION_CONTAINERS_READY,
    CONDITION_READY,
    CONDITION_INITIALIZED,
    CONDITION_POD_SCHEDULED,
)


# --- normal form ---


def normalized(pod: Pod, status: PodStatus) -> PodStatus:
    """As the API server will return it: whole seconds, messages cut, app statuses by name, init ones in spec order."""
    containers = len(pod.containers) + len(pod.init_containers) + len(pod.ephemeral_containers)
    limit_bytes = TERMINATION_MESSAGES_BYTES // containers if containers else TERMINATION_MESSAGES_BYTES
    app, init = status.container_statuses, status.init_container_statuses
    return replace(
        status,
        start_time=_whole(status.start_time),
        conditions=tuple(_normalized_condition(c) for c in status.conditions),
        container_statuses=_by_name(app, limit_bytes),
        ephemeral_container_statuses=_by_name(status.ephemeral_container_statuses, limit_bytes),
        init_container_statuses=None
        if init is None
        else _in_spec_order(pod.init_containers, [_normalized_container(s, limit_bytes) for s in init]),
    )


def _by_name(statuses: Sequence[ContainerStatus] | None, limit_bytes: int) -> tuple[ContainerStatus, ...] | None:
    if statuses is None:
        return None
    return tuple(sorted((_normalized_container(s, limit_bytes) for s in statuses), key=lambda s: s.name))


def _in_spec_order(containers: Sequence[Container], statuses: list[ContainerStatus]) -> tuple[ContainerStatus, ...]:
    """SortInitContainerStatuses: statuses of containers the spec does not name keep their places."""
    at = 0
    for container in containers:
        for index in range(at, len(statuses)):
            if statuses[index].name == container.name:
                statuses[at], statuses[index] = statuses[index], statuses[at]
                at += 1
                break
    return tuple(statuses)


def _normalized_condition(condition: Condition) -> Condition:
    probed, changed = _whole(condition.last_probe_time), _whole(condition.last_transition_time)
    if (probed, changed) == (condition.last_probe_time, condition.last_transition_time):
        return condition
    return replace(condition, last_probe_time=probed, last_transition_time=changed)


def _normalized_container(status: ContainerStatus, limit_bytes: int) -> ContainerStatus:
    return replace(
        status,
        state=_normalized_state(status.state, limit_bytes),
        last_state=_normalized_state(status.last_state, limit_bytes),
    )


def _normalized_state(state: ContainerState | None, limit_bytes: int) -> ContainerState | None:
    match state:
        case ContainerRunning():
            return replace(state, started_at=_whole(state.started_at))
        case ContainerTerminated():
            message = state.message
            if len(message.encode()) > limit_bytes:
                # Upstream cuts bytes and may split a character; what is left of a split one is dropped here.
                message = message.encode()[:limit_bytes].decode(errors="ignore")
            return replace(
                state, message=message, started_at=_whole(state.started_at), finished_at=_whole(state.finished_at)
            )
        case _:
            return state


def _whole(time_s: float | None) -> float | None:
    return None if time_s is None else float(math.floor(time_s))


# --- equality ---


def equal_for_kubelet(old: PodStatus, new: PodStatus, semantics: Semantics) -> bool:
    """isPodStatusByKubeletEqual: both normalised; foreign conditions and fields we do not write are not compared.

    Of owned and shared conditions status, reason and message count, both ways; times and observedGeneration do not.
    """
    before, after = _owned_words(old, semantics), _owned_words(new, semantics)
    if not semantics.compares_gone_conditions:
        before = {kind: words for kind, words in before.items() if kind in after}
    return before == after and _comparable(old) == _comparable(new)


def _owned_words(status: PodStatus, semantics: Semantics) -> dict[str, tuple[str, str, str]]:
    shares = semantics.waits_with_terminal_phase
    ours = (c for c in status.conditions if is_owned(c.type, semantics) or (shares and is_shared(c.type)))
    return {c.type: (c.status, c.reason, c.message) for c in ours}


def _comparable(status: PodStatus) -> PodStatus:
    # Semantic equality: absent and empty lists are the same.
    return replace(
        status,
        phase=str(status.phase),
        conditions=(),
        extra={},
        container_statuses=status.container_statuses or (),
        init_container_statuses=status.init_container_statuses or (),
        ephemeral_container_statuses=status.ephemeral_container_statuses or (),
    )


# --- transitions ---


def illegal_transition(old: PodStatus, new: PodStatus, pod: Pod, semantics: Semantics) -> str:
    """Why `new` must be dropped, or "": what is over for good must not come back (checkContainerStateTransition)."""
    if pod.restart_policy == RestartPolicy.ALWAYS:
        return ""
    if semantics.restart_all_containers_on_container_exits and all_containers_could_restart(pod):
        return ""
    app_containers = {container.name: container for container in pod.containers}
    init_containers = {container.name: container for container in pod.init_containers}
    for status in old.container_statuses or ():
        if not _over_for_good(status, app_containers.get(status.name), pod, semantics):
            continue
        if _revived(status.name, new.container_statuses):
            return f"terminated container {status.name} attempted illegal transition to non-terminated state"
    for index, status in enumerate(old.init_container_statuses or ()):
        out_of_order = index >= len(pod.init_containers) or pod.init_containers[index].name != status.name
        if out_of_order and semantics.checks_init_order:
            return f"found mismatch between pod spec and status, container: {status.name}"
        container = init_containers.get(status.name)
        if (container is not None and is_sidecar(container)) or not _over_for_good(status, container, pod, semantics):
            continue
        if _revived(status.name, new.init_container_statuses):
            return f"terminated init container {status.name} attempted illegal transition to non-terminated state"
    return ""


def _over_for_good(status: ContainerStatus, container: Container | None, pod: Pod, semantics: Semantics) -> bool:
    if not isinstance(status.state, ContainerTerminated):
        return False
    exit_code = status.state.exit_code
    if exit_code != 0 and pod.restart_policy == RestartPolicy.ON_FAILURE:
        return False
    return container is None or not should_restart(container, pod, exit_code, semantics)


def _revived(name: str, statuses: Sequence[ContainerStatus] | None) -> bool:
    return any(s.name == name and not isinstance(s.state, ContainerTerminated) for s in statuses or ())


def with_transition_time(new: PodStatus, old: PodStatus, condition_type: str, wall: float) -> PodStatus:
    """The condition of that type in `new` keeps the old time while its status is the old one, else gets `wall`."""
    condition = find_condition(new.conditions, condition_type)
    if condition is None:
        return new
    changed = _changed_at(condition, find_condition(old.conditions, condition_type), wall)
    return replace(new, conditions=replace_or_append(new.conditions, changed))


def settled(pod: Pod, old: PodStatus, new: PodStatus, wall: float, semantics: Semantics) -> PodStatus:
    """`new` as the manager keeps it: transition times, a start time that never changes, no older generation."""
    start_time = old.start_time if old.start_time is not None else new.start_time
    generation = max(old.observed_generation, new.observed_generation) if semantics.observes_generation else 0
    return normalized(
        pod,
        replace(
            new,
            conditions=_timed(_observed(new.conditions, semantics), old.conditions, wall, semantics),
            start_time=wall if start_time is None else start_time,
            observed_generation=generation,
        ),
    )


def _observed(conditions: Sequence[Condition], semantics: Semantics) -> Sequence[Condition]:
    """Without the generation of the pod where the kubelet's conditions have none (row CM29)."""
    if semantics.observes_generation:
        return conditions
    return [replace(c, observed_generation=0) if is_owned(c.type, semantics) else c for c in conditions]


def _timed(
    new: Sequence[Condition], old: Sequence[Condition], wall: float, semantics: Semantics
) -> tuple[Condition, ...]:
    """`with_transition_time` for the first of each type of TIMED_CONDITIONS, of 1.16's where they are."""
    timed = TIMED_CONDITIONS if semantics.waits_with_terminal_phase else OLD_TIMED_CONDITIONS
    waiting, result = set(timed), list(new)
    for index, condition in enumerate(new):
        if condition.type in waiting:
            waiting.remove(condition.type)
            result[index] = _changed_at(condition, find_condition(old, condition.type), wall)
    return tuple(result)


def _changed_at(condition: Condition, before: Condition | None, wall: float) -> Condition:
    at = before.last_transition_time if before is not None and before.status == condition.status else wall
    return condition if at == condition.last_transition_time else replace(condition, last_transition_time=at)


# --- towards the API server ---


def merged(
    pod: Pod, old: PodStatus, new: PodStatus, *, could_run: bool, wall: float, semantics: Semantics
) -> PodStatus:
    """mergePodStatus: what to write, given the API's `old` and the cached `new`.

    Foreign conditions and fields we do not model come from `old`. A terminal phase waits until nothing can run any more
    (`could_run`), and a pod in a terminal phase is never Ready.
    """
    going_terminal = semantics.waits_with_terminal_phase and not is_terminal(old.phase) and is_terminal(new.phase)
    if going_terminal and not could_run:
        # The time is taken again: the condition waited for the containers to end.
        new = with_transition_time(new, old, CONDITION_DISRUPTION_TARGET, wall)
    conditions = tuple(c for c in old.conditions if not is_owned(c.type, semantics))
    for condition in new.conditions:
        if is_owned(condition.type, semantics):
            conditions += (condition,)
        elif condition.type == CONDITION_DISRUPTION_TARGET and going_terminal and not could_run:
            conditions = replace_or_append(conditions, condition)
    result = replace(new, conditions=conditions, extra=old.extra)
    if going_terminal and could_run:
        result = replace(result, phase=old.phase, reason=old.reason, message=old.message)
    if (
        semantics.phase_ends_readiness
        and is_terminal(result.phase)
        and any(
            c.type in (CONDITION_READY, CONDITION_CONTAINERS_READY) and c.status == STATUS_TRUE
            for c in result.conditions
        )
    ):
        # https://github.com/kubernetes/kubernetes/issues/108594
        for condition_type in (CONDITION_CONTAINERS_READY, CONDITION_READY):
            result = _updated(result, terminal_condition(condition_type, pod, old, result.phase), wall)
    return result


def _updated(status: PodStatus, condition: Condition, wall: float) -> PodStatus:
    """UpdatePodCondition: the transition time is now if the status changed, else the old one."""
    condition = _changed_at(condition, find_condition(status.conditions, condition.type), wall)
    return replace(status, conditions=replace_or_append(status.conditions, condition))


def can_be_deleted(pod: Pod, semantics: Semantics, *, finished: bool) -> bool:
    """May the API object go? Its own phase (not the cached one) must be terminal, and termination be finished."""
    if pod.mirror:
        return False
    ended = is_terminal(pod.status.phase) or not semantics.deletes_by_phase
    return pod.deletion_timestamp is not None and ended and finished
