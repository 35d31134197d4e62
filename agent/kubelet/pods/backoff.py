"""How long a pod waits for its next sync, and a container that keeps ending for its next start. Pure.

Pods: completeWork of pkg/kubelet/pod_workers.go, v1.36.3. Its queue is no rate limiter: each wait is one of three
periods or what is left of a container's back-off, longer by up to half of itself, and does not grow with the errors.

Containers: client-go util/flowcontrol Backoff as kuberuntime uses it: the first restart is at once, then 10 s doubling
to the limit, counted from the end of the last instance; a run of more than 10 minutes forgets it all. The limit is the
kubelet's crashLoopBackOff.maxContainerRestartPeriod: one below 10 s is the first wait too (kubelet.go,
newCrashLoopBackOff). Time is an argument.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

RESYNC_S = 60.0  # kubelet's syncFrequency
RETRY_S = 10.0  # backOffPeriod: after a sync with an error
NETWORK_RETRY_S = 1.0  # backOffOnTransientErrorPeriod: the runtime's network is not ready
JITTER = 0.5  # keeps pods that fail together apart
INITIAL_S = 10.0
FORGET_AFTER_S = 600.0


def jittered_s(period_s: float, random: Callable[[], float]) -> float:
    """As wait.Jitter of apimachinery. `random`: 0 to 1."""
    return period_s * (1 + JITTER * random())


def retry_s(backoffs_s: Sequence[float], random: Callable[[], float]) -> float:
    """After a sync with an error. `backoffs_s`: what is left of the back-offs of the pod's containers; the shortest
    counts, whatever else failed."""
    return jittered_s(min(max(min(backoffs_s, default=RETRY_S), 0.0), RESYNC_S), random)


@dataclass(slots=True)
class _Entry:
    delay_s: float
    updated_at: float


class RestartBackoff:
    """Per key (pod uid, container name). Not thread-safe: each pod has its own."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], _Entry] = {}

    def remaining_s(self, key: tuple[str, str], ended_at: float, monotonic: float) -> float:
        """Seconds until the container that ended at `ended_at` may start again; 0 when it may now."""
        entry = self._entries.get(key)
        if entry is None or ended_at - entry.updated_at > FORGET_AFTER_S:
            return 0.0
        return max(0.0, ended_at + entry.delay_s - monotonic)

    def delay_s(self, key: tuple[str, str]) -> float:
        """The present delay, for the message of CrashLoopBackOff."""
        entry = self._entries.get(key)
        return entry.delay_s if entry is not None else 0.0

    def restarted(self, key: tuple[str, str], ended_at: float, monotonic: float, *, limit_s: float) -> None:
        """The container is started again after having ended at `ended_at`: the next wait is longer."""
        entry = self._entries.get(key)
        if entry is None or ended_at - entry.updated_at > FORGET_AFTER_S:
            self._entries[key] = _Entry(min(INITIAL_S, limit_s), monotonic)
        else:
            entry.delay_s = min(entry.delay_s * 2, limit_s)
            entry.updated_at = monotonic
