"""The whole status of a pod from what the runtime knows and what was said before. Pure.

Mirrors generateAPIPodStatus, convertStatusToAPIStatus and convertToAPIContainerStatuses of pkg/kubelet/kubelet_pods.go,
v1.36.3. Resources are not modelled.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent.kubelet.status import conditions, restarting
from agent.kubelet.status.deadline import MESSAGE_DEADLINE, REASON_DEADLINE, past_active_deadline
from agent.kubelet.status.phase import REASON_RESTARTING_ALL, pod_phase
from agent.kubelet.status.resize import NO_RESIZES, Resizes
from agent.kubelet.status.restarts import all_containers_could_restart, is_sidecar, should_restart
from agent.kubelet.status.termination import EXIT_CODE_UNKNOWN, MESSAGE_TERMINATED, REASON_STATUS_UNKNOWN
from agent.wire.containers import ContainerPhase, RuntimeContainer, RuntimePod
from agent.wire.model import (
    MOST_RESTARTS,
    Condition,
    Container,
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Pod,
    PodPhase,
    PodStatus,
)
from agent.wire.semantics import Semantics

REASON_CREATING = "ContainerCreating"
REASON_INITIALIZING = "PodInitializing"
MESSAGE_LOST = "The container could not be located when the pod was deleted.  The container used to be Running"
MESSAGE_INIT_LOST = (
    "Unable to get init container status from container runtime and pod has been initialized, "
    "treat it as exited normally"
)
MESSAGE_REMOVED = "The container is removed because RestartAllContainers in place"


@dataclass(frozen=True, slots=True)
class Host:
    """What a pod status says of the node. `ip` empty: not known yet."""

    ip: str = ""


@dataclass(frozen=True, slots=True)
class Inputs:
    """`old`: the status manager's copy, else None. `start_errors`: container name -> why its last start failed.

    `wall`: seconds since the epoch, for the pod's active deadline.
    """

    pod: Pod
    runtime: RuntimePod
    semantics: Semantics
    old: PodStatus | None = None
    host: Host = Host()
    start_errors: Mapping[str, ContainerWaiting] = field(default_factory=dict)
    pod_is_terminal: bool = False
    wall: float = 0.0
    resizes: Resizes = NO_RESIZES

    @property
    def before(self) -> PodStatus:
        """What was said last: kept here, else known to the API server."""
        return self.old if self.old is not None else self.pod.status


def generate_status(inputs: Inputs, fill_probes: Callable[[Pod, PodStatus], PodStatus]) -> PodStatus:
    """The status to publish.

    `fill_probes` is the prober manager's UpdatePodStatus: it returns the status with Started and Ready filled in.
    """
    pod, runtime = inputs.pod, inputs.runtime
    old = inputs.before
    app = container_statuses(inputs, pod.containers, old.container_statuses, is_init=False)
    init = container_statuses(inputs, pod.init_containers, old.init_container_statuses, is_init=True)
    debug = container_statuses(inputs, pod.ephemeral_containers, old.ephemeral_container_statuses, is_init=False)
    status = PodStatus(
        container_statuses=app,
        init_container_statuses=init,
        ephemeral_container_statuses=debug,
        pod_ip=runtime.ip,
        qos_class=pod.status.qos_class,
        extra=pod.status.extra,
    )
    status = _with_phase(status, inputs, old)
    status = fill_probes(pod, status)
    status = replace(status, conditions=_all_conditions(inputs, old, status))
    if inputs.host.ip:
        host_ip = inputs.host.ip
        pod_ip = status.pod_ip or (host_ip if pod.host_network else "")
        status = replace(status, host_ip=host_ip, pod_ip=pod_ip)
    return status


def sandbox_usable(pod: Pod, runtime: RuntimePod) -> bool:
    """No new sandbox is needed."""
    return runtime.sandbox_usable(host_network=pod.host_network)


def container_statuses(
    inputs: Inputs, containers: Sequence[Container], previous: Sequence[ContainerStatus] | None, *, is_init: bool
) -> tuple[ContainerStatus, ...]:
    """Statuses of the given containers: app containers sorted by name, init containers in spec order."""
    old = {status.name: status for status in previous or ()}
    in_place = _restarts_in_place(inputs)
    result = [
        _container_status(inputs, container, old.get(container.name), is_init=is_init, in_place=in_place)
        for container in containers
    ]
    return tuple(result if is_init else sorted(result, key=lambda status: status.name))


def _restarts_in_place(inputs: Inputs) -> bool:
    gate = inputs.semantics.restart_all_containers_on_container_exits
    return gate and restarting.all_containers_restart(inputs.pod, inputs.before, inputs.runtime)


def _container_status(
    inputs: Inputs, container: Container, old: ContainerStatus | None, *, is_init: bool, in_place: bool
) -> ContainerStatus:
    instances = inputs.runtime.instances(container.name)
    if instances:
        status = _from_runtime(inputs, instances[0], old, in_place=in_place)
        if len(instances) > 1:
            status = replace(status, last_state=_from_runtime(inputs, instances[1], old, in_place=in_place).state)
    elif in_place and old is not None and not isinstance(old.state, ContainerWaiting):
        status = _removed(inputs.pod, container, old)
    else:
        status = _without_runtime(inputs.pod, container, old, inputs.semantics)

    newest = instances[0] if instances else None
    if is_init:
        if newest is not None and newest.phase is ContainerPhase.EXITED and newest.exit_code == 0:
            return status
        waits = isinstance(status.state, ContainerWaiting)
        ends = inputs.semantics.lost_containers_fail and not is_sidecar(container)
        if newest is None and waits and ends and _any_app_created(inputs):
            return replace(
                status, state=ContainerTerminated(exit_code=0, reason="Completed", message=MESSAGE_INIT_LOST)
            )
    error = inputs.start_errors.get(container.name)
    if error is None or not _starts_next(inputs, container, newest):
        return status
    last = status.state if isinstance(status.state, ContainerTerminated) else status.last_state
    return replace(status, state=error, last_state=last)


def _any_app_created(inputs: Inputs) -> bool:
    """Does the runtime know an app container, in any state but unknown? (HasAnyRegularContainerCreated)"""
    newest = (inputs.runtime.newest(container.name) for container in inputs.pod.containers)
    return any(instance is not None and instance.phase is not ContainerPhase.UNKNOWN for instance in newest)


def _waiting(pod: Pod, container: Container) -> ContainerStatus:
    reason = REASON_INITIALIZING if pod.init_containers else REASON_CREATING
    return ContainerStatus(name=container.name, image=container.image, state=ContainerWaiting(reason))


def _removed(pod: Pod, container: Container, old: ContainerStatus) -> ContainerStatus:
    """Taken from the runtime, so that all containers start anew."""
    status = old if isinstance(old.state, ContainerTerminated) else _waiting(pod, container)
    return replace(
        status,
        state=ContainerWaiting(REASON_RESTARTING_ALL, MESSAGE_REMOVED),
        last_state=ContainerTerminated(EXIT_CODE_UNKNOWN, REASON_RESTARTING_ALL, MESSAGE_REMOVED),
        restart_count=min(old.restart_count + 1, MOST_RESTARTS),
    )


def _without_runtime(
    pod: Pod, container: Container, old: ContainerStatus | None, semantics: Semantics
) -> ContainerStatus:
    status = _waiting(pod, container)
    if old is None:
        return status
    if isinstance(old.state, ContainerTerminated):
        return old
    status = replace(status, restart_count=old.restart_count, last_state=old.last_state)
    if not semantics.lost_containers_fail:
        return status
    if not isinstance(old.state, ContainerRunning) or isinstance(old.last_state, ContainerTerminated):
        return status
    # It ran and is gone: the last state says so, and keeps the pod from falling back to Pending.
    lost = ContainerTerminated(exit_code=EXIT_CODE_UNKNOWN, reason=REASON_STATUS_UNKNOWN, message=MESSAGE_LOST)
    restarted = 1 if pod.deletion_timestamp is None else 0
    return replace(status, last_state=lost, restart_count=min(old.restart_count + restarted, MOST_RESTARTS))


def _from_runtime(
    inputs: Inputs, instance: RuntimeContainer, old: ContainerStatus | None, *, in_place: bool
) -> ContainerStatus:
    """What an instance says of its container, beside what was said before (`old`).

        instance          old state    state                              restart count
        running           terminated   running                            old + 1, or the instance's if higher
        running           else         running                            the higher of old and instance
        exited            any          terminated as the instance was     the higher of the two
        unknown           running      terminated, 137 and lost (*)       old + 1
        created, unknown  else         waiting                            the higher of the two

    The last state is the end of another instance that `old` tells of, else the last one it tells of. Without
    RestartAllContainersOnContainerExits `old` has no say in either, but where the instance is unknown. (*): waiting
    where `lost_containers_fail` is off.
    """
    last: ContainerState | None = None
    restart_count = instance.restart_count
    inherits = inputs.semantics.restart_all_containers_on_container_exits
    if old is not None and inherits:
        restart_count = max(restart_count, old.restart_count)
        if old.container_id != instance.id and isinstance(old.state, ContainerTerminated):
            last = old.state
        elif isinstance(old.last_state, ContainerTerminated):
            last = old.last_state
    # By name, so that a restarted agent does not close the startup gate again (KEP-4781).
    keeps_started = not inputs.semantics.change_container_status_on_kubelet_restart
    state: ContainerState
    match instance.phase:
        case ContainerPhase.RUNNING:
            state = ContainerRunning(started_at=instance.started_at)
            ended_before = old is not None and isinstance(old.state, ContainerTerminated)
            if inherits and old is not None and ended_before and old.restart_count >= instance.restart_count:
                restart_count = min(old.restart_count + 1, MOST_RESTARTS)
        case ContainerPhase.EXITED:
            state = ContainerTerminated(
                exit_code=instance.exit_code,
                signal=instance.signal,
                reason=instance.reason,
                message=instance.message,
                started_at=instance.started_at,
                finished_at=instance.finished_at,
                container_id=instance.id,
            )
        case ContainerPhase.UNKNOWN if (
            old is not None and isinstance(old.state, ContainerRunning) and inputs.semantics.lost_containers_fail
        ):
            reason = REASON_RESTARTING_ALL if in_place else REASON_STATUS_UNKNOWN
            state = ContainerTerminated(exit_code=EXIT_CODE_UNKNOWN, reason=reason, message=MESSAGE_TERMINATED)
            restart_count = min(old.restart_count + 1, MOST_RESTARTS)
        case _:
            state = ContainerWaiting()
    return ContainerStatus(
        name=instance.name,
        state=state,
        last_state=last,
        started=old.started if old is not None and isinstance(state, ContainerRunning) and keeps_started else None,
        restart_count=restart_count,
        container_id=instance.id,
        image=instance.image,
        image_id=instance.image_id,
    )


def _starts_next(inputs: Inputs, container: Container, newest: RuntimeContainer | None) -> bool:
    """ShouldContainerBeRestarted: will the next sync start it?"""
    if inputs.pod.deletion_timestamp is not None:
        return False
    if newest is None:
        return True
    if newest.phase is ContainerPhase.RUNNING:
        return False
    return newest.phase is not ContainerPhase.EXITED or should_restart(
        container, inputs.pod, newest.exit_code, inputs.semantics
    )


def _with_phase(status: PodStatus, inputs: Inputs, old: PodStatus) -> PodStatus:
    pod = inputs.pod
    apps = {container.name for container in pod.containers}
    initialized = any(c.name in apps for c in inputs.runtime.active)
    phase: str = pod_phase(
        pod,
        (*(status.container_statuses or ()), *(status.init_container_statuses or ())),
        pod_is_terminal=inputs.pod_is_terminal,
        initialized=initialized,
        semantics=inputs.semantics,
    )
    if not conditions.is_terminal(phase):
        if conditions.is_terminal(old.phase):
            phase = old.phase
        elif conditions.is_terminal(pod.status.phase):
            phase = pod.status.phase
    reason = message = ""
    if phase == old.phase:
        reason = old.reason or pod.status.reason
        message = old.message or pod.status.message
    if past_active_deadline(pod, old, inputs.wall):
        phase, reason, message = PodPhase.FAILED, REASON_DEADLINE, MESSAGE_DEADLINE
    if conditions.is_terminal(pod.status.phase):
        phase = pod.status.phase
    return replace(status, phase=phase, reason=reason, message=message)


def _all_conditions(inputs: Inputs, old: PodStatus, status: PodStatus) -> tuple[Condition, ...]:
    pod = inputs.pod
    kept = tuple(c for c in pod.status.conditions if not conditions.is_owned(c.type, inputs.semantics))
    if not inputs.pod_is_terminal and not inputs.semantics.owns_unschedulable:
        kept = (*kept, *inputs.resizes.conditions())
    for shared in conditions.SHARED if inputs.semantics.waits_with_terminal_phase else ():
        condition = conditions.find_condition(old.conditions, shared)
        if condition is not None:
            kept = conditions.replace_or_append(kept, condition)
    statuses = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    if inputs.semantics.pod_ready_to_start_containers_condition:
        usable = sandbox_usable(pod, inputs.runtime)
        kept = (*kept, conditions.ready_to_start_condition(pod, old, sandbox_usable=usable))
    kept = (*kept, conditions.initialized_condition(pod, old, statuses, status.phase, inputs.semantics))
    ends = inputs.semantics.phase_ends_readiness
    made = (
        *kept,
        conditions.ready_condition(pod, old, kept, statuses, status.phase, failed_is_unready=ends),
        conditions.containers_ready_condition(pod, old, statuses, status.phase, failed_is_unready=ends),
        conditions.scheduled_condition(pod, old),
    )
    gate = inputs.semantics.restart_all_containers_on_container_exits
    if gate and all_containers_could_restart(pod):
        return (*made, restarting.restarting_condition(pod, old, inputs.runtime, status.phase))
    return made
