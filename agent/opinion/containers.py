"""What the container runtime knows of the health pods, asked over the CRI: one thread, which may wait for it.

Which pods have changed, and so are inspected, is for the pod lifecycle event generator (`pleg`), as in a kubelet. Here
it lists health pods alone: each second, or every five while the runtime sends events, after which it lists their pod
at once. A runtime that does not answer changes nothing: the last known states stand, until the kubelet has reported
others since. Then the kubelet knows more.
"""

import math
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from agent.kubelet.pleg.cache import Cache
from agent.kubelet.pleg.channel import EventChannel
from agent.kubelet.pleg.generator import EventGenerator
from agent.kubelet.pleg.relist import GENERIC, Pace
from agent.opinion.verdict import RUNTIME_SILENT, Finding
from agent.processes.command import Completed, ExecTimeout
from agent.wire.containers import ContainerEvent, RuntimePod
from agent.wire.model import Pod, PodStatus
from agent.wire.semantics import Semantics
from component.loop import Loop
from component.text import one_line

WITH_EVENTS = Pace(5.0, GENERIC.threshold_s, retry_s=GENERIC.period_s)
"""A list shows that the runtime still answers, which a stream without events does not: so not a kubelet's 300 s."""
DEADLINE_S = 5.0  # of each call
STUCK_AFTER_S = 300.0  # a turn has as many calls as a few pods have containers
TEXT_LIMIT_BYTES = 256


class Runtime(Protocol):
    """The part of agent.cri.base.Reader that is used. All raise RuntimeUnavailable, the last one ExecTimeout too."""

    def list_pods(self, uid: str = "") -> Sequence[RuntimePod]: ...
    def pod(self, uid: str) -> RuntimePod: ...
    def version(self) -> object: ...
    def exec(self, container_id: str, command: Sequence[str], timeout_s: float) -> Completed: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Look:
    """A health pod, as the runtime and the kubelet show it at the last list of the runtime."""

    pod: RuntimePod
    reported: object  # the states of its containers in the status that the kubelet wrote


class _HealthPods:
    """A Listing for the generator: of all pods of the runtime the health pods, and nothing asked where there is none.

    `wanted`: their uids. `reported`: by uid, the states that the kubelet had written at the last complete list.
    `error`: of a list that failed after it, "" for none."""

    def __init__(self, runtime: Runtime, pods: Callable[[], Collection[Pod]]) -> None:
        self._list_pods = runtime.list_pods
        self._pods = pods
        self.pod = runtime.pod
        self.wanted: frozenset[str] = frozenset()
        self.reported: Mapping[str, object] = {}
        self.error = ""

    def list_pods(self, uid: str = "") -> Sequence[RuntimePod]:
        pods = list(self._pods())
        self.wanted = frozenset(pod.uid for pod in pods)
        try:
            listed = self._list_pods(uid) if pods else ()
        except Exception as e:
            self.error = _text(e)
            raise
        if not uid:
            self.reported, self.error = {pod.uid: told(pod.status) for pod in pods}, ""
        return [pod for pod in listed if pod.uid in self.wanted]


class ContainerStates:
    """A Service. `pods`: the health pods as the API server or the kubelet reports them. `on_change` is called in its
    thread. `events_come`: whether the runtime sends events now, which `take` takes."""

    name = "container states"

    def __init__(
        self,
        runtime: Runtime,
        pods: Callable[[], Collection[Pod]],
        on_change: Callable[[], None],
        *,
        events_come: Callable[[float], bool] = lambda _monotonic: False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_change = on_change
        self._lock = threading.Lock()
        self._looks: Mapping[str, Look] = {}
        self._silent = ""
        self._health_pods = _HealthPods(runtime, pods)
        self._events = EventChannel()
        self._generator = EventGenerator(
            self._health_pods,
            Cache(),
            self._events.put,
            events_come=events_come,
            semantics=Semantics(),
            evented=WITH_EVENTS,
            most_failures=math.inf,  # a runtime that was restarted five times sends events still
            monotonic=monotonic,
        )
        self._loop = Loop(
            "container-states", self.turn, stuck_after_s=STUCK_AFTER_S, unblock=runtime.close, monotonic=monotonic
        )
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def take(self, event: ContainerEvent) -> None:
        """An event of the runtime, in whatever thread: its pod is listed at once."""
        if event.uid in self._health_pods.wanted:
            self._generator.request(event.uid)
            self._loop.wake()

    def pod(self, pod: Pod) -> RuntimePod | None:
        """What is known of it; None where the kubelet knows more, or the runtime was never asked for it."""
        with self._lock:
            look, silent = self._looks.get(pod.uid), self._silent
        if look is None or (silent and told(pod.status) != look.reported):
            return None
        return look.pod

    def silent(self) -> Finding | None:
        """The finding, while the runtime does not answer."""
        with self._lock:
            said = self._silent
        return Finding(RUNTIME_SILENT, f"the last known container states are taken: {said}") if said else None

    def turn(self) -> float:
        """A turn of the generator, and what follows from it; returns the seconds until the next."""
        pause_s = self._generator.turn()
        if self._loop.stopping:
            return math.inf
        looks, silent = self._looked()
        with self._lock:
            changed = bool(silent) is not bool(self._silent) or looks != self._looks
            self._looks, self._silent = looks, silent
        if self._events.take() or changed:
            self._on_change()
        return pause_s

    def _looked(self) -> tuple[Mapping[str, Look], str]:
        """By uid, and why the runtime does not answer. A pod that could not be inspected stays as it was known last."""
        looks, silent = {}, self._health_pods.error
        for uid, reported in self._health_pods.reported.items():
            entry, before = self._generator.cache.get(uid), self._looks.get(uid)
            if entry.error is None:
                looks[uid] = Look(entry.pod, reported)
            else:
                silent = silent or _text(entry.error)
                if before is not None:
                    looks[uid] = before
        return looks, silent


def executed(runtime: Runtime) -> Callable[[str, Sequence[str], float], Completed]:
    """Commands in containers, by the runtime. One that took too long while the runtime does not answer anybody has not
    failed: it could not be run."""

    def run(container_id: str, command: Sequence[str], timeout_s: float) -> Completed:
        try:
            return runtime.exec(container_id, command, timeout_s)
        except ExecTimeout:
            runtime.version()
            raise

    return run


def told(status: PodStatus) -> object:
    """What the kubelet reports of changes: which containers there are, and what they do."""
    statuses = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    return (status.pod_ip, tuple((one.name, one.container_id, one.state) for one in statuses))


def _text(error: Exception) -> str:
    return one_line(error, limit_bytes=TEXT_LIMIT_BYTES)
