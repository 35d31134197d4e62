"""Pure: what the process that answers kube-scheduler says of itself; for probes, Prometheus and people."""

import math

import msgspec

from extender.verbs.counts import Counts


class CacheStatus(msgspec.Struct, frozen=True, gc=False):
    """age_s: since the last word of the API server, infinite before the first. counters: watch events by kind.

    lag_s: how old the news were when they came, None where that is not known.
    """

    synced: bool
    age_s: float
    counters: dict[str, int]
    lag_s: float | None = None


class Outlet(msgspec.Struct, frozen=True, gc=False):
    """results: writes by result. waiting: what is to be written as soon as may be."""

    results: dict[str, int]
    waiting: int = 0


class Status(msgspec.Struct, frozen=True):
    """At one moment, at_monotonic. Seconds of the monotonic clock mean the same in every process of a machine.

    sync: name of a source.Sync. stopping: it answers no new calls. stuck: its threads that died or hang. caches: by
    name; required: those without whose word no verdict is given. counts: of the verbs. kicks: by result.
    outlets: what else is written, by name; leads: whether this replica writes what one is to, None if there is no such.
    credentials_issued, credentials_expire: when the extender's token was issued and when it ends, in seconds since the
    epoch; None if the extender has none that states it.
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
        """How old each cache is by now, if nothing has come since; infinite before its first word."""
        later_s = max(0.0, monotonic - self.at_monotonic)
        return {name: cache.age_s + later_s for name, cache in self.caches.items()}

    def stale(self, monotonic: float, limit_s: float) -> bool:
        """Whether a required cache is older than that, by what is known of it."""
        ages_s = self.ages_s(monotonic)
        return any(ages_s.get(name, math.inf) > limit_s for name in self.required)
