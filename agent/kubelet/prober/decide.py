"""May we probe now, and what does a result change? Pure; the rows of kubelet's doProbe (pkg/kubelet/prober/worker.go).

The table, first match wins: the case, whether the worker lives on, what happens. `before_probe` is D1 to D10,
`after_probe` D12 to D16. Both return the next state of the worker and the writes to the result cache, in order; the
worker carries them out.

    D0   anything raises                                stays      nothing
    D1   the status manager has no status of the pod    stays      nothing
    D2   the pod's phase is Failed or Succeeded         ends       nothing
    D3   no status of the container, or one without id  stays      nothing
    D4   the container id is a new one                  read on    old result removed, first one written, hold ended
    D5   on hold                                        stays      nothing
    D6   the container does not run                     by policy  Failure is written; who may restart stays
    D7   the pod is being deleted; liveness or startup  ends       Success is written
    D8   started less than the initial delay ago        stays      nothing
    D9   it has started; startup                        stays      nothing
    D10  it has not started; liveness or readiness      stays      nothing
    D11  the probe errors                               stays      nothing, nor is it counted
    D12  the probe gives a result                       read on    equal results in a row are counted
    D13  fewer of them than the threshold               stays      nothing
    D14  else                                           read on    the result is written
    D15  liveness failed, or startup gave any result    stays      on hold until a new id comes, count 0
    D16  else                                           stays      nothing more
"""

from dataclasses import dataclass, replace
from types import MappingProxyType

from agent.kubelet.status.restarting import all_containers_restart
from agent.kubelet.status.restarts import is_sidecar, should_restart
from agent.probe.streak import Kept, KeptResults, Streak, next_state
from agent.wire.model import (
    PROBE_DEFAULTS,
    Container,
    ContainerRunning,
    ContainerStatus,
    ContainerTerminated,
    Pod,
    PodPhase,
    PodStatus,
    Probe,
    ProbeType,
    RestartPolicy,
    Result,
)
from agent.wire.semantics import Semantics

NOTHING_KEPT: KeptResults = MappingProxyType({})
RESTART_GRACE_S = 10.0  # containers older than the manager by more than this survived a restart of the agent
INITIAL = {ProbeType.READINESS: Result.FAILURE, ProbeType.LIVENESS: Result.SUCCESS, ProbeType.STARTUP: Result.UNKNOWN}


@dataclass(frozen=True, slots=True)
class WorkerState:
    """What a worker remembers between probes. `container_id` is empty before the first container was seen. `began`: the
    start that its status tells, and what that was by the clock as it was when the agent started."""

    container_id: str = ""
    streak: Streak = Streak()  # noqa: RUF009 - frozen, so one is enough for all
    on_hold: bool = False
    began: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Remove:
    container_id: str


@dataclass(frozen=True, slots=True)
class Set:
    container_id: str
    result: Result


@dataclass(frozen=True, slots=True)
class Step:
    """`keep`: does the worker live on? `probe`: shall it probe now?"""

    state: WorkerState
    writes: tuple[Remove | Set, ...] = ()
    keep: bool = True
    probe: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a worker probes. `pod` is the copy given to add_pod and is never refreshed, as in kubelet."""

    pod: Pod
    container: Container
    type: ProbeType

    @property
    def probe(self) -> Probe | None:
        return self.container.probe(self.type)

    @property
    def sidecar(self) -> bool:
        return any(c.name == self.container.name for c in self.pod.init_containers) and is_sidecar(self.container)


def parse_container_id(text: str) -> str:
    """`type://id` as it is, or the empty string for anything else (kubecontainer.ParseContainerID)."""
    bare = text.strip('"')
    return bare if bare.count("://") == 1 and bare != "://" else ""


def started_before_restart(started_at: float | None, manager_start: float) -> bool:
    """Did this container run already when the agent was started? Times in seconds since the epoch."""
    return started_at is not None and started_at < manager_start - RESTART_GRACE_S


def find_container_status(status: PodStatus, name: str, semantics: Semantics) -> ContainerStatus | None:
    """The status of that name with a container id: app containers first, then init containers."""
    init = status.init_container_statuses if semantics.probes_sidecars else None
    for statuses in (status.container_statuses, init):
        found = next((c for c in statuses or () if c.name == name), None)
        if found is not None and found.container_id:
            return found
    return None


def before_probe(
    state: WorkerState,
    target: Target,
    status: PodStatus | None,
    *,
    wall: float,
    manager_start: float,
    semantics: Semantics,
    ahead_s: float = 0.0,
    restored: KeptResults = NOTHING_KEPT,
) -> Step:
    """Rows D1 to D10. Times in seconds since the epoch; `status` is the status manager's cached one. `ahead_s`: by how
    much the clock was set ahead since the manager's start, and so shows now in new starts of containers. `restored`:
    what an agent before us has found."""
    if status is None:
        return Step(state)
    if status.phase in (PodPhase.FAILED, PodPhase.SUCCEEDED):
        return Step(state, keep=False)
    container = find_container_status(status, target.container.name, semantics)
    if container is None:
        return Step(state)
    writes: tuple[Remove | Set, ...] = ()
    if container.container_id != state.container_id:
        kept = restored.get((parse_container_id(container.container_id), target.type))
        if kept is not None and not state.container_id:
            state, writes = _adopt_kept(state, container, kept)
        else:
            state, writes = _adopt(state, target, container, manager_start + ahead_s, semantics)
    if state.on_hold:
        return Step(state, writes)
    running = container.state
    if not isinstance(running, ContainerRunning):
        if state.container_id:
            writes += (Set(state.container_id, Result.FAILURE),)
        return Step(state, writes, keep=_stays(target, status, container, semantics))
    ending = semantics.stops_probes_of_ending_pods and target.pod.deletion_timestamp is not None
    if ending and target.type is not ProbeType.READINESS:
        return Step(state, (*writes, Set(state.container_id, Result.SUCCESS)), keep=False)
    delay_s = 0 if target.probe is None else target.probe.initial_delay_s
    if running.started_at is None:  # years too many for Go's int32
        return Step(state, writes)
    if semantics.fix_clock_that_is_set:
        wall -= ahead_s
        if state.began is None or state.began[0] != running.started_at:
            state = replace(state, began=(running.started_at, min(running.started_at - ahead_s, wall)))
    began = state.began[1] if state.began is not None else running.started_at
    if int(wall - began) < delay_s:
        return Step(state, writes)
    if container.started and target.type is ProbeType.STARTUP:
        return Step(state, writes)
    if not container.started and target.type is not ProbeType.STARTUP:
        return Step(state, writes)
    return Step(state, writes, probe=True)


def after_probe(state: WorkerState, target: Target, result: Result, semantics: Semantics) -> Step:
    """Rows D12 to D16, for a probe that gave a result. One that errored changes nothing at all (D11)."""
    probe = target.probe or PROBE_DEFAULTS
    streak, stable = next_state(
        state.streak,
        result,
        success_threshold=probe.success_threshold,
        failure_threshold=probe.failure_threshold,
    )
    state = replace(state, streak=streak)
    if not stable:
        return Step(state)
    write = Set(state.container_id, result)
    holds = target.type is ProbeType.STARTUP and (semantics.startup_holds or result is Result.FAILURE)
    if holds or (target.type is ProbeType.LIVENESS and result is Result.FAILURE):
        # The container will be restarted, or has started: no probe until there is a new one (#21751, #117153).
        return Step(replace(state, on_hold=True, streak=replace(streak, run=0)), (write,))
    return Step(state, (write,))


def _adopt(
    state: WorkerState, target: Target, container: ContainerStatus, manager_start: float, semantics: Semantics
) -> tuple[WorkerState, tuple[Remove | Set, ...]]:
    """Row D4: a new container id. Its first result depends on whether the container is older than the agent."""
    writes: list[Remove | Set] = [Remove(state.container_id)] if state.container_id else []
    container_id = parse_container_id(container.container_id)
    first = INITIAL[target.type]
    if target.type is ProbeType.STARTUP and not semantics.startup_begins_unknown:
        first = Result.FAILURE
    initial = Set(container_id, first)
    if semantics.change_container_status_on_kubelet_restart:
        writes.append(initial)
    else:
        started_at = container.state.started_at if isinstance(container.state, ContainerRunning) else None
        if target.sidecar and target.type is ProbeType.STARTUP and container.started:
            # Else the app containers behind this sidecar are not restarted after a restart of the agent (#136910).
            writes.append(Set(container_id, Result.SUCCESS))
        if not started_before_restart(started_at, manager_start):
            writes.append(initial)
    return replace(state, container_id=container_id, on_hold=False, began=None), tuple(writes)


def _adopt_kept(
    state: WorkerState, container: ContainerStatus, kept: Kept
) -> tuple[WorkerState, tuple[Remove | Set, ...]]:
    """Row M43, in place of D4: it is the container that an agent before us has probed."""
    container_id = parse_container_id(container.container_id)
    state = replace(state, container_id=container_id, streak=kept.streak, on_hold=kept.on_hold)
    return state, () if kept.result is None else (Set(container_id, kept.result),)


def _stays(target: Target, status: PodStatus, container: ContainerStatus, semantics: Semantics) -> bool:
    """Row D6: does the worker of a container that does not run live on?"""
    if not isinstance(container.state, ContainerTerminated):
        return True
    if not semantics.container_restart_rules:
        return target.pod.restart_policy != RestartPolicy.NEVER or target.sidecar
    if should_restart(target.container, target.pod, container.state.exit_code, semantics):
        return True
    return semantics.restart_all_containers_on_container_exits and all_containers_restart(target.pod, status)
