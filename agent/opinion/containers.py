"""What the container runtime says of the health pods, asked over the CRI: one thread, which may wait for it.

Every pod of the node is listed, which costs two calls; a health pod that looks otherwise than before is looked at.
Where the runtime tells of changes by itself, the list comes at once after them and seldom else. A runtime that does not
answer changes nothing: the last known states stand, until the kubelet has told others since. Then it knows more.
"""

import math
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from agent.model import Pod, PodStatus
from agent.opinion.verdict import RUNTIME_SILENT, Finding
from agent.processes.command import Completed, ExecTimeout, RuntimeUnavailable
from agent.runtime.base import ContainerEvent, RuntimePod
from component.loop import Loop
from component.text import one_line

LIST_S = 1.0  # as the kubelet
LIST_BESIDE_EVENTS_S = 5.0
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
    """One look at a pod. `listed`: as the list had it, to see whether it has changed. `told`: what the kubelet had told
    of its containers when the runtime said last that this is still so."""

    listed: object
    pod: RuntimePod
    told: object


class ContainerStates:
    """A Service. `pods`: the health pods as they are told. `on_change` is called in its thread. `events_come`: whether
    the runtime tells by itself now; who hears it calls `wake`."""

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
        self._runtime = runtime
        self._pods = pods
        self._on_change = on_change
        self._events_come = events_come
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._looks: Mapping[str, Look] = {}
        self._silent = ""
        self._wanted: frozenset[str] = frozenset()
        self._loop = Loop(
            "container-states", self.turn, stuck_after_s=STUCK_AFTER_S, unblock=runtime.close, monotonic=monotonic
        )
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def take(self, event: ContainerEvent) -> None:
        """What the runtime tells by itself, in whatever thread it does."""
        if event.uid in self._wanted:
            self._loop.wake()

    def pod(self, pod: Pod) -> RuntimePod | None:
        """What is known of it; None where the kubelet knows more, or the runtime has never told of it."""
        with self._lock:
            look, silent = self._looks.get(pod.uid), self._silent
        if look is None or (silent and told(pod.status) != look.told):
            return None
        return look.pod

    def silent(self) -> Finding | None:
        """The finding, while the runtime does not answer."""
        with self._lock:
            said = self._silent
        return Finding(RUNTIME_SILENT, f"the last known container states are taken: {said}") if said else None

    def turn(self) -> float:
        """One list; returns the seconds until the next."""
        pods = list(self._pods())
        self._wanted = frozenset(pod.uid for pod in pods)
        try:
            looks, silent = self._looked(pods), ""
        except RuntimeUnavailable as e:
            looks, silent = self._looks, one_line(e, limit_bytes=TEXT_LIMIT_BYTES)
        if self._loop.stopping:
            return math.inf
        with self._lock:
            changed = bool(silent) is not bool(self._silent) or looks != self._looks
            self._looks, self._silent = looks, silent
        if changed:
            self._on_change()
        return LIST_BESIDE_EVENTS_S if not silent and self._events_come(self._monotonic()) else LIST_S

    def _looked(self, pods: Sequence[Pod]) -> Mapping[str, Look]:
        """Raises RuntimeUnavailable."""
        listed = {pod.uid: pod for pod in self._runtime.list_pods()} if pods else {}
        looks: dict[str, Look] = {}
        for pod in pods:
            seen, before = shape(listed.get(pod.uid)), self._looks.get(pod.uid)
            same = before is not None and before.listed == seen
            known = before.pod if before is not None and same else self._runtime.pod(pod.uid)
            looks[pod.uid] = Look(seen, known, told(pod.status))
        return looks


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


def shape(pod: RuntimePod | None) -> object:
    """What a list tells of changes: which sandboxes and containers there are, and what they do."""
    if pod is None:
        return None
    return (
        tuple((sandbox.id, sandbox.ready) for sandbox in pod.sandboxes),
        tuple(sorted((container.id, container.phase.value) for container in pod.containers)),
    )


def told(status: PodStatus) -> object:
    """What the kubelet tells of changes: which containers there are, and what they do."""
    statuses = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    return (status.pod_ip, tuple((one.name, one.container_id, one.state) for one in statuses))
