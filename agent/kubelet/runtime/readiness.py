"""What a node says of its container runtime: is it ready, its network too, and since when does it not answer? Pure.

Mirrors updateRuntimeUp of pkg/kubelet/kubelet.go and pkg/kubelet/runtime.go, v1.36.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.cri.base import NETWORK_READY, RUNTIME_READY, RuntimeCondition, RuntimeStatus

NEVER_LOOKED = "container runtime status check may not have completed yet"
DOWN = "container runtime is down"
NETWORK_UNKNOWN = "network state unknown"
DOWN_AFTER_S = 30.0  # maxWaitForContainerRuntime


@dataclass(frozen=True, slots=True)
class Readiness:
    """`ready_at`: when it last said that it is ready (monotonic). `runtime`, `network`: what it said against that when
    it last answered."""

    ready_at: float | None = None
    runtime: str = ""
    network: str = NETWORK_UNKNOWN

    def runtime_errors(self, monotonic: float, others: Sequence[str] = ()) -> list[str]:
        """`others`: what else a kubelet names with it, as lists of pods that do not come."""
        late = self.ready_at is not None and monotonic - self.ready_at >= DOWN_AFTER_S
        silent = NEVER_LOOKED if self.ready_at is None else DOWN if late else ""
        return [*([silent] if silent else []), *others, *([self.runtime] if self.runtime else [])]

    def network_errors(self) -> list[str]:
        return [self.network] if self.network else []


def looked(before: Readiness, status: RuntimeStatus, monotonic: float) -> Readiness:
    """After an answer. While there is none all stays as it was."""
    runtime, network = status.condition(RUNTIME_READY), status.condition(NETWORK_READY)
    is_ready = runtime is not None and runtime.status
    return Readiness(
        ready_at=monotonic if is_ready else before.ready_at,
        runtime="" if is_ready else f"container runtime not ready: {_said(runtime)}",
        network="" if network and network.status else f"container runtime network not ready: {_said(network)}",
    )


def _said(condition: RuntimeCondition | None) -> str:
    """As Go prints it."""
    if condition is None:
        return "<nil>"
    return f"{condition.type}=false reason:{condition.reason} message:{condition.message}"
