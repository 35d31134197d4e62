"""Lists all pods of the runtime, tells what has changed since the last list, and keeps the cache true. Pure.

Mirrors pkg/kubelet/pleg/generic.go, v1.36.3; a container that was made, ended and removed between two lists is missed.
The order of pods is that of their uids, upstream's is by chance.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from agent.kubelet.pleg.cache import Cache
from agent.kubelet.pleg.counts import Running, running_of
from agent.kubelet.pleg.events import EventType, PodEvent, pod_events
from agent.processes.command import go_duration
from agent.wire.containers import RuntimePod


class Listing(Protocol):
    """The part of agent.kubelet.runtime.base.ContainerRuntime that is used. Both may raise anything."""

    def list_pods(self, uid: str = "") -> Sequence[RuntimePod]: ...
    def pod(self, uid: str) -> RuntimePod: ...


@dataclass(frozen=True, slots=True)
class Pace:
    """`period_s`: from the end of one list to the next. `threshold_s`: a last list older than that is unhealthy.
    `retry_s`: as `period_s`, after a list that failed or in which a pod could not be inspected; None: the same."""

    period_s: float
    threshold_s: float
    retry_s: float | None = None


GENERIC = Pace(1.0, 180.0)
EVENTED = Pace(300.0, 600.0)
"""While the runtime tells by itself what happens."""


@dataclass(frozen=True, slots=True)
class Listed:
    """`error`: there was no list. `failed`: the pods that could not be inspected, and why."""

    error: Exception | None = None
    failed: tuple[tuple[str, Exception], ...] = ()

    def pause_s(self, pace: Pace) -> float:
        """Until the next list."""
        if pace.retry_s is None or (self.error is None and not self.failed):
            return pace.period_s
        return pace.retry_s


@dataclass(slots=True)
class _Record:
    """Of a pod: as it was told of last, and as the last list has it."""

    old: RuntimePod | None = None
    current: RuntimePod | None = None


class Relist:
    """One thread lists; `reinspect` and `unhealthy` are for any. `deliver` takes an event unless it has no room for it
    (False): then the event is lost, and counted in `discarded`. `syncs_reinspected`: PodSync is told."""

    def __init__(
        self,
        runtime: Listing,
        cache: Cache,
        deliver: Callable[[PodEvent], bool],
        *,
        pace: Pace = GENERIC,
        syncs_reinspected: bool = True,
    ) -> None:
        self.pace = pace
        self._syncs_reinspected = syncs_reinspected
        self.discarded = 0
        self.listed_at: float | None = None  # monotonic: the beginning of the last list that there was
        self.running = Running()  # by that list
        self._runtime = runtime
        self._cache = cache
        self._deliver = deliver
        self._records: dict[str, _Record] = {}
        self._marked: set[str] = set()

    def relist(self, monotonic: float) -> Listed:
        """All pods. Without a list nothing changes, and the last one grows old."""
        try:
            listed = self._runtime.list_pods()
        except Exception as e:  # noqa: BLE001 - whatever a runtime breaks with is no list
            return Listed(error=e)
        self.listed_at, self.running = monotonic, running_of(listed)
        for record in self._records.values():
            record.current = None
        for pod in listed:
            self._records.setdefault(pod.uid, _Record()).current = pod
        self._forget_failed(monotonic)
        failed = [(uid, self._reconcile(uid, monotonic)) for uid in sorted(self._records)]
        self._cache.update_time(monotonic)  # last: all entries are as new as that
        return Listed(failed=tuple((uid, error) for uid, error in failed if error is not None))

    def relist_pod(self, uid: str, monotonic: float) -> Listed:
        """One pod. What cannot be listed, or is not there, is left to the next list of all."""
        try:
            listed = self._runtime.list_pods(uid)
        except Exception as e:  # noqa: BLE001 - as above
            return Listed(error=e)
        pod = next((pod for pod in listed if pod.uid == uid), None)
        if pod is None:
            self._forget_failed(monotonic, uid)
            return Listed()
        self._records.setdefault(uid, _Record()).current = pod
        error = self._reconcile(uid, monotonic)
        self._cache.observe(uid, monotonic)
        return Listed(failed=((uid, error),) if error is not None else ())

    def reinspect(self, uid: str) -> None:
        """The next list inspects this pod, and tells of it, even if nothing has changed."""
        self._marked.add(uid)

    def unhealthy(self, monotonic: float) -> str:
        """In the kubelet's words; "" while it is healthy."""
        if self.listed_at is None:
            return "pleg has yet to be successful"
        elapsed_s = monotonic - self.listed_at
        if elapsed_s <= self.pace.threshold_s:
            return ""
        ago, threshold = go_duration(elapsed_s), go_duration(self.pace.threshold_s)
        return f"pleg was last seen active {ago} ago; threshold is {threshold}"

    def _reconcile(self, uid: str, monotonic: float) -> Exception | None:
        """Inspects a pod that has changed, or is marked, and tells. What fails is found again by the next list."""
        record = self._records[uid]
        events = pod_events(uid, record.old, record.current)
        marked = self._unmark(uid)
        if not events and not marked:
            return None
        try:
            if not self._update_cache(uid, record.current, monotonic):
                return None
        except Exception as e:  # noqa: BLE001 - the runtime's answer, which is kept too
            self._cache.set(RuntimePod(uid), e, monotonic)
            self._marked.add(uid)
            return e
        if record.current is None:
            del self._records[uid]
        record.old, record.current = record.current, None
        if not events and self._syncs_reinspected:
            events = [PodEvent(uid, EventType.POD_SYNC)]
        for event in events:
            if event.type is not EventType.CHANGED and not self._deliver(event):
                self.discarded += 1
        return None

    def _forget_failed(self, monotonic: float, one: str = "") -> None:
        """What could not be inspected after the sync loop had done something, and of which the runtime has nothing: no
        list would ever inspect it again, and the pod would not be begun. A kubelet keeps errors of listed pods only."""
        for uid in self._cache.failed(monotonic) - self._records.keys():
            if one in ("", uid):
                self._cache.delete(uid)
                self._unmark(uid)
                self._deliver(PodEvent(uid, EventType.POD_SYNC))

    def _unmark(self, uid: str) -> bool:
        try:
            self._marked.remove(uid)
        except KeyError:
            return False
        return True

    def _update_cache(self, uid: str, pod: RuntimePod | None, monotonic: float) -> bool:
        """Raises what the runtime raises."""
        if pod is None:
            self._cache.delete(uid)
            return True
        return self._cache.set(with_kept_ip(self._runtime.pod(uid), self._cache), None, monotonic)


def with_kept_ip(pod: RuntimePod, cache: Cache) -> RuntimePod:
    """A pod that has lost its network keeps the address it had: the API shows that of a finished pod."""
    before = cache.get(pod.uid)
    if pod.ip or before.error is not None or not before.pod.ip or any(sandbox.ready for sandbox in pod.sandboxes):
        return pod
    return replace(pod, kept_ip=before.pod.ip)
