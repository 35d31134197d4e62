"""Is there room for one more pod? Pure. As canAdmitPod and the predicates of pkg/kubelet/lifecycle."""

from agent.model import Pod, PodPhase, PodStatus


def refused(pod: Pod, *, used: int, capacity: int) -> PodStatus | None:
    """The status of a pod that is not taken; None: it is."""
    if used < capacity:
        return None
    message = (
        f"Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: {used}, capacity: {capacity}"
    )
    return PodStatus(phase=PodPhase.FAILED, reason="OutOfpods", message=message, qos_class=pod.status.qos_class)
