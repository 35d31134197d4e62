"""The sync loop of mode `kubelet`: one thread brings the containers and the status of every pod to what they should be.

Mirrors syncPod, syncTerminatingPod and syncTerminatedPod of pkg/kubelet/kubelet.go and the stages of pod_workers.go. No
step waits: a container's end, a probe result, a change of the pod and a due time bring the pod back into the inbox.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from agent.model import ContainerWaiting, Pod, PodPhase, PodStatus, Result
from agent.pods import actions
from agent.pods.inbox import Inbox
from agent.processes.command import go_duration
from agent.runtime.backoff import RestartBackoff
from agent.runtime.base import ContainerRuntime, RuntimeContainer, StartError
from agent.semantics import Semantics
from agent.status import conditions
from agent.status.generate import Host, Inputs, generate_status

log = logging.getLogger(__name__)

RESYNC_S = 60.0  # kubelet's resyncInterval
RETRY_S = 10.0  # a container that could not even be made
HOUSEKEEPING_S = 2.0
STUCK_AFTER_S = 30.0
MIN_GRACE_S = 1.0
STOP_GRACE_S = 0.4
REASON_BACK_OFF = "CrashLoopBackOff"


class Pods(Protocol):
    def pod_by_uid(self, uid: str) -> Pod | None: ...
    def uids(self) -> frozenset[str]: ...


class Prober(Protocol):
    """The part of agent.prober.manager.ProberManager that is used."""

    def add_pod(self, pod: Pod) -> None: ...
    def stop_liveness_and_startup(self, pod: Pod) -> None: ...
    def remove_pod(self, pod: Pod) -> None: ...
    def cleanup_pods(self, desired: frozenset[str]) -> None: ...
    def update_pod_status(self, pod: Pod, status: PodStatus) -> PodStatus: ...


class Statuses(Protocol):
    """The part of agent.status.manager.StatusManager that is used."""

    def pod_status(self, uid: str) -> PodStatus | None: ...
    def set_pod_status(self, pod: Pod, status: PodStatus) -> bool: ...
    def terminate_pod(self, pod: Pod) -> None: ...
    def remove_orphaned(self, uids: frozenset[str]) -> None: ...


class StoppableRuntime(ContainerRuntime, Protocol):
    def end_all(self, grace_s: float, wait_s: float) -> bool: ...


class Stage(Enum):
    SYNCING = "syncing"
    TERMINATING = "terminating"
    TERMINATED = "terminated"


@dataclass(slots=True)
class _PodState:
    """`pod`: the newest copy, kept after the API server lost it. `start_errors`: container -> its Waiting state.

    `killed`: ids of containers that were asked to end because a probe failed. `ends`: container -> id and time (by the
    monotonic clock) of the instance that ended last."""

    pod: Pod
    stage: Stage = Stage.SYNCING
    could_run: bool = True
    grace_s: float | None = None
    start_errors: dict[str, ContainerWaiting] = field(default_factory=dict)
    killed: set[str] = field(default_factory=set)
    ends: dict[str, tuple[str, float]] = field(default_factory=dict)


class PodLoop:
    """A Service. `liveness` and `startup` give the stable probe result of a container id."""

    name = "pod loop"

    def __init__(
        self,
        inbox: Inbox,
        pods: Pods,
        runtime: StoppableRuntime,
        statuses: Statuses,
        prober: Prober,
        *,
        liveness: Callable[[str], Result | None],
        startup: Callable[[str], Result | None],
        source_synced: Callable[[], bool],
        host: Host,
        max_pods: int,
        semantics: Semantics,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inbox = inbox
        self._pods = pods
        self._runtime = runtime
        self._statuses = statuses
        self._prober = prober
        self._liveness = liveness
        self._startup = startup
        self._source_synced = source_synced
        self._host = host
        self._max_pods = max_pods
        self._semantics = semantics
        self._wall = wall
        self._monotonic = monotonic
        self._backoff = RestartBackoff()
        self._states: dict[str, _PodState] = {}
        self._due: dict[str, float] = {}
        self._next_housekeeping = 0.0
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._last_turn = monotonic()

    # --- life ---

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="pod-loop", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends all containers and says so in the statuses: the agent is their runtime too."""
        self._stopping.set()
        self._inbox.put("")
        if self._thread is not None:
            self._thread.join(timeout=1.0)

    def healthy(self, monotonic: float) -> bool:
        alive = self._thread is not None and self._thread.is_alive()
        return alive and monotonic - self._last_turn < STUCK_AFTER_S

    def could_run(self, uid: str) -> bool:
        """May containers of the pod still run? For the status manager, from its thread."""
        state = self._states.get(uid)
        return state is not None and state.could_run

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.turn()
        self._end_everything()

    def turn(self) -> None:
        """Waits for something to do, at most until the next due time, and does it."""
        self._last_turn = self._monotonic()
        due = min(self._due.values(), default=self._next_housekeeping)
        uids = self._inbox.take(min(due, self._next_housekeeping) - self._last_turn)
        monotonic = self._monotonic()
        uids |= {uid for uid, at in self._due.items() if at <= monotonic}
        for uid in uids - {""}:
            if self._stopping.is_set():
                return
            self._due.pop(uid, None)
            try:
                self._look_at(uid)
            except Exception:
                log.exception("pod sync failed", extra={"uid": uid})
                self._wake_in(uid, RETRY_S)
        if monotonic >= self._next_housekeeping:
            self._next_housekeeping = monotonic + HOUSEKEEPING_S
            self._housekeeping()

    def _end_everything(self) -> None:
        self._runtime.end_all(STOP_GRACE_S, wait_s=0.7)
        for uid, state in self._states.items():
            if state.stage is not Stage.TERMINATED and self._pods.pod_by_uid(uid) is not None:
                self._statuses.set_pod_status(state.pod, self._generate(state))

    # --- one pod ---

    def _look_at(self, uid: str) -> None:
        pod = self._pods.pod_by_uid(uid)
        state = self._states.get(uid)
        if state is None:
            if pod is None:
                return
            state = self._states[uid] = _PodState(pod)
            if self._rejected(state):
                return
        elif pod is not None:
            state.pod = pod
        gone = pod is None
        ending = gone or state.pod.deletion_timestamp is not None or conditions.is_terminal(state.pod.status.phase)
        if state.stage is Stage.SYNCING and ending:
            self._begin_termination(state)
        if state.stage is Stage.SYNCING:
            self._sync(state)
        if state.stage is Stage.TERMINATING:
            self._go_on_terminating(state, gone=gone)
        elif state.stage is Stage.TERMINATED and not gone and state.pod.deletion_timestamp is not None:
            status = self._statuses.pod_status(uid)
            if status is not None:
                # Nothing changes, but a pod being deleted gets a new version, and with it its deletion.
                self._statuses.set_pod_status(state.pod, status)
        if state.stage is Stage.TERMINATED and gone:
            self._forget(uid)

    def _sync(self, state: _PodState) -> None:
        pod = state.pod
        status = self._generate(state)
        self._statuses.set_pod_status(pod, status)
        if conditions.is_terminal(status.phase):
            self._begin_termination(state)
            return
        self._wake_in(pod.uid, RESYNC_S)
        try:
            self._runtime.prepare_pod(pod)
        except StartError as e:
            log.warning("pod sandbox not made", extra={**_facts(pod), "cause": str(e)})
            self._wake_in(pod.uid, RETRY_S)
            return
        self._prober.add_pod(pod)
        inputs = actions.Inputs(pod, self._runtime.pod(pod.uid), status, self._liveness, self._startup, self._semantics)
        wanted = actions.pod_actions(inputs)
        for kill in wanted.kills:
            if kill.instance.id not in state.killed:
                state.killed.add(kill.instance.id)
                log.info("container is killed", extra={**_facts(pod), "cause": kill.cause})
                self._runtime.stop_container(kill.instance.id, max(MIN_GRACE_S, pod.termination_grace_period_s))
        errors = dict(state.start_errors)
        changed = [self._try_start(state, start) for start in wanted.starts]
        if any(changed) or state.start_errors != errors:
            # What was done shows in the status at once.
            self._inbox.put(pod.uid)

    def _try_start(self, state: _PodState, start: actions.Start) -> bool:
        """True if the runtime knows something new."""
        pod, name = state.pod, start.container.name
        key = (pod.uid, name)
        if start.after is not None:
            ended_at = self._ended_at(state, start.after)
            remaining_s = self._backoff.remaining_s(key, ended_at, self._monotonic())
            if remaining_s > 0:
                delay = go_duration(self._backoff.delay_s(key))
                where = f"{pod.name}_{pod.namespace}({pod.uid})"
                message = f"back-off {delay} restarting failed container={name} pod={where}"
                state.start_errors[name] = ContainerWaiting(REASON_BACK_OFF, message)
                self._wake_in(pod.uid, remaining_s)
                return False
            self._backoff.restarted(key, ended_at, self._monotonic())
        try:
            self._runtime.start_container(pod, start.container, start.restart_count)
        except StartError as e:
            log.warning("container not started", extra={**_facts(pod), "container": name, "cause": str(e)})
            state.start_errors[name] = ContainerWaiting(e.reason, str(e))
            newest = self._runtime.pod(pod.uid).newest(name)
            if newest is not None and newest != start.after:
                return True
            self._wake_in(pod.uid, RETRY_S)
            return False
        state.start_errors.pop(name, None)
        return True

    def _ended_at(self, state: _PodState, instance: RuntimeContainer) -> float:
        """By the monotonic clock: the runtime's records have the wall clock's time, which may be set back."""
        known = state.ends.get(instance.name)
        if known is None or known[0] != instance.id:
            at = instance.finished_at if instance.finished_at is not None else instance.created_at
            known = state.ends[instance.name] = (instance.id, self._monotonic() - max(0.0, self._wall() - at))
        return known[1]

    def _rejected(self, state: _PodState) -> bool:
        """canAdmitPod: more pods than the node takes are refused."""
        pod = state.pod
        if pod.deletion_timestamp is not None or conditions.is_terminal(pod.status.phase):
            return False
        used = sum(1 for s in self._states.values() if s.stage is not Stage.TERMINATED) - 1
        if used < self._max_pods:
            return False
        message = (
            "Pod was rejected: Node didn't have enough resource: pods, "
            f"requested: 1, used: {used}, capacity: {self._max_pods}"
        )
        log.warning("pod rejected", extra={**_facts(pod), "cause": message})
        state.stage, state.could_run = Stage.TERMINATED, False
        status = PodStatus(phase=PodPhase.FAILED, reason="OutOfpods", message=message, qos_class=pod.status.qos_class)
        self._statuses.set_pod_status(pod, status)
        self._statuses.terminate_pod(pod)
        return True

    # --- the end of a pod ---

    def _begin_termination(self, state: _PodState) -> None:
        state.stage = Stage.TERMINATING
        state.start_errors.clear()
        self._prober.stop_liveness_and_startup(state.pod)
        if self._pods.pod_by_uid(state.pod.uid) is not None:
            self._statuses.set_pod_status(state.pod, self._generate(state))
        log.info("pod is terminated", extra=_facts(state.pod))
        self._inbox.put(state.pod.uid)

    def _go_on_terminating(self, state: _PodState, *, gone: bool) -> None:
        pod = state.pod
        running = self._runtime.pod(pod.uid).running
        if running:
            grace_s = _grace_s(pod, gone=gone)
            if state.grace_s is None or grace_s < state.grace_s:
                state.grace_s = grace_s
                for instance in running:
                    self._runtime.stop_container(instance.id, grace_s)
            self._wake_in(pod.uid, RETRY_S)
            return
        state.could_run = False
        self._prober.remove_pod(pod)
        if not gone:
            self._statuses.set_pod_status(pod, self._generate(state, pod_is_terminal=True))
            self._statuses.terminate_pod(pod)
        state.stage = Stage.TERMINATED
        log.info("pod has ended", extra=_facts(pod))

    def _forget(self, uid: str) -> None:
        self._runtime.remove_pod(uid)
        self._backoff.forget_pod(uid)
        self._due.pop(uid, None)
        del self._states[uid]

    def _housekeeping(self) -> None:
        active = frozenset(uid for uid, state in self._states.items() if state.stage is not Stage.TERMINATED)
        self._prober.cleanup_pods(active)
        if not self._source_synced():
            return
        wanted = self._pods.uids()
        self._statuses.remove_orphaned(wanted | active)
        for uid in self._runtime.known_pods() - wanted - self._states.keys():
            # Left by an agent before us; its processes were ended when the runtime started.
            self._runtime.remove_pod(uid)

    # --- small things ---

    def _generate(self, state: _PodState, *, pod_is_terminal: bool = False) -> PodStatus:
        pod = state.pod
        inputs = Inputs(
            pod=pod,
            runtime=self._runtime.pod(pod.uid),
            semantics=self._semantics,
            old=self._statuses.pod_status(pod.uid),
            host=self._host,
            start_errors=state.start_errors,
            pod_is_terminal=pod_is_terminal,
        )
        return generate_status(inputs, self._prober.update_pod_status)

    def _wake_in(self, uid: str, delay_s: float) -> None:
        at = self._monotonic() + delay_s
        self._due[uid] = min(at, self._due.get(uid, at))


def _grace_s(pod: Pod, *, gone: bool) -> float:
    """calculateEffectiveGracePeriod; a pod that the API server no longer has was deleted by force."""
    if gone and pod.deletion_timestamp is not None:
        return MIN_GRACE_S
    if pod.deletion_timestamp is not None and pod.deletion_grace_period_s is not None:
        return max(MIN_GRACE_S, pod.deletion_grace_period_s)
    return max(MIN_GRACE_S, pod.termination_grace_period_s)


def _facts(pod: Pod) -> dict[str, str]:
    return {"pod": f"{pod.namespace}/{pod.name}", "uid": pod.uid}
