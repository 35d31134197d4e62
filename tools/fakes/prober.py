"""A prober for tests that probes nothing."""

from collections.abc import Sequence
from dataclasses import replace

from agent.wire.model import ContainerRunning, ContainerStatus, ContainerTerminated, Pod, PodStatus


class FakeProber:
    """Every running container has started and is ready."""

    def __init__(self) -> None:
        self.calls = []

    def add_pod(self, _pod: Pod) -> bool:
        self.calls.append("add")
        return True

    def stop_liveness_and_startup(self, _pod: Pod) -> None:
        self.calls.append("stop liveness and startup")

    def remove_pod(self, _pod: Pod) -> None:
        self.calls.append("remove")

    def cleanup_pods(self, desired: frozenset[str]) -> None:
        self.desired = desired

    def update_pod_status(self, _pod: Pod, status: PodStatus) -> PodStatus:
        def fill(statuses: Sequence[ContainerStatus] | None) -> tuple[ContainerStatus, ...]:
            return tuple(
                replace(
                    s,
                    started=isinstance(s.state, ContainerRunning),
                    ready=isinstance(s.state, ContainerRunning)
                    or (isinstance(s.state, ContainerTerminated) and s.state.exit_code == 0),
                )
                for s in statuses or ()
            )

        return replace(
            status,
            container_statuses=fill(status.container_statuses),
            init_container_statuses=fill(status.init_container_statuses),
        )
