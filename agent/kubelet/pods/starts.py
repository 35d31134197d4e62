"""Starts containers, each in its turn: one that keeps ending waits for its back-off. As doBackOff of kuberuntime."""

import logging
import math
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace

from agent.kubelet.events.event import NORMAL, WARNING, Event, Record, about_container, record_nothing
from agent.kubelet.pods.actions import Actions, Kill, Start, kill_for
from agent.kubelet.pods.backoff import RestartBackoff
from agent.kubelet.pods.hooks import Hook
from agent.kubelet.pods.interfaces import HookRunner
from agent.kubelet.runtime.base import ContainerRuntime, StartError
from agent.kubelet.status.restarts import is_sidecar
from agent.processes.command import go_duration
from agent.wire.containers import ContainerPhase, RuntimeContainer
from agent.wire.model import ContainerWaiting, Pod
from agent.wire.semantics import PROFILES, Semantics

log = logging.getLogger(__name__)

REASON_BACK_OFF = "CrashLoopBackOff"
REASON_POST_START = "PostStartHookError"


@dataclass(frozen=True, slots=True)
class Attempt:
    """`made`: the runtime has a new instance, be it one that ended at once; else it failed. `backoff_s`: it failed as
    the container's back-off is not over for so long. `hooked`: its postStart hook runs."""

    made: bool
    backoff_s: float | None = None
    hooked: bool = False


@dataclass(slots=True)
class Round:
    """What became of the containers of one sync. `made`: at least one. `failed`: at least one. `backoffs_s`: of those
    that failed for their back-off."""

    made: bool = False
    failed: bool = False
    backoffs_s: list[float] = field(default_factory=list)


@dataclass(slots=True)
class PostStart:
    """Of the instance that was started last. `failed`: and so is being ended."""

    name: str
    container_id: str
    hook: Hook
    failed: bool = False


@dataclass(slots=True)
class PodStarts:
    """Of one pod, by container. `errors`: the Waiting state that says why it does not run. `ends`: id of the instance
    that ended last, and when by the monotonic clock. `post_start`: the pod waits for it."""

    backoff: RestartBackoff = field(default_factory=RestartBackoff)
    errors: dict[str, ContainerWaiting] = field(default_factory=dict)
    ends: dict[str, tuple[str, float]] = field(default_factory=dict)
    post_start: PostStart | None = None


class Starter:
    """Several threads may use it, each for another pod."""

    def __init__(
        self,
        runtime: ContainerRuntime,
        hooks: HookRunner,
        *,
        wall: Callable[[], float],
        monotonic: Callable[[], float],
        record: Record = record_nothing,
        semantics: Semantics = PROFILES["current"],
    ) -> None:
        self._runtime = runtime
        self._hooks = hooks
        self._longest_s = semantics.max_container_restart_period_s
        self._record = record
        self._wall = wall
        self._monotonic = monotonic

    def start_all(self, pod: Pod, starts: PodStarts, wanted: Actions, killed: Container[str]) -> Round:
        """Tries each once, up to one that the others wait for. Those in place of a container in `killed` start when it
        has ended."""
        done = Round()
        for start in (*wanted.ephemeral_starts, *wanted.init_starts, *wanted.starts):
            if start.after is not None and start.after.id in killed:
                continue
            attempt = self.start(pod, starts, start)
            done.made = done.made or attempt.made
            done.failed = done.failed or not attempt.made
            if attempt.backoff_s is not None:
                done.backoffs_s.append(attempt.backoff_s)
            failed = start in wanted.init_starts and not is_sidecar(start.container) and not attempt.made
            if failed or attempt.hooked:
                break
        return done

    def start_in_place(self, pod: Pod, starts: PodStarts, killed: dict[str, Start | None]) -> bool:
        """Starts what starts in place of those in `killed` that have ended, whatever their exit codes. First of all,
        since a status without them might say that the pod is done. True: the pod waits for a postStart hook.

        As in a kubelet, which starts them in the same step, back-off counts from the end of the instance before. Where
        it is not over, the policy decides from now on.
        """
        runtime = self._runtime.pod(pod.uid)
        # Of one of which the runtime does not know whether it runs that is known when it was stopped.
        up = {instance.id for instance in runtime.containers if instance.phase is not ContainerPhase.EXITED}
        for container_id in [container_id for container_id in killed if container_id not in up]:
            start = killed.pop(container_id)
            if start is not None:
                others = (i for i in runtime.instances(start.container.name) if i.id != container_id)
                before = next((i for i in others if i.phase is ContainerPhase.EXITED), None)
                if self.start(pod, starts, replace(start, after=before)).hooked:
                    return True
        return False

    def start(self, pod: Pod, starts: PodStarts, start: Start) -> Attempt:
        """Tries it once; `starts` is kept up to date."""
        name = start.container.name
        if start.after is not None and (remaining_s := self._backs_off(pod, starts, start.after)) > 0:
            return Attempt(made=False, backoff_s=remaining_s)
        ip = self._runtime.pod(pod.uid).ip
        try:
            container_id = self._runtime.start_container(pod, start.container, start.restart_count)
        except StartError as e:
            facts = {"pod": f"{pod.namespace}/{pod.name}", "uid": pod.uid, "container": name}
            log.warning("container not started", extra={**facts, "cause": e.reason, "error": str(e)})
            starts.errors[name] = ContainerWaiting(e.reason, str(e))
            self._tell(pod, name, WARNING, "Failed", f"Error: {e}")
            newest = self._runtime.pod(pod.uid).newest(name)
            if newest is not None and newest != start.after:
                return Attempt(made=True)
            return Attempt(made=False)
        starts.errors.pop(name, None)
        self._tell(pod, name, NORMAL, "Created", "Container created")
        self._tell(pod, name, NORMAL, "Started", "Container started")
        container = start.container
        if container.post_start is None:
            return Attempt(made=True)
        hook = self._hooks.start(pod, container, container_id, container.post_start, ip=ip, limit_s=math.inf)
        starts.post_start = PostStart(name, container_id, hook)
        return Attempt(made=True, hooked=True)

    def hook_runs(self, pod: Pod, starts: PodStarts, kill: Callable[[Kill], None]) -> bool:
        """Has the pod to wait for a postStart hook, or for the end of a container whose hook has failed?

        `kill` ends that one. As in a kubelet nothing else is done for the pod meanwhile, nor is its status written.
        """
        waited = starts.post_start
        if waited is None:
            return False
        if not waited.hook.over:
            return True
        running = (i for i in self._runtime.pod(pod.uid).running if i.id == waited.container_id)
        instance = next(running, None)
        if waited.hook.error is not None and not waited.failed:
            waited.failed = True
            starts.errors[waited.name] = ContainerWaiting(REASON_POST_START, waited.hook.error)
            self._tell_post_start(pod, waited)
            if instance is not None:
                kill(kill_for(pod, instance, "FailedPostStartHook"))
        if waited.failed and instance is not None:
            return True
        starts.post_start = None
        return False

    def abandon_hook(self, pod: Pod, starts: PodStarts) -> None:
        """The pod is being ended."""
        if starts.post_start is not None and not starts.post_start.failed:
            starts.post_start.hook.cancel()
            self._tell_post_start(pod, starts.post_start)
        starts.post_start = None

    def _tell_post_start(self, pod: Pod, waited: PostStart) -> None:
        facts = {"pod": f"{pod.namespace}/{pod.name}", "container": waited.name}
        log.warning("postStart hook failed", extra={**facts, "error": waited.hook.error or "the pod is being ended"})
        self._tell(pod, waited.name, WARNING, "FailedPostStartHook", "PostStartHook failed")

    def _backs_off(self, pod: Pod, starts: PodStarts, after: RuntimeContainer) -> float:
        """Seconds until the container may start again, 0 when it may now: then the next wait will be longer."""
        key, monotonic = (pod.uid, after.name), self._monotonic()
        ended_at = self._ended_at(starts, after)
        remaining_s = starts.backoff.remaining_s(key, ended_at, monotonic)
        if remaining_s <= 0:
            starts.backoff.restarted(key, ended_at, monotonic, limit_s=self._longest_s)
            return 0.0
        delay = go_duration(starts.backoff.delay_s(key))
        where = f"{pod.name}_{pod.namespace}({pod.uid})"
        message = f"back-off {delay} restarting failed container={after.name} pod={where}"
        starts.errors[after.name] = ContainerWaiting(REASON_BACK_OFF, message)
        text = f"Back-off restarting failed container {after.name} in pod {where}"
        self._tell(pod, after.name, WARNING, "BackOff", text)
        return remaining_s

    def _tell(self, pod: Pod, name: str, type_: str, reason: str, text: str) -> None:
        self._record(Event(about_container(pod, name), type_, reason, text))

    def _ended_at(self, starts: PodStarts, instance: RuntimeContainer) -> float:
        """By the monotonic clock: the runtime's records have the wall clock's time, which may be set back."""
        known = starts.ends.get(instance.name)
        if known is None or known[0] != instance.id:
            at = instance.finished_at if instance.finished_at is not None else instance.created_at
            known = starts.ends[instance.name] = (instance.id, self._monotonic() - max(0.0, self._wall() - at))
        return known[1]
