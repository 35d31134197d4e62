"""The protocol of a container runtime for mode `kubelet`, and the error of a start."""

from collections.abc import Sequence
from typing import Protocol

from agent.processes.command import Completed
from agent.wire.containers import RuntimePod
from agent.wire.model import Container, Pod


class StartError(Exception):
    """A container could not be started. `reason` is the word shown in its Waiting state, str() the message."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


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
