"""What Prometheus is told, made when it asks.

No label holds a node, a pod or any text of a request: the number of series is fixed by the code.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from extender.counts import BUCKETS_S, Counts


@dataclass(frozen=True, slots=True)
class CacheReading:
    """age_s: since the last word of the API server, infinite before the first. counters: watch events by kind."""

    synced: bool
    age_s: float
    counters: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a scrape reads: counts of the verbs, caches by name, number of nodes by verdict, of kicks by result."""

    counts: Counts
    caches: Mapping[str, CacheReading]
    nodes: Mapping[str, int]
    kicks: Mapping[str, int]


class Metrics:
    """registry: what is served; all of it is read from `read` at each scrape."""

    def __init__(self, read: Callable[[], Reading]) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_Scrape(read))


def _verbs(counts: Counts) -> Iterable[Metric]:
    requests = CounterMetricFamily("readygate_requests", "Requests by verb and result.", labels=["verb", "result"])
    for result, number in counts.results.items():
        requests.add_metric(["filter", result], number)
    refused = CounterMetricFamily(
        "readygate_refused_nodes", "Nodes filtered out, counted once per request and node.", labels=["reason"]
    )
    for reason, number in counts.refused.copy().items():
        refused.add_metric([reason], number)
    seconds = HistogramMetricFamily(
        "readygate_request_duration_seconds",
        "Time from the complete body to the complete answer.",
        labels=["verb"],
    )
    limits = [*(str(limit_s) for limit_s in BUCKETS_S), "+Inf"]
    buckets = list(zip(limits, map(float, accumulate(counts.durations)), strict=True))
    seconds.add_metric(["filter"], buckets, counts.duration_s)
    return [requests, refused, seconds]


class _Scrape(Collector):
    def __init__(self, read: Callable[[], Reading]) -> None:
        self._read = read

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        reading = self._read()
        synced = GaugeMetricFamily("readygate_cache_synced", "1 once the cache was filled.", labels=["cache"])
        age = GaugeMetricFamily(
            "readygate_cache_age_seconds",
            "Since the last word of the API server; bookmarks come once a minute.",
            labels=["cache"],
        )
        events = CounterMetricFamily(
            "readygate_cache_events", "Watch events by cache and kind.", labels=["cache", "event"]
        )
        for name, cache in reading.caches.items():
            synced.add_metric([name], float(cache.synced))
            age.add_metric([name], cache.age_s)
            for event, count in cache.counters.items():
                events.add_metric([name, event], count)
        nodes = GaugeMetricFamily("readygate_nodes", "Nodes by verdict: open, or why closed.", labels=["verdict"])
        for word, count in reading.nodes.items():
            nodes.add_metric([word], count)
        kicks = CounterMetricFamily("readygate_kicks", "Node writes after a release, by result.", labels=["result"])
        for result, count in reading.kicks.items():
            kicks.add_metric([result], count)
        return [*_verbs(reading.counts), synced, age, events, nodes, kicks]
