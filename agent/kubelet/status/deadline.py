"""Has a pod been active for longer than it may? Pure; as pkg/kubelet/active_deadline.go, v1.36.3.

The time is that of the wall clock, as upstream: the start stands in the status, so that it outlives a restart of ours.
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
