"""What the runtime said last of each pod, and when: as new as the last whole list, or newer.

Mirrors pkg/kubelet/container/cache.go, v1.36.3. Nobody waits in it: who wants something newer than there is gets a call
when it has come, in the thread that brings it.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from agent.wire.containers import RuntimePod


@dataclass(frozen=True, slots=True)
class Entry:
    """`error`: the pod could not be inspected, so nothing is known of it. `modified`, `observed`: monotonic time of
    what is told here, and of the last look that found it unchanged."""

    pod: RuntimePod
    error: Exception | None = None
    modified: float = 0.0
    observed: float = 0.0


Then = Callable[[Entry], None]


class Cache:
    """Any thread may use it. `newest_wins`: what is older than the entry does not replace it; for where several write,
    as with events (feature gate EventedPLEG). Else the last one wins."""

    def __init__(self, *, newest_wins: bool = False) -> None:
        self._newest_wins = newest_wins
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._listed_at: float | None = None
        self._waiting: dict[str, list[tuple[float, Then]]] = {}

    def get(self, uid: str) -> Entry:
        """An empty pod where the runtime knows of none."""
        with self._lock:
            return self._get(uid)

    def uids(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._entries)

    def failed(self, until: float) -> frozenset[str]:
        """Pods that could not be inspected, and were not looked at since `until` (monotonic)."""
        with self._lock:
            entries = self._entries.items()
            return frozenset(uid for uid, e in entries if e.error is not None and e.modified <= until)

    def newer_than(self, uid: str, monotonic: float, then: Then) -> Entry | None:
        """The entry if it is newer than that; else None, and `then` is called once with one that is not older."""
        with self._lock:
            entry = self._entries.get(uid)
            times = (self._listed_at, *((entry.modified, entry.observed) if entry is not None else ()))
            if any(time is not None and time > monotonic for time in times):
                return self._get(uid)
            self._waiting.setdefault(uid, []).append((monotonic, then))
            return None

    def set(self, pod: RuntimePod, error: Exception | None, monotonic: float) -> bool:
        """Has it become the entry?"""
        with self._lock:
            entry = self._entries.get(pod.uid)
            if self._newest_wins and entry is not None and entry.modified > monotonic:
                return False
            self._entries[pod.uid] = Entry(pod, error, monotonic, monotonic)
            calls = self._due(pod.uid, monotonic)
        _call(calls)
        return True

    def observe(self, uid: str, monotonic: float) -> None:
        """The pod was looked at, and its entry is true."""
        with self._lock:
            entry = self._entries.get(uid)
            if entry is not None:
                self._entries[uid] = replace(entry, observed=monotonic)
            calls = self._due(uid, monotonic)
        _call(calls)

    def delete(self, uid: str) -> None:
        with self._lock:
            self._entries.pop(uid, None)

    def update_time(self, monotonic: float) -> None:
        """All pods were looked at, and every entry is true."""
        with self._lock:
            self._listed_at = monotonic
            calls = [call for uid in list(self._waiting) for call in self._due(uid, monotonic)]
        _call(calls)

    def _get(self, uid: str) -> Entry:
        return self._entries.get(uid) or Entry(RuntimePod(uid))

    def _due(self, uid: str, monotonic: float) -> list[tuple[Then, Entry]]:
        """Who has waited for this, with what they get. A time that is not before theirs is enough, as upstream."""
        waiting = self._waiting.pop(uid, [])
        left = [(since, then) for since, then in waiting if monotonic < since]
        if left:
            self._waiting[uid] = left
        return [(then, self._get(uid)) for since, then in waiting if monotonic >= since]


def _call(calls: list[tuple[Then, Entry]]) -> None:
    for then, entry in calls:
        then(entry)
