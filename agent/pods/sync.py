"""The sync loop of mode `kubelet`: one thread brings the containers and the status of every pod to what they should be.

Mirrors syncPod, syncTerminatingPod and syncTerminatedPod of pkg/kubelet/kubelet.go and the stages of pod_workers.go. No
step waits: a container's end, a probe result, a change of the pod and a due time bring the pod back into the inbox.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from agent.events.event import NORMAL, Event, Record, about_container, record_nothing
from agent.model import Pod, PodPhase, PodStatus, Result
from agent.pods import actions
from agent.pods.inbox import Inbox
from agent.pods.starts import RETRY_S, PodStarts, Starter
from agent.runtime.base import ContainerRuntime, StartError
from agent.semantics import Semantics
from agent.status import conditions
from agent.status.generate import Host, Inputs, generate_status
from component.loop import Loop

log = logging.getLogger(__name__)

RESYNC_S = 60.0  # kubelet's resyncInterval
HOUSEKEEPING_S = 2.0
STUCK_AFTER_S = 30.0
MIN_GRACE_S = 1.0
STOP_GRACE_S = 0.4
STOP_WAIT_S = 0.7  # within the second that stop() has


class Pods(Protocol):
    def pod_by_uid(self, uid: str) -> Pod | None: ...
    def uids(self) -> frozenset[str]: ...


class ProbeWorkers(Protocol):
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
    """Each hands over to the next, never back."""

    SYNCING = "syncing"
    TERMINATING = "terminating"
    TERMINATED = "terminated"


@dataclass(slots=True)
class _PodState:
    """`pod`: the newest copy, kept after the API server lost it (`gone`). `killed`: ids of containers that were asked
    to end because a probe failed. `grace_s`: the shortest that the containers of a terminating pod were given."""

    pod: Pod
    stage: Stage = Stage.SYNCING
    gone: bool = False
    could_run: bool = True
    grace_s: float | None = None
    starts: PodStarts = field(default_factory=PodStarts)
    killed: set[str] = field(default_factory=set)


class PodLoop:
    """A Service. `liveness` and `startup` give the stable probe result of a container id.

    When it stops it ends all containers, since the agent is their runtime too, and says so in the statuses: they get
    0.4 s after SIGTERM, and 0.7 s in all. What has not ended by then is killed by the runtime's own stop.
    """

    name = "pod loop"

    def __init__(
        self,
        inbox: Inbox,
        pods: Pods,
        runtime: StoppableRuntime,
        statuses: Statuses,
        prober: ProbeWorkers,
        *,
        liveness: Callable[[str], Result | None],
        startup: Callable[[str], Result | None],
        source_synced: Callable[[], bool],
        host: Host,
        max_pods: int,
        semantics: Semantics,
        record: Record = record_nothing,
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
        self._monotonic = monotonic
        self._record = record
        self._starter = Starter(runtime, wall=wall, monotonic=monotonic, record=record)
        self._states: dict[str, _PodState] = {}
        self._due: dict[str, float] = {}
        self._next_housekeeping = 0.0
        self._loop = Loop(
            "pod-loop",
            self.turn,
            stuck_after_s=STUCK_AFTER_S,
            unblock=lambda: inbox.put(""),
            at_end=self._end_everything,
            monotonic=monotonic,
        )
        # A Service by its loop.
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def could_run(self, uid: str) -> bool:
        """May containers of the pod still run? For the status manager, from its thread."""
        state = self._states.get(uid)
        return state is not None and state.could_run

    def turn(self) -> float:
        """Waits for something to do, at most until the next due time, and does it; wants to be called again at once."""
        due = min([*self._due.values(), self._next_housekeeping])
        self.sync_pods(self._inbox.take(due - self._monotonic()))
        return 0.0

    def sync_pods(self, uids: set[str]) -> None:
        """Looks at these pods and at those whose time has come, and keeps house every two seconds."""
        monotonic = self._monotonic()
        due = {uid for uid, at in self._due.items() if at <= monotonic}
        for uid in (uids | due) - {""}:
            if self._loop.stopping:
                return
            self._loop.progressed()
            self._due.pop(uid, None)
            try:
                self._look_at(uid)
            except Exception:
                log.exception("pod sync failed", extra={"uid": uid})
                self._wake_in(uid, RETRY_S)
        if monotonic >= self._next_housekeeping:
            self._next_housekeeping = monotonic + HOUSEKEEPING_S
            try:
                self._housekeeping()
            except Exception:
                log.exception("housekeeping failed")

    def _end_everything(self) -> None:
        self._runtime.end_all(STOP_GRACE_S, wait_s=STOP_WAIT_S)
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
        if pod is not None:
            state.pod = pod
        state.gone = pod is None
        match state.stage:
            case Stage.SYNCING:
                self._sync(state)
            case Stage.TERMINATING:
                self._go_on_terminating(state)
            case Stage.TERMINATED:
                self._go_on_terminated(state)

    def _sync(self, state: _PodState) -> None:
        pod = state.pod
        if state.gone or pod.deletion_timestamp is not None or conditions.is_terminal(pod.status.phase):
            self._begin_termination(state)
            return
        status = self._generate(state)
        self._statuses.set_pod_status(pod, status)
        if conditions.is_terminal(status.phase):
            self._begin_termination(state)
            return
        self._wake_in(pod.uid, RESYNC_S)
        try:
            self._runtime.prepare_pod(pod)
        except StartError as e:
            log.warning("pod sandbox not made", extra={**_facts(pod), "cause": e.reason, "error": str(e)})
            self._wake_in(pod.uid, RETRY_S)
            return
        self._prober.add_pod(pod)
        inputs = actions.Inputs(pod, self._runtime.pod(pod.uid), status, self._liveness, self._startup, self._semantics)
        wanted = actions.pod_actions(inputs)
        for kill in wanted.kills:
            self._kill(state, kill)
        self._start(state, wanted.starts)

    def _kill(self, state: _PodState, kill: actions.Kill) -> None:
        """Once an instance."""
        if kill.instance.id not in state.killed:
            state.killed.add(kill.instance.id)
            log.info("killing container", extra={**_facts(state.pod), "reason": kill.reason})
            self._tell_killing(state.pod, kill.instance.name, kill.reason)
            self._runtime.stop_container(kill.instance.id, max(MIN_GRACE_S, state.pod.termination_grace_period_s))

    def _tell_killing(self, pod: Pod, name: str, text: str) -> None:
        self._record(Event(about_container(pod, name), NORMAL, "Killing", text))

    def _start(self, state: _PodState, starts: list[actions.Start]) -> None:
        """What was done, and what could not be, shows in the status at once: the pod is looked at again."""
        errors = dict(state.starts.errors)
        made = False
        for start in starts:
            attempt = self._starter.start(state.pod, state.starts, start)
            made = made or attempt.made
            if attempt.again_in_s is not None:
                self._wake_in(state.pod.uid, attempt.again_in_s)
        if made or state.starts.errors != errors:
            self._inbox.put(state.pod.uid)

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
        log.warning("pod rejected", extra={**_facts(pod), "reason": message})
        state.stage, state.could_run = Stage.TERMINATED, False
        status = PodStatus(phase=PodPhase.FAILED, reason="OutOfpods", message=message, qos_class=pod.status.qos_class)
        self._statuses.set_pod_status(pod, status)
        self._statuses.terminate_pod(pod)
        return True

    # --- the end of a pod ---

    def _begin_termination(self, state: _PodState) -> None:
        state.stage = Stage.TERMINATING
        state.starts.errors.clear()
        self._prober.stop_liveness_and_startup(state.pod)
        if not state.gone:
            self._statuses.set_pod_status(state.pod, self._generate(state))
        log.info("terminating pod", extra=_facts(state.pod))
        self._inbox.put(state.pod.uid)
        self._go_on_terminating(state)

    def _go_on_terminating(self, state: _PodState) -> None:
        pod = state.pod
        running = self._runtime.pod(pod.uid).running
        if running:
            grace_s = _grace_s(pod, gone=state.gone)
            if state.grace_s is None or grace_s < state.grace_s:
                state.grace_s = grace_s
                for instance in running:
                    self._tell_killing(pod, instance.name, f"Stopping container {instance.name}")
                    self._runtime.stop_container(instance.id, grace_s)
            self._wake_in(pod.uid, RETRY_S)
            return
        state.could_run = False
        self._prober.remove_pod(pod)
        if not state.gone:
            self._statuses.set_pod_status(pod, self._generate(state, pod_is_terminal=True))
            self._statuses.terminate_pod(pod)
        state.stage = Stage.TERMINATED
        log.info("pod terminated", extra=_facts(pod))
        if state.gone:
            self._forget(pod.uid)

    def _go_on_terminated(self, state: _PodState) -> None:
        if state.gone:
            self._forget(state.pod.uid)
        elif state.pod.deletion_timestamp is not None:
            status = self._statuses.pod_status(state.pod.uid)
            if status is not None:
                # Nothing changes, but a pod being deleted gets a new version, and with it its deletion.
                self._statuses.set_pod_status(state.pod, status)

    def _forget(self, uid: str) -> None:
        self._runtime.remove_pod(uid)
        self._starter.forget_pod(uid)
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
            start_errors=state.starts.errors,
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
