"""Decides whether a pod has been active for too long. Pure; as pkg/kubelet/active_deadline.go, v1.36.3.

The time is the wall clock's, as upstream: the start is in the status, so it survives a restart of the agent.
"""

from agent.wire.model import Pod, PodStatus

REASON_DEADLINE = "DeadlineExceeded"
MESSAGE_DEADLINE = "Pod was active on the node longer than the specified deadline"


def active_left_s(pod: Pod, status: PodStatus, wall: float) -> float | None:
    """Seconds until it must end, 0 or less when it is over its deadline; None: it has none, or has not started.

    `status`: the newest that is known, else the API's.
    """
    if pod.active_deadline_s is None or status.start_time is None:
        return None
    return status.start_time + pod.active_deadline_s - wall


def past_active_deadline(pod: Pod, status: PodStatus, wall: float) -> bool:
    left_s = active_left_s(pod, status, wall)
    return left_s is not None and left_s <= 0
