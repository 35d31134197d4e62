"""Pure: what the process that answers kube-scheduler reports of itself, for the status API, probes and Prometheus."""

import math

import msgspec

from extender.verbs.counts import Counts


class CacheStatus(msgspec.Struct, frozen=True, gc=False):
    """The state of a cache. age_s: since the last answer of the API server, infinite before the first. counters: watch
    events by kind. lag_s: how old the last event was when it came, None if unknown."""

    synced: bool
    age_s: float
    counters: dict[str, int]
    lag_s: float | None = None


class Outlet(msgspec.Struct, frozen=True, gc=False):
    """Counts of an outlet. results: writes by result. waiting: writes that are due."""

    results: dict[str, int]
    waiting: int = 0


class Status(msgspec.Struct, frozen=True):
    """The state of the process at one moment, at_monotonic. The monotonic clock is the same in all processes of a
    machine.

    sync: name of a source.Sync. stopping: it answers no new calls. stuck: threads that died or hang. caches: by name;
    required: those without whose answers no verdict is given. counts: of the verbs. kicks: by result. outlets: other
    writes, by name; leads: whether this replica holds the Lease of the writers, None without writers.
    credentials_issued, credentials_expire: of the extender's token, in seconds since the epoch; None if unknown.
    """

    at_monotonic: float
    sync: str
    stopping: bool
    stuck: list[str]
    caches: dict[str, CacheStatus]
    required: list[str]
    counts: Counts
    kicks: dict[str, int]
    outlets: dict[str, Outlet] = {}
    leads: bool | None = None
    credentials_issued: float | None = None
    credentials_expire: float | None = None

    def ages_s(self, monotonic: float) -> dict[str, float]:
        """Returns the age of each cache now, if nothing has come since; infinite before its first answer."""
        later_s = max(0.0, monotonic - self.at_monotonic)
        return {name: cache.age_s + later_s for name, cache in self.caches.items()}

    def stale(self, monotonic: float, limit_s: float) -> bool:
        """Returns whether a required cache is known to be older than the limit."""
        ages_s = self.ages_s(monotonic)
        return any(ages_s.get(name, math.inf) > limit_s for name in self.required)
