"""Ends containers, one or all of a pod: preStop hook, then its turn, then SIGTERM. As killContainer and
killContainersWithSyncResult of kuberuntime, but nothing here waits.

The grace counts from the moment the end is asked for: what hook and turn have taken of it is gone, but each container
has `MIN_GRACE_S` after its SIGTERM. Sidecars are asked to end when the app containers and the next sidecar behind them
have, or when the grace is over. A hook runs once an instance.
"""

import logging
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from agent.kubelet.events.event import NORMAL, WARNING, Event, Record, about_container, record_nothing
from agent.kubelet.pods.actions import MIN_GRACE_S, Kill, Remove, Start, waits_for
from agent.kubelet.pods.hooks import Hook
from agent.kubelet.pods.interfaces import HookRunner
from agent.kubelet.runtime.base import ContainerRuntime
from agent.wire.containers import ContainerPhase, RuntimeContainer
from agent.wire.model import Container, Pod

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Ending:
    """Of all containers of a pod. `since`: from when the grace counts, by the monotonic clock. `asked`: id -> its
    deadline."""

    grace_s: float | None = None
    since: float = 0.0
    asked: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class PodEnds:
    """Of one pod. `grace_s`: the shortest since the pod was first to end. `killed`: ids of containers that were asked
    to end one by one, with what starts in their place. `waiting`: those of them that are not stopped yet, with their
    grace and since when it counts. `hooks`: preStop, by id. `all`: all containers are being ended."""

    grace_s: float = math.inf
    killed: dict[str, Start | None] = field(default_factory=dict)
    waiting: dict[str, tuple[float, float]] = field(default_factory=dict)
    hooks: dict[str, Hook] = field(default_factory=dict)
    all: Ending | None = None

    def note_grace(self, pod: Pod) -> None:
        """The pod is to end: a longer grace does not count from now on (calculateEffectiveGracePeriod)."""
        self.grace_s = min(self.grace_s, grace_of(pod))


def stop_grace_s(left_s: float) -> float:
    """Of what is left of a grace in whole seconds, the container gets it all, and some in any case."""
    return max(MIN_GRACE_S, math.ceil(round(left_s, 3)))


class Ender:
    """Several threads may use it, each for another pod."""

    def __init__(self, runtime: ContainerRuntime, hooks: HookRunner, *, record: Record = record_nothing) -> None:
        self._runtime = runtime
        self._hooks = hooks
        self._record = record

    def kill(self, pod: Pod, ends: PodEnds, kill: Kill, following: Start | None, monotonic: float) -> None:
        """Once an instance. `following`: what starts in its place. See `go_on`."""
        if kill.instance.id in ends.killed:
            return
        ends.killed[kill.instance.id] = following
        log.info("killing container", extra={"pod": f"{pod.namespace}/{pod.name}", "reason": kill.reason})
        self._tell(pod, kill.instance.name, NORMAL, "Killing", kill.reason)
        ends.waiting[kill.instance.id] = (kill.grace_s, monotonic)

    def go_on(self, pod: Pod, ends: PodEnds, monotonic: float) -> float | None:
        """Stops those of `kill` whose hooks are over; in how many seconds to call it again at the latest."""
        known = self._runtime.pod(pod.uid).containers
        instances = {instance.id: instance for instance in known if instance.phase is not ContainerPhase.EXITED}
        _forget_hooks(ends, instances.keys())
        again: list[float] = []
        for container_id, (grace_s, since) in list(ends.waiting.items()):
            left_s = since + grace_s - monotonic
            if container_id in instances and self._hook_runs(pod, ends, instances[container_id], left_s):
                again.append(left_s)
                continue
            self._runtime.stop_container(container_id, stop_grace_s(left_s))
            del ends.waiting[container_id]  # not before: where it could not be asked to end it is the next time
        return min(again, default=None)

    def end_all(self, pod: Pod, ends: PodEnds, monotonic: float) -> float | None:
        """Asks those to end whose turn it is. A grace only becomes shorter, and counts anew then.

        Returns in how many seconds it has to be called again at the latest; None: nothing runs any more.
        """
        running = self._runtime.pod(pod.uid).running
        if ends.all is None:
            ends.all = Ending()
            ends.waiting.clear()
            for instance in running:
                self._tell(pod, instance.name, NORMAL, "Killing", f"Stopping container {instance.name}")
        _forget_hooks(ends, {instance.id for instance in running})
        if not running:
            return None
        ending, grace_s = ends.all, min(grace_of(pod), ends.grace_s)
        if ending.grace_s is None or grace_s < ending.grace_s:
            ending.grace_s, ending.since = grace_s, monotonic
        left_s = ending.since + ending.grace_s - monotonic
        waits = waits_for(pod, [instance.name for instance in running])
        for instance in running:
            if self._hook_runs(pod, ends, instance, left_s) or (waits[instance.name] and left_s > 0):
                continue
            deadline = monotonic + max(MIN_GRACE_S, left_s)
            if deadline < ending.asked.get(instance.id, float("inf")):
                self._runtime.stop_container(instance.id, stop_grace_s(left_s))
                ending.asked[instance.id] = deadline
        return left_s if left_s > 0 else MIN_GRACE_S

    def reset(self, removals: Sequence[Remove], ends: PodEnds) -> bool:
        """Ends what runs, without its hooks, then has the runtime forget all of them, in this order: True."""
        ending = [remove.instance.id for remove in removals if remove.kill]
        for container_id in ending:
            if container_id not in ends.killed:
                self._runtime.stop_container(container_id, MIN_GRACE_S)
                ends.killed[container_id] = None
        for remove in () if ending else removals:
            self._runtime.remove_container(remove.instance.id)
        return not ending

    def _hook_runs(self, pod: Pod, ends: PodEnds, instance: RuntimeContainer, left_s: float) -> bool:
        """Has the end of the instance to wait for its preStop hook? Starts it where that was not done."""
        hook = ends.hooks.get(instance.id)
        if hook is None:
            container = _container(pod, instance.name)
            if container is None or container.pre_stop is None or left_s <= 0:
                return False
            ip = self._runtime.pod(pod.uid).ip
            limit_s = left_s + MIN_GRACE_S
            hook = self._hooks.start(pod, container, instance.id, container.pre_stop, ip=ip, limit_s=limit_s)
            ends.hooks[instance.id] = hook
        self._tell_failed(pod, instance.name, hook)
        return not hook.over and left_s > 0

    def _tell_failed(self, pod: Pod, name: str, hook: Hook) -> None:
        """Once."""
        if hook.over and hook.error is not None:
            facts = {"pod": f"{pod.namespace}/{pod.name}", "container": name}
            log.warning("preStop hook failed", extra={**facts, "error": hook.error})
            hook.error = None
            self._tell(pod, name, WARNING, "FailedPreStopHook", "PreStopHook failed")

    def _tell(self, pod: Pod, name: str, type_: str, reason: str, text: str) -> None:
        self._record(Event(about_container(pod, name), type_, reason, text))


def _forget_hooks(ends: PodEnds, running: Collection[str]) -> None:
    """Those of instances that have ended."""
    for container_id in ends.hooks.keys() - running:
        ends.hooks.pop(container_id).cancel()


def _container(pod: Pod, name: str) -> Container | None:
    return next((c for c in (*pod.containers, *pod.init_containers, *pod.ephemeral_containers) if c.name == name), None)


def grace_of(pod: Pod) -> float:
    """calculateEffectiveGracePeriod: the API server's word, else the spec's; a second at least."""
    given = pod.deletion_grace_period_s
    return max(1.0, pod.termination_grace_period_s if given is None else given)
