"""The sync loop of mode `kubelet`: it brings the containers and the status of every pod to what they should be.

Mirrors syncPod, syncTerminatingPod and syncTerminatedPod of pkg/kubelet/kubelet.go and the stages of pod_workers.go. A
container's end, a probe result, a change of the pod and a due time bring the pod back into the inbox. Where no call to
the runtime waits one thread does it all; else each pod has a worker.
"""

import contextlib
import logging
import random as random_module
import time
from collections.abc import Callable, Sequence

from agent.cri.calls import PodIsEnding
from agent.kubelet.events.event import NORMAL, WARNING, Event, Record, about_pod, record_nothing
from agent.kubelet.pods import actions
from agent.kubelet.pods.admission_order import AdmissionOrder
from agent.kubelet.pods.backoff import NETWORK_RETRY_S, RESYNC_S, RETRY_S, jittered_s, retry_s
from agent.kubelet.pods.ending import Ender
from agent.kubelet.pods.housekeeping import Housekeeper
from agent.kubelet.pods.interfaces import HookRunner, Nodes, Pods, ProbeWorkers, Statuses, StoppableRuntime
from agent.kubelet.pods.resizing import FORGOTTEN, Grants, Resizer
from agent.kubelet.pods.starts import Starter
from agent.kubelet.pods.state import PodState, Stage, is_to_end
from agent.kubelet.pods.work_queue import WorkQueue
from agent.kubelet.pods.workers import Dues, Workers
from agent.kubelet.runtime.base import StartError
from agent.kubelet.status import conditions, deadline
from agent.kubelet.status.generate import Host, Inputs, generate_status
from agent.processes.command import RuntimeUnavailable
from agent.wire.model import Pod, PodStatus, Result
from agent.wire.semantics import Semantics
from component.loop import Loop
from kube.contract import STATUS_TRUE

log = logging.getLogger(__name__)

HOUSEKEEPING_S = 2.0
STUCK_AFTER_S = 30.0
STOP_GRACE_S = 0.4
STOP_WAIT_S = 0.7  # within the second that stop() has


class PodLoop:
    """A Service. `liveness` and `startup` give the stable probe result of a container id.

    Where the agent is the runtime too, its stop ends all containers and says so in the statuses: they get 0.4 s after
    SIGTERM, and 0.7 s in all. What has not ended by then is killed by the runtime's own stop. `outlive`: the runtime is
    another process, so containers go on, and each pod has a worker that waits for it. `abandon(uid)`: who makes
    something for the pod gets PodIsEnding. `network()`: why the runtime has no network for pods, "" where it has one.
    """

    name = "pod loop"

    def __init__(
        self,
        inbox: WorkQueue,
        pods: Pods,
        runtime: StoppableRuntime,
        statuses: Statuses,
        prober: ProbeWorkers,
        hooks: HookRunner,
        *,
        liveness: Callable[[str], Result | None],
        startup: Callable[[str], Result | None],
        source_synced: Callable[[], bool],
        host: Host,
        nodes: Nodes,
        semantics: Semantics,
        outlive: bool = False,
        record: Record = record_nothing,
        grants: Grants = FORGOTTEN,
        abandon: Callable[[str], None] = lambda _uid: None,
        network: Callable[[], str] = lambda: "",
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = random_module.random,
    ) -> None:
        self._inbox = inbox
        self._pods = pods
        self._runtime = runtime
        self._statuses = statuses
        self._prober = prober
        self._liveness, self._startup = liveness, startup
        self._abandon, self._network = abandon, network
        self._host = host
        self._resizer = Resizer(record, wall, grants)
        self._semantics = semantics
        self._wall, self._monotonic, self._random, self._record = wall, monotonic, random, record
        self._ender = Ender(runtime, hooks, record=record)
        self._starter = Starter(runtime, hooks, wall=wall, monotonic=monotonic, record=record, semantics=semantics)
        self._states: dict[str, PodState] = {}
        self._intake = AdmissionOrder(
            pods,
            runtime,
            statuses,
            self._states,
            nodes=nodes,
            semantics=semantics,
            record=record,
            again=lambda uid: self._wake_in(uid, RETRY_S),
        )
        self._housekeeper = Housekeeper(
            inbox, pods, runtime, statuses, prober, self._resizer, self._states, source_synced=source_synced, wall=wall
        )
        self._due = Dues()
        self._workers = Workers(self._work) if outlive else None
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

    def ends_static(self, namespace: str, name: str) -> bool:
        """Of one whose file is gone: is it not over yet?"""
        return any(state.is_static(namespace, name) for state in list(self._states.values()))

    def turn(self) -> float:
        """Waits for something to do, at most until the next due time, and does it; wants to be called again at once."""
        due = self._due.first(self._next_housekeeping)
        self.sync_pods(self._inbox.take(due - self._monotonic()))
        return 0.0

    def sync_pods(self, uids: set[str]) -> None:
        """Looks at these pods and at those whose time has come, and keeps house every two seconds."""
        monotonic = self._monotonic()
        wanted = (uids | self._due.take(monotonic)) - {""}
        if wanted - self._states.keys():
            wanted |= self._intake.take()
        for uid in wanted:
            if self._loop.stopping:
                return
            self._loop.progressed()
            self._hurry(uid)
            if self._workers is None:
                self._work(uid)
            elif not self._workers.give(uid):
                self._due.put(uid, monotonic + RETRY_S)
        if monotonic >= self._next_housekeeping:
            self._next_housekeeping = monotonic + HOUSEKEEPING_S
            try:
                self._housekeeper.turn()
            except Exception:
                log.exception("housekeeping failed")

    def _hurry(self, uid: str) -> None:
        """A pod that is to end waits for nothing that is being made for it (UpdatePod cancels its sync)."""
        state, pod = self._states.get(uid), self._pods.pod_by_uid(uid)
        if state is None or state.ending or state.stage is not Stage.SYNCING:
            return
        if pod is None or is_to_end(pod):
            state.ending = True
            state.removed = state.removed or pod is None
            state.ends.note_grace(pod or state.pod)
            self._abandon(uid)

    def _work(self, uid: str) -> None:
        known = uid in self._states
        if known:
            self._due.begin(uid)
        self._attempt(uid)
        if known:
            self._due.end(uid)
        if self._workers is not None:
            self._inbox.put("")  # the loop may sleep for longer

    def _attempt(self, uid: str) -> None:
        try:
            self._look_at(uid)
        except PodIsEnding as e:  # it is looked at again at once, and ended
            log.info("pod sync given up", extra={"uid": uid, "error": str(e)})
            self._retry(uid)
        except RuntimeUnavailable as e:
            log.warning("pod not synced", extra={"uid": uid, "cause": type(e).__name__, "error": str(e)})
            self._retry(uid)
        except Exception:
            log.exception("pod sync failed", extra={"uid": uid})
            self._retry(uid)

    def _end_everything(self) -> None:
        if self._workers is not None:
            self._workers.close()
            return
        if not self._runtime.end_all(STOP_GRACE_S, wait_s=STOP_WAIT_S):
            log.warning("containers did not end in time: their last statuses are not written")
        for uid, state in self._states.items():
            if state.stage is not Stage.TERMINATED and self._pods.pod_by_uid(uid) is not None:
                with contextlib.suppress(RuntimeUnavailable):  # nothing is known of its containers
                    self._statuses.set_pod_status(state.pod, self._generate(state))

    # --- one pod ---

    def _look_at(self, uid: str) -> None:
        if not self._runtime.ready(uid):
            return  # it comes back when the runtime's pods are known
        pod = self._pods.pod_by_uid(uid)
        state = self._states.get(uid)
        if state is None:
            if pod is None:
                self._housekeeper.clear_away(uid)
            return  # one that has just come is in the inbox
        if state.removed:
            pod = None  # what is there is a new pod, whose turn comes when this one has ended
        if pod is not None:
            self._intake.changed(state, pod)
            state.pod = pod
            if not state.refused:
                state.allocation = self._resizer.seen(state.allocation, pod)
        state.gone = pod is None
        state.removed = state.removed or state.gone
        match state.stage:
            case Stage.SYNCING:
                self._sync(state)
            case Stage.TERMINATING:
                self._go_on_terminating(state)
            case Stage.TERMINATED:
                self._go_on_terminated(state)

    def _sync(self, state: PodState) -> None:
        pod = state.pod
        if state.ending or state.gone or is_to_end(pod):
            self._begin_termination(state)
            return
        if self._starter.hook_runs(pod, state.starts, lambda kill: self._kill(state, kill, None)):
            self._go_on_killing(state)
            return
        if self._starter.start_in_place(pod, state.starts, state.ends.killed):
            return
        status = self._generate(state)
        self._statuses.set_pod_status(pod, status)
        if conditions.is_terminal(status.phase):
            self._begin_termination(state)
            return
        left_s = deadline.active_left_s(pod, self._known_status(pod), self._wall())
        if left_s is not None:
            self._wake_in(pod.uid, left_s)
        if (network := self._network()) and not pod.host_network:
            self._record(Event(about_pod(pod), WARNING, "NetworkNotReady", f"network is not ready: {network}"))
            self._go_on_killing(state)
            self._wake_in(pod.uid, jittered_s(NETWORK_RETRY_S, self._random))
            return
        if not self._prober.add_pod(pod):
            self._wake_in(pod.uid, RETRY_S)
        restarting = conditions.find_condition(status.conditions, conditions.CONDITION_ALL_CONTAINERS_RESTARTING)
        wanted = actions.pod_actions(
            actions.Inputs(
                pod,
                self._runtime.pod(pod.uid),
                status,
                self._liveness,
                self._startup,
                self._semantics,
                restart_all=restarting is not None and restarting.status == STATUS_TRUE,
            )
        )
        if self._ended(state, wanted) and self._prepared(state, wanted):
            self._start(state, wanted)
        self._wake_in(pod.uid, jittered_s(RESYNC_S, self._random))

    def _ended(self, state: PodState, wanted: actions.Actions) -> bool:
        """Has everything ended that must have before anything starts?"""
        if wanted.kill_pod:
            return not self._end_all(state)
        state.ends.all = None
        for kill in wanted.kills:
            following = (s for s in (*wanted.init_starts, *wanted.starts) if s.after == kill.instance)
            self._kill(state, kill, next(following, None))
        self._go_on_killing(state)
        if not wanted.removals:
            return True
        if self._ender.reset(wanted.removals, state.ends):
            self._inbox.put(state.pod.uid)
        return False

    def _end_all(self, state: PodState) -> bool:
        """True as long as something runs."""
        again_in_s = self._ender.end_all(state.pod, state.ends, self._monotonic())
        if again_in_s is not None:
            self._wake_in(state.pod.uid, min(RETRY_S, again_in_s))
        return again_in_s is not None

    def _kill(self, state: PodState, kill: actions.Kill, following: actions.Start | None) -> None:
        self._ender.kill(state.pod, state.ends, kill, following, self._monotonic())

    def _go_on_killing(self, state: PodState) -> None:
        again_in_s = self._ender.go_on(state.pod, state.ends, self._monotonic())
        if again_in_s is not None:
            self._wake_in(state.pod.uid, again_in_s)

    def _prepared(self, state: PodState, wanted: actions.Actions) -> bool:
        """Is there a sandbox to start containers in?"""
        if wanted.create_sandbox:
            try:
                self._runtime.prepare_pod(state.pod)
            except StartError as e:
                log.warning("pod sandbox not made", extra={**state.facts, "cause": e.reason, "error": str(e)})
                self._retry(state.pod.uid)
                return False
            if self._semantics.pod_ready_to_start_containers_condition:
                ready = conditions.with_ready_sandbox(state.pod, self._known_status(state.pod))
                self._statuses.set_pod_status(state.pod, ready)
        return wanted.create_sandbox or not wanted.kill_pod

    def _start(self, state: PodState, wanted: actions.Actions) -> None:
        """What was done shows in the status at once, since the pod is synced again. So does what could not be done."""
        errors = dict(state.starts.errors)
        done = self._starter.start_all(state.pod, state.starts, wanted, state.ends.killed)
        if done.failed:
            self._retry(state.pod.uid, done.backoffs_s)
        if done.made:
            self._inbox.put(state.pod.uid)
        elif state.starts.errors != errors:
            self._statuses.set_pod_status(state.pod, self._generate(state))

    # --- the end of a pod ---

    def _begin_termination(self, state: PodState) -> None:
        state.stage = Stage.TERMINATING
        self._starter.abandon_hook(state.pod, state.starts)
        state.starts.errors.clear()
        log.info("terminating pod", extra=state.facts)
        self._go_on_terminating(state)

    def _go_on_terminating(self, state: PodState) -> None:
        pod = state.pod
        state.ends.note_grace(pod)
        if not state.announced:  # the first attempt, or one after an attempt that failed
            if not state.gone or pod.static:  # its mirror is there as long as it runs
                self._statuses.set_pod_status(pod, self._generate(state))
            if self._semantics.stops_probes_of_ending_pods:
                self._prober.stop_liveness_and_startup(pod)
        state.announced = False
        if self._end_all(state):
            state.announced = True
            return
        self._runtime.stop_pod(pod.uid)
        state.could_run = False
        self._prober.remove_pod(pod)
        if not state.gone or pod.static:
            self._statuses.set_pod_status(pod, self._generate(state, pod_is_terminal=True))
            self._statuses.terminate_pod(pod)
        state.stage = Stage.TERMINATED
        log.info("pod terminated", extra=state.facts)
        if state.removed:
            self._forget(state)

    def _go_on_terminated(self, state: PodState) -> None:
        if state.refused:
            self._housekeeper.clear_away(state.pod.uid)
        if state.removed:
            self._forget(state)
        elif state.pod.deletion_timestamp is not None:
            status = self._statuses.pod_status(state.pod.uid)
            if status is not None:
                # Nothing changes, but a pod being deleted gets a new version, and with it its deletion.
                self._statuses.set_pod_status(state.pod, status)

    def _forget(self, state: PodState) -> None:
        uid = state.pod.uid
        self._runtime.remove_pod(uid)
        self._due.forget(uid)
        del self._states[uid]
        for waiting in self._pods.uids() - self._states.keys() if state.pod.static else ():
            self._inbox.put(waiting)

    def _generate(self, state: PodState, *, pod_is_terminal: bool = False) -> PodStatus:
        pod = state.pod
        inputs = Inputs(
            pod=pod,
            runtime=self._runtime.pod(pod.uid),
            semantics=self._semantics,
            old=self._statuses.pod_status(pod.uid),
            host=self._host,
            start_errors=state.starts.errors,
            pod_is_terminal=pod_is_terminal,
            resizes=state.resizes,
            wall=self._wall(),
        )
        if deadline.past_active_deadline(pod, inputs.before, inputs.wall):
            self._record(Event(about_pod(pod), NORMAL, deadline.REASON_DEADLINE, deadline.MESSAGE_DEADLINE))
        return generate_status(inputs, self._prober.update_pod_status)

    def _known_status(self, pod: Pod) -> PodStatus:
        return self._statuses.pod_status(pod.uid) or pod.status

    def _retry(self, uid: str, backoffs_s: Sequence[float] = ()) -> None:
        self._wake_in(uid, retry_s(backoffs_s, self._random))

    def _wake_in(self, uid: str, delay_s: float) -> None:
        self._due.put(uid, self._monotonic() + delay_s)
