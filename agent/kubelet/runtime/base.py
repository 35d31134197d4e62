"""What the agent asks of a container runtime, and what a runtime knows of a pod."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from agent.processes.command import Completed, RuntimeUnavailable
from agent.wire.model import Container, Pod


class ContainerPhase(Enum):
    """pkg/kubelet/container ContainerState."""

    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RuntimeContainer:
    """One instance of a container. `id` has the form type://id; times are seconds since the epoch."""

    id: str
    name: str
    phase: ContainerPhase
    created_at: float
    started_at: float | None = None
    finished_at: float | None = None
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    restart_count: int = 0
    image: str = ""
    image_id: str = ""
    sandbox_id: str = ""  # "" where a pod has one at most


@dataclass(frozen=True, slots=True)
class Sandbox:
    """`ip` None means that the sandbox reports no network at all. `id` has the form type://id. `attempt`: how many the
    pod had before it."""

    ready: bool
    ip: str | None
    host_network: bool = False
    id: str = ""
    attempt: int = 0
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class RuntimePod:
    """What the runtime knows of one pod. `sandboxes` newest first; `containers` in any order, dead ones included.

    `kept_ip`: the address it had while its network was there. `name`, `namespace`: where the runtime was told."""

    uid: str
    sandboxes: tuple[Sandbox, ...] = ()
    containers: tuple[RuntimeContainer, ...] = ()
    kept_ip: str = ""
    name: str = ""
    namespace: str = ""

    @property
    def ip(self) -> str:
        return (self.sandboxes[0].ip if self.sandboxes else "") or self.kept_ip

    def newest(self, name: str) -> RuntimeContainer | None:
        """The newest instance of the container of that name."""
        return next(iter(self.instances(name)), None)

    def instances(self, name: str) -> list[RuntimeContainer]:
        """Newest first. By restart count before creation time: the clock may be set back between two instances."""
        named = [container for container in self.containers if container.name == name]
        return sorted(named, key=lambda container: (container.restart_count, container.created_at), reverse=True)

    @property
    def active(self) -> tuple[RuntimeContainer, ...]:
        """Those of the newest sandbox while that is ready (ActiveContainerStatuses): what an older one held counts for
        nothing, its pod begins anew."""
        if not self.sandboxes or not self.sandboxes[0].ready:
            return ()
        return tuple(c for c in self.containers if c.sandbox_id in ("", self.sandboxes[0].id))

    def sandbox_usable(self, *, host_network: bool) -> bool:
        """No new sandbox is needed (PodSandboxChanged says no)."""
        if not self.sandboxes or sum(sandbox.ready for sandbox in self.sandboxes) > 1:
            return False
        newest = self.sandboxes[0]
        if not newest.ready or newest.host_network != host_network:
            return False
        return host_network or newest.ip is None or newest.ip != ""

    @property
    def running(self) -> tuple[RuntimeContainer, ...]:
        return tuple(c for c in self.containers if c.phase in (ContainerPhase.RUNNING, ContainerPhase.CREATED))


class EventKind(Enum):
    """ContainerEventType of the CRI."""

    CREATED = "created"
    STARTED = "started"
    STOPPED = "stopped"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class ContainerEvent:
    """What a runtime tells by itself of a container, or of a sandbox. Told when the runtime says so too if asked."""

    kind: EventKind
    uid: str
    container_id: str


class StartError(Exception):
    """A container could not be started. `reason` is the word shown in its Waiting state, str() the message."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class PodIsEnding(RuntimeUnavailable):
    """What was being made for a pod is given up."""


class ContainerRuntime(Protocol):
    """No call waits for a container to end: that is told, or listed. What is done raises RuntimeUnavailable where the
    runtime could not be asked."""

    def pod(self, uid: str) -> RuntimePod:
        """What is known of the pod; an empty RuntimePod if it is not known."""
        ...

    def list_pods(self, uid: str = "") -> Sequence[RuntimePod]:
        """Every pod that has a sandbox or a container, dead ones included; with `uid` at most that one."""
        ...

    def known_pods(self) -> frozenset[str]:
        """UIDs of every pod that has a sandbox."""
        ...

    def prepare_pod(self, pod: Pod) -> str:
        """Makes the pod's sandbox if there is none; returns the pod's address. Raises StartError."""
        ...

    def start_container(self, pod: Pod, container: Container, restart_count: int) -> str:
        """Starts a new instance and returns its id. Raises StartError."""
        ...

    def stop_container(self, container_id: str, grace_s: float) -> None:
        """Asks the instance to end, and ends it by force after `grace_s`. Repeatable: the nearest deadline counts."""
        ...

    def remove_container(self, container_id: str) -> None:
        """Forgets one instance, which has ended."""
        ...

    def stop_pod(self, uid: str) -> None:
        """Ends what a pod has besides containers, which have all ended: its network. Repeatable."""
        ...

    def remove_pod(self, uid: str) -> None:
        """Forgets a pod whose containers have all ended, with its sandbox and files. One whose containers run is asked
        to end, where containers outlive the agent: call it again."""
        ...

    def exec(self, container_id: str, command: Sequence[str], timeout_s: float) -> Completed:
        """Runs a command as the container would: with its environment. Raises RuntimeUnavailable, ExecTimeout."""
        ...
