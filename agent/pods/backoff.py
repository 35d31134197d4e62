"""How long a container that keeps ending waits before it is started again. Pure: time is an argument.

Mirrors client-go util/flowcontrol Backoff as kuberuntime uses it: the first restart is at once, then 10 s doubling to
the limit, counted from the end of the last instance; a run of more than 10 minutes forgets it all. The limit is the
kubelet's crashLoopBackOff.maxContainerRestartPeriod: one below 10 s is the first wait too (kubelet.go,
newCrashLoopBackOff).
"""

from dataclasses import dataclass

INITIAL_S = 10.0
FORGET_AFTER_S = 600.0


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
