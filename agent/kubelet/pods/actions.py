"""What must be done for a pod's containers now. Pure. Mirrors computePodActions of pkg/kubelet/kuberuntime, v1.36.3.

The order: init containers one after another (a sidecar lets the next one go as soon as it has started), then all app
containers at once. Containers whose liveness or startup probe failed are ended and start again, whatever their exit
code; what ended by itself starts again by its policy. When no app container runs or will run, all the rest is ended.
Ephemeral containers are started once. A changed image counts from the next start.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agent.kubelet.status.generate import sandbox_usable
from agent.kubelet.status.restarting import demands_restart
from agent.kubelet.status.restarts import is_sidecar, should_restart
from agent.wire.containers import ContainerPhase, RuntimeContainer, RuntimePod
from agent.wire.model import MOST_RESTARTS, Container, ContainerTerminated, Pod, PodStatus, Probe, RestartPolicy, Result
from agent.wire.semantics import Semantics

MIN_GRACE_S = 2.0
"""Each container has so long to end, whatever was asked for (minimumGracePeriodInSeconds)."""
REASON_OOM = "OOMKilled"


@dataclass(frozen=True, slots=True)
class Start:
    """`after`: the instance it follows, None for the first one."""

    container: Container
    restart_count: int
    after: RuntimeContainer | None


@dataclass(frozen=True, slots=True)
class Kill:
    """`grace_s`: what was asked for, 0 for at once: see MIN_GRACE_S."""

    instance: RuntimeContainer
    reason: str
    grace_s: float


@dataclass(frozen=True, slots=True)
class Remove:
    """The runtime is to forget the instance, so that all containers start anew; `kill`: it has not ended yet."""

    instance: RuntimeContainer
    kill: bool


@dataclass(slots=True)
class Actions:
    """`kill_pod`: all containers are to end, and with them the sandbox. `create_sandbox`: a new one is needed first.

    What is started follows what is ended: a start may be `after` an instance that is killed. Init containers start in
    their order, those that are no sidecars only if those before them could be started.
    """

    kill_pod: bool = False
    create_sandbox: bool = False
    init_starts: list[Start] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    ephemeral_starts: list[Start] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    removals: list[Remove] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the decision is made of. `status` is the one just generated; `liveness`, `startup`: id -> stable result.

    `restart_all`: the pod's condition AllContainersRestarting is True.
    """

    pod: Pod
    runtime: RuntimePod
    status: PodStatus
    liveness: Callable[[str], Result | None]
    startup: Callable[[str], Result | None]
    semantics: Semantics
    restart_all: bool = False

    def newest(self, container: Container) -> RuntimeContainer | None:
        """The newest instance, or the end of one that only the status knows of."""
        known = self.runtime.newest(container.name)
        if known is not None or not self.semantics.fix_ended_containers_without_record:
            return known
        everything = (*(self.status.init_container_statuses or ()), *(self.status.container_statuses or ()))
        state = next((s.state for s in everything if s.name == container.name), None)
        if not isinstance(state, ContainerTerminated):
            return None
        return RuntimeContainer("", container.name, ContainerPhase.EXITED, 0.0, exit_code=state.exit_code)


def pod_actions(inputs: Inputs) -> Actions:
    """Without regard to back-off. First match wins:

    all containers restart in place      the runtime forgets them
    a new sandbox is needed              all ends, then init containers from the first one, or all app containers
    an init container failed for good    all ends
    the init containers are not done     the next one starts, sidecars are kept running
    no app container runs or will run    all ends
    else                                 app containers and sidecars are kept running
    """
    usable = sandbox_usable(inputs.pod, inputs.runtime)
    if inputs.restart_all and inputs.semantics.restart_all_containers_on_container_exits:
        return Actions(kill_pod=not usable, create_sandbox=not usable, removals=_removals(inputs))
    if not usable:
        return _anew(inputs)
    never_started = (c for c in inputs.pod.ephemeral_containers if inputs.runtime.newest(c.name) is None)
    actions = Actions(ephemeral_starts=[_start(inputs, container) for container in never_started])
    if _init_done(inputs, actions):
        _keep_apps(inputs, actions)
    return actions


def _removals(inputs: Inputs) -> list[Remove]:
    """App containers first; those whose ends demanded it last."""
    ordinary: list[Remove] = []
    demanding: list[Remove] = []
    for containers in (inputs.pod.containers, inputs.pod.init_containers):
        for container in containers:
            for instance in inputs.runtime.instances(container.name):
                ended = instance.phase is ContainerPhase.EXITED
                demands = ended and demands_restart(container, instance.exit_code)
                (demanding if demands else ordinary).append(Remove(instance, kill=not ended))
    return [*ordinary, *demanding]


def _anew(inputs: Inputs) -> Actions:
    pod, runtime = inputs.pod, inputs.runtime
    over = Actions(kill_pod=True)
    if pod.restart_policy == RestartPolicy.NEVER and runtime.sandboxes and runtime.containers:
        return over
    wanted = [container for container in pod.containers if not _succeeded_once(inputs, container)]
    if not wanted and _any_app_created(inputs):
        return over
    if pod.init_containers:
        first = pod.init_containers[0]
        return Actions(kill_pod=True, create_sandbox=True, init_starts=[_start(inputs, first)])
    return Actions(kill_pod=True, create_sandbox=True, starts=[_start(inputs, container) for container in wanted])


def _succeeded_once(inputs: Inputs, container: Container) -> bool:
    newest = inputs.newest(container)
    if newest is None or newest.phase is not ContainerPhase.EXITED or newest.exit_code != 0:
        return False
    return _policy(inputs, container) == RestartPolicy.ON_FAILURE


def _any_app_created(inputs: Inputs) -> bool:
    newest = (inputs.newest(container) for container in inputs.pod.containers)
    return any(instance is not None and instance.phase is not ContainerPhase.UNKNOWN for instance in newest)


# --- init containers ---


@dataclass(slots=True)
class _Walk:
    """From the last init container to the first. `initialized`: all are done. `begun`: a later one has been there, so
    those before it are done, and only sidecars among them concern us. `starts`: places in the spec, the last first."""

    initialized: bool
    begun: bool
    starts: list[int] = field(default_factory=list)


def _init_done(inputs: Inputs, actions: Actions) -> bool:
    """computeInitContainerActions: may app containers run? Fills in what is to be done for init containers."""
    containers = inputs.pod.init_containers
    if not containers:
        return True
    apps = (inputs.newest(container) for container in inputs.pod.containers)
    # One that has ended tells nothing: it may be of an earlier sandbox.
    up = any(app is not None and app.phase in (ContainerPhase.CREATED, ContainerPhase.RUNNING) for app in apps)
    walk = _Walk(initialized=up, begun=up)
    for index in reversed(range(len(containers))):
        container, newest = containers[index], inputs.newest(containers[index])
        sidecar = is_sidecar(container)
        if newest is None:
            if walk.begun and sidecar:
                walk.starts.append(index)
            continue
        if walk.begun and not sidecar:
            continue
        look = _look_at_sidecar if sidecar else _look_at_init
        if not look(inputs, actions, walk, index, newest):
            actions.kill_pod = True
            return False
        walk.begun = True
    if not walk.begun:
        walk.starts.append(0)
    actions.init_starts = [_start(inputs, containers[index]) for index in reversed(walk.starts)]
    return walk.initialized


def _look_at_init(inputs: Inputs, actions: Actions, walk: _Walk, index: int, newest: RuntimeContainer) -> bool:
    """A regular one, the last that has been there. False: it has failed for good."""
    container = inputs.pod.init_containers[index]
    if newest.phase is ContainerPhase.RUNNING:
        return True
    if newest.phase is ContainerPhase.EXITED:
        if newest.exit_code == 0 and newest.reason != REASON_OOM:
            _goes_on(inputs, walk, index)
            return True
        rules = inputs.semantics.container_restart_rules
        if not (
            _starts_again(inputs, container, newest) if rules else inputs.pod.restart_policy != RestartPolicy.NEVER
        ):
            return False
    elif newest.phase is ContainerPhase.UNKNOWN:
        if _policy(inputs, container) == RestartPolicy.NEVER:
            return False
        actions.kills.append(_kill(inputs, newest, _unknown("Init container")))
    walk.starts.append(index)
    return True


def _look_at_sidecar(inputs: Inputs, actions: Actions, walk: _Walk, index: int, newest: RuntimeContainer) -> bool:
    """It is kept running, and lets the next one go once it has started."""
    container = inputs.pod.init_containers[index]
    failed: str | None = None
    if newest.phase is ContainerPhase.RUNNING:
        failed = _failed_probe(inputs, container, newest)
        if failed != "startup" and (container.startup_probe is None or _passed(inputs.startup(newest.id))):
            _goes_on(inputs, walk, index)
        elif failed != "startup":
            return True
        if failed is None:
            return True
        probe = container.startup_probe if failed == "startup" else container.liveness_probe
        reason = f"Init container {container.name} failed {failed} probe"
        actions.kills.append(_kill(inputs, newest, reason, probe))
    elif newest.phase is ContainerPhase.UNKNOWN:
        actions.kills.append(_kill(inputs, newest, _unknown("Init container")))
    walk.starts.append(index)
    return True


def _failed_probe(inputs: Inputs, sidecar: Container, newest: RuntimeContainer) -> str | None:
    """Of a sidecar, only probes that it has count, and liveness only once it has started."""
    if sidecar.startup_probe is not None:
        startup = inputs.startup(newest.id)
        if not _passed(startup):
            return "startup" if startup is Result.FAILURE else None
    if sidecar.liveness_probe is not None and inputs.liveness(newest.id) is Result.FAILURE:
        return "liveness"
    return None


def _passed(result: Result | None) -> bool:
    return result is Result.SUCCESS


def _goes_on(inputs: Inputs, walk: _Walk, index: int) -> None:
    """This one is done: the next may start, unless it did before."""
    if index == len(inputs.pod.init_containers) - 1:
        walk.initialized = True
    elif not walk.begun:
        walk.starts.append(index + 1)


# --- app containers ---


def _keep_apps(inputs: Inputs, actions: Actions) -> None:
    kept = 0
    for container in inputs.pod.containers:
        newest = inputs.newest(container)
        if newest is None or newest.phase is not ContainerPhase.RUNNING:
            if _starts_again(inputs, container, newest):
                actions.starts.append(_start(inputs, container))
                if newest is not None and newest.phase is ContainerPhase.UNKNOWN:
                    actions.kills.append(_kill(inputs, newest, _unknown("Container")))
            continue
        if inputs.liveness(newest.id) is Result.FAILURE:
            failed, probe = "liveness", container.liveness_probe
        elif inputs.startup(newest.id) is Result.FAILURE:
            failed, probe = "startup", container.startup_probe
        else:
            kept += 1
            continue
        reason = f"Container {container.name} failed {failed} probe"
        if _policy(inputs, container) != RestartPolicy.NEVER:
            reason += ", will be restarted"
            actions.starts.append(_start(inputs, container))
        actions.kills.append(_kill(inputs, newest, reason, probe))
    if not kept and not actions.starts:
        # Sidecars do not keep a pod alive.
        actions.kill_pod = True
        actions.init_starts = []


# --- small things ---


def _policy(inputs: Inputs, container: Container) -> RestartPolicy | str:
    """Where no exit code is asked: a container's own policy, else the pod's."""
    if container.restart_policy is not None and inputs.semantics.container_restart_rules:
        return container.restart_policy
    return inputs.pod.restart_policy


def _starts_again(inputs: Inputs, container: Container, newest: RuntimeContainer | None) -> bool:
    """ShouldContainerBeRestarted, of one that does not run."""
    if inputs.pod.deletion_timestamp is not None:
        return False
    if newest is None or newest.phase is not ContainerPhase.EXITED:
        return True
    return should_restart(container, inputs.pod, newest.exit_code, inputs.semantics)


def _start(inputs: Inputs, container: Container) -> Start:
    newest = inputs.runtime.newest(container.name)
    if newest is not None:
        return Start(container, min(newest.restart_count + 1, MOST_RESTARTS), newest)
    everything = (*(inputs.status.init_container_statuses or ()), *(inputs.status.container_statuses or ()))
    return Start(container, next((s.restart_count for s in everything if s.name == container.name), 0), None)


def _kill(inputs: Inputs, instance: RuntimeContainer, reason: str, probe: Probe | None = None) -> Kill:
    return kill_for(inputs.pod, instance, reason, probe)


def kill_for(pod: Pod, instance: RuntimeContainer, reason: str, probe: Probe | None = None) -> Kill:
    """`probe`: the one that failed; it may have a grace of its own, as long as the pod is not being deleted."""
    grace_s = pod.deletion_grace_period_s
    if grace_s is None and probe is not None:
        grace_s = probe.termination_grace_period_s
    if grace_s is None:
        grace_s = pod.termination_grace_period_s
    return Kill(instance, reason, float(grace_s))


def _unknown(what: str) -> str:
    return f'{what} is in "unknown" state, try killing it before restart'


def waits_for(pod: Pod, running: Sequence[str]) -> dict[str, frozenset[str]]:
    """By running container: those whose ends it waits for before it is ended itself (terminationOrdering).

    A sidecar waits for all app containers and for the next sidecar behind it.
    """
    up = frozenset(running)
    waits: dict[str, frozenset[str]] = dict.fromkeys(running, frozenset())
    before = frozenset(container.name for container in pod.containers) & up
    later: frozenset[str] = frozenset()
    for container in reversed(pod.init_containers):
        if is_sidecar(container):
            if container.name in up:
                waits[container.name] = before | later
            later = frozenset({container.name}) & up
    return waits
