"""What must be done for a pod's containers now. Pure. Mirrors computePodActions of pkg/kubelet/kuberuntime, v1.36.3.

The order: init containers one after another (a sidecar lets the next one go as soon as it has started), then all app
containers at once. Containers whose liveness or startup probe failed are ended; what ended starts again by its policy.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from agent.model import Container, ContainerStatus, ContainerTerminated, Pod, PodStatus, Result
from agent.runtime.base import ContainerPhase, RuntimeContainer, RuntimePod
from agent.semantics import Semantics
from agent.status.restarts import is_sidecar, should_restart


@dataclass(frozen=True, slots=True)
class Start:
    """`after`: the instance it follows, None for the first one."""

    container: Container
    restart_count: int
    after: RuntimeContainer | None


@dataclass(frozen=True, slots=True)
class Kill:
    instance: RuntimeContainer
    reason: str


@dataclass(frozen=True, slots=True)
class Actions:
    starts: list[Start] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the decision is made of. `status` is the one just generated; `liveness`, `startup`: id -> stable result."""

    pod: Pod
    runtime: RuntimePod
    status: PodStatus
    liveness: Callable[[str], Result | None]
    startup: Callable[[str], Result | None]
    semantics: Semantics


def pod_actions(inputs: Inputs) -> Actions:
    """Starts and kills, without regard to back-off."""
    actions = Actions()
    apps = {container.name for container in inputs.pod.containers}
    initialized = any(instance.name in apps for instance in inputs.runtime.containers)
    statuses = {s.name: s for s in inputs.status.init_container_statuses or ()}
    for container in inputs.pod.init_containers:
        status = statuses.get(container.name)
        sidecar = is_sidecar(container)
        if sidecar:
            _keep_running(inputs, container, status, actions)
        if initialized:
            continue
        if sidecar:
            if status is None or status.started is not True:
                return actions
        elif not _init_done(inputs, container, status, actions):
            return actions
    statuses = {s.name: s for s in inputs.status.container_statuses or ()}
    for container in inputs.pod.containers:
        _keep_running(inputs, container, statuses.get(container.name), actions)
    return actions


def _init_done(inputs: Inputs, container: Container, status: ContainerStatus | None, actions: Actions) -> bool:
    """Is a regular init container done? If not, it is started unless it runs or has failed for good."""
    ended = status.state if status is not None and isinstance(status.state, ContainerTerminated) else None
    newest = inputs.runtime.newest(container.name)
    if newest is not None and newest.phase is ContainerPhase.EXITED:
        exit_code: int | None = newest.exit_code
    else:
        exit_code = ended.exit_code if newest is None and ended is not None else None
    if exit_code == 0:
        return True
    if newest is not None and newest.phase is not ContainerPhase.EXITED:
        return False
    if exit_code is None or should_restart(container, inputs.pod, exit_code, inputs.semantics):
        actions.starts.append(_start(container, newest, status))
    return False


def _keep_running(inputs: Inputs, container: Container, status: ContainerStatus | None, actions: Actions) -> None:
    newest = inputs.runtime.newest(container.name)
    if newest is None:
        # Its records are lost: the status that was written decides.
        over = status is not None and isinstance(status.state, ContainerTerminated)
        if not over or _starts_again(inputs, container, _exit_code(status)):
            actions.starts.append(_start(container, newest, status))
    elif newest.phase is ContainerPhase.RUNNING:
        if inputs.liveness(newest.id) is Result.FAILURE:
            actions.kills.append(Kill(newest, f"Container {container.name} failed liveness probe"))
        elif inputs.startup(newest.id) is Result.FAILURE:
            actions.kills.append(Kill(newest, f"Container {container.name} failed startup probe"))
    elif newest.phase is not ContainerPhase.EXITED or _starts_again(inputs, container, newest.exit_code):
        actions.starts.append(_start(container, newest, status))


def _starts_again(inputs: Inputs, container: Container, exit_code: int) -> bool:
    return is_sidecar(container) or should_restart(container, inputs.pod, exit_code, inputs.semantics)


def _start(container: Container, newest: RuntimeContainer | None, status: ContainerStatus | None) -> Start:
    if newest is not None:
        return Start(container, newest.restart_count + 1, newest)
    return Start(container, status.restart_count if status is not None else 0, None)


def _exit_code(status: ContainerStatus | None) -> int:
    return status.state.exit_code if status is not None and isinstance(status.state, ContainerTerminated) else 0
