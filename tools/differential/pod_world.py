"""A world for pod workers: a runtime, probes and statuses that tell what is done, for histories of target `workers`."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agent.kubelet.pods.source import PodTable
from agent.kubelet.pods.state import Stage
from agent.kubelet.pods.sync import PodLoop
from agent.kubelet.runtime.base import StartError
from agent.kubelet.status.manager import StatusManager
from agent.processes.command import RuntimeUnavailable
from agent.wire.containers import RuntimePod, Sandbox
from agent.wire.model import (
    ContainerRunning,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Node,
    NodeStatus,
    Pod,
    PodStatus,
)
from agent.wire.semantics import Semantics
from tools.differential import worlds
from tools.differential.target import History
from tools.differential.worlds import Json
from tools.fakes.prober import FakeProber
from tools.fakes.runtime import FakeRuntime
from tools.kit.clock import Clock


class World:
    """Outlives the agents of a history."""

    def __init__(self, history: History) -> None:
        self.clock = Clock(worlds.START)
        self.random: float = history["random"]
        self.node = Node(name="n", status=NodeStatus(allocatable={"pods": str(history["capacity"])}))
        self.config: dict[str, Json] = {}
        self.runtime = HistoryRuntime(self.clock, self.tell)
        self.no_network = False
        self.does: dict[str, list[Any]] = {}

    def tell(self, uid: str, *what: Any) -> None:
        self.does.setdefault(uid, []).append(list(what))


class HistoryRuntime(FakeRuntime):
    """`faults`: what goes wrong, as (what, uid). `wait(uid)`: until a start that is slow goes on. `waits_for_end(uid)`:
    nothing more is asked of the pod's containers until one ends. A kubelet does not look at the pod then."""

    def __init__(self, clock: Clock, tell: Callable[..., None]) -> None:
        super().__init__(clock)
        self.faults: set[tuple[str, str]] = set()
        self.tell = tell
        self.wait: Callable[[str], None] = lambda _uid: None
        self.is_orphan: Callable[[str], bool] = lambda _uid: True
        self.waits_for_end: Callable[[str], bool] = lambda _uid: False
        self._killed: dict[str, float] = {}
        self.asked = set[str]()  # to stop, by this agent

    def pod(self, uid: str) -> RuntimePod:
        if ("blind", uid) in self.faults and not self.waits_for_end(uid):
            raise RuntimeUnavailable("not to be inspected")
        return self.seen(uid)

    def seen(self, uid: str) -> RuntimePod:
        return self.pods.get(uid, RuntimePod(uid))

    def prepare_pod(self, pod: Pod) -> str:
        self.pods[pod.uid] = replace(self.seen(pod.uid), sandboxes=(Sandbox(True, "127.0.1.2", pod.host_network),))
        return "127.0.1.2"

    def start_container(self, pod: Pod, container: Any, restart_count: int) -> str:
        self.wait(pod.uid)
        if ("broken", pod.uid) in self.faults:
            self.tell(pod.uid, "start fails")
            raise StartError("RunContainerError", "broken")
        # Of a static pod another one of its uid may have been there, whose restarts a kubelet counts by its logs.
        self.tell(pod.uid, "start", *(() if pod.static else (restart_count,)))
        self._killed.pop(pod.uid, None)
        self.asked.discard(pod.uid)
        return super().start_container(pod, container, restart_count)

    def stop_container(self, container_id: str, grace_s: float) -> None:
        uid = next(uid for uid, pod in self.pods.items() if any(c.id == container_id for c in pod.containers))
        self.asked.add(uid)
        deadline = self._clock() + grace_s
        if deadline < self._killed.get(uid, math.inf):
            self._killed[uid] = deadline
            self.tell(uid, "kill", round(grace_s))

    def is_ending(self, uid: str) -> bool:
        return uid in self.asked and bool(self.seen(uid).running)

    def stop_pod(self, uid: str) -> None:
        """One that is stopped already is no work: a kubelet does not ask for it again after a restart."""
        if not any(sandbox.ready for sandbox in self.seen(uid).sandboxes):
            return
        if ("stuck", uid) in self.faults:
            self.tell(uid, "stop fails")
            raise RuntimeUnavailable("the sandbox cannot be stopped")
        self.tell(uid, "stopped")
        self.pods[uid] = replace(self.seen(uid), sandboxes=(Sandbox(False, "127.0.1.2"),))

    def remove_pod(self, uid: str) -> None:
        if self.is_orphan(uid) and self.seen(uid).running:
            self.tell(uid, "orphan")
        super().remove_pod(uid)

    def exit(self, uid: str, code: int) -> None:
        others = {other: pod for other, pod in self.pods.items() if other != uid}
        self.pods = {uid: self.pods[uid]} if uid in self.pods else {}
        self.end("c", code)
        self.pods |= others


class HistoryProbes(FakeProber):
    """What goes on with probes is told where it changes something."""

    def __init__(self, tell: Callable[..., None]) -> None:
        super().__init__()
        self._tell, self._probed, self._lessened = tell, set[str](), set[str]()
        self.desired: frozenset[str] = frozenset()

    def add_pod(self, pod: Pod) -> bool:
        if pod.uid not in self._probed:
            self._probed.add(pod.uid)
            self._tell(pod.uid, "probe")
        return True

    def stop_liveness_and_startup(self, pod: Pod) -> None:
        if pod.uid in self._probed - self._lessened:
            self._lessened.add(pod.uid)
            self._tell(pod.uid, "probe less")

    def remove_pod(self, pod: Pod) -> None:
        if pod.uid in self._probed:
            self._probed.discard(pod.uid)
            self._lessened.discard(pod.uid)
            self._tell(pod.uid, "no probe")


class HistoryStatuses(StatusManager):
    """Tells what is kept, where it is new."""

    def __init__(self, table: PodTable, semantics: Semantics, world: World, loop: Callable[[], PodLoop]) -> None:
        client: Any = None  # nothing is written
        super().__init__(client, table, lambda uid: loop().could_run(uid), semantics, wall=world.clock)
        self._table, self._world, self._pod_loop = table, world, loop
        self._shown: dict[str, list[Any]] = {}

    def set_pod_status(self, pod: Pod, status: PodStatus) -> bool:
        changed = super().set_pod_status(pod, status)
        state = self._pod_loop()._states.get(pod.uid)
        if state is None or state.stage is not Stage.TERMINATED:
            self._show(pod, "refused" if state is None else "sync" if state.stage is Stage.SYNCING else "end")
        return changed

    def _show(self, pod: Pod, kind: str) -> None:
        """What is kept, where it is new. Where a pod is over it is set again only for the API server to see it."""
        kept = self.pod_status(pod.uid)
        if kept is None:
            return
        told: list[Any] = ["status", kind, kept.phase.value, kept.reason]
        for container in kept.container_statuses or ():
            told += [_state(container), *(() if pod.static else (container.restart_count,))]
        if kind == "sync":
            told.append(pod.labels.get("n", ""))
        known = self._table.pod_by_uid(pod.uid) is not None
        if (known or pod.static) and self._shown.get(pod.uid) != told:
            self._shown[pod.uid] = told
            self._world.tell(pod.uid, *told)

    def terminate_pod(self, pod: Pod) -> None:
        super().terminate_pod(pod)
        self._show(pod, "finished")


def _state(container: ContainerStatus) -> str:
    match container.state:
        case ContainerRunning():
            return "running"
        case ContainerTerminated(exit_code=code):
            return f"ended {code}"
        case ContainerWaiting(reason=reason):
            return f"waits {reason}"
    return ""
