"""May one more pod run here? Pure. As canAdmitPod and rejectPod, and of pkg/kubelet/lifecycle the number of pods and
what a pod needs the node to declare."""

from collections.abc import Collection
from dataclasses import dataclass

from agent.model import Pod, PodPhase, PodStatus
from agent.semantics import RESTART_ALL
from agent.status.restarts import all_containers_could_restart

USER_NAMESPACES = "UserNamespacesHostNetworkSupport"


@dataclass(frozen=True, slots=True)
class Refusal:
    reason: str
    text: str

    def status(self, pod: Pod) -> PodStatus:
        message = f"Pod was rejected: {self.text}"
        return PodStatus(phase=PodPhase.FAILED, reason=self.reason, message=message, qos_class=pod.status.qos_class)


def refusal(pod: Pod, used: int, capacity: int, features: Collection[str] | None) -> Refusal | None:
    """None: it is taken. `features`: those that the node declares; None: nobody asks for them."""
    if used >= capacity:
        text = f"Node didn't have enough resource: pods, requested: 1, used: {used}, capacity: {capacity}"
        return Refusal("OutOfpods", text)
    missing = [] if features is None else [name for name in needed_features(pod) if name not in features]
    if missing:
        text = f"Pod requires node features that are not available: {', '.join(missing)}"
        return Refusal("PodFeatureUnsupported", text)
    return None


def needed_features(pod: Pod) -> list[str]:
    """By their names: InferForPodScheduling of component-helpers' nodedeclaredfeatures."""
    maps_users = pod.host_network and not pod.host_users
    return [*([RESTART_ALL] if all_containers_could_restart(pod) else []), *([USER_NAMESPACES] if maps_users else [])]
