"""What the sync loop is given, as far as it uses it."""

from typing import Protocol

from agent.kubelet.pleg.cached_runtime import EndingRuntime
from agent.kubelet.pods.hooks import Hook
from agent.wire.model import Container, LifecycleHook, Node, Pod, PodStatus


class Pods(Protocol):
    def pod_by_uid(self, uid: str) -> Pod | None: ...
    def uids(self) -> frozenset[str]: ...


class Nodes(Protocol):
    """The part of agent.kubelet.node.registration.NodeReporter that is used."""

    def known_node(self) -> Node: ...
    def read_node(self) -> Node | None: ...


class ProbeWorkers(Protocol):
    """The part of agent.kubelet.prober.manager.ProberManager that is used."""

    def add_pod(self, pod: Pod) -> bool: ...
    def stop_liveness_and_startup(self, pod: Pod) -> None: ...
    def remove_pod(self, pod: Pod) -> None: ...
    def cleanup_pods(self, desired: frozenset[str]) -> None: ...
    def update_pod_status(self, pod: Pod, status: PodStatus) -> PodStatus: ...


class Statuses(Protocol):
    """The part of agent.kubelet.status.manager.StatusManager that is used."""

    def pod_status(self, uid: str) -> PodStatus | None: ...
    def set_pod_status(self, pod: Pod, status: PodStatus) -> bool: ...
    def terminate_pod(self, pod: Pod) -> None: ...
    def remove_orphaned(self, uids: frozenset[str]) -> None: ...


class StoppableRuntime(EndingRuntime, Protocol):
    """The part of agent.kubelet.pleg.cached_runtime.SeenRuntime that is used."""

    def ready(self, uid: str) -> bool: ...


class HookRunner(Protocol):
    """The part of agent.kubelet.pods.hooks.Hooks that is used."""

    def start(
        self, pod: Pod, container: Container, container_id: str, hook: LifecycleHook, *, ip: str, limit_s: float
    ) -> Hook: ...
