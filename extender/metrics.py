"""Counters of the request path, and a collector that reads the rest when it is scraped.

No label holds a node, a pod or any text of a request: the number of series is fixed by the code.
"""

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

BUCKETS_S = (0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class RequestResult(StrEnum):
    """How a request ended."""

    ANSWERED = "answered"
    EXEMPT = "exempt"
    NOT_SYNCED = "not_synced"
    STALE = "stale"
    UNANSWERABLE = "unanswerable"
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    ENCODED = "encoded"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class CacheReading:
    """age_s: since the last word of the API server, infinite before the first. counters: watch events by kind."""

    synced: bool
    age_s: float
    counters: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a scrape reads: caches by name, number of nodes by verdict, number of kicks by result."""

    caches: Mapping[str, CacheReading]
    nodes: Mapping[str, int]
    kicks: Mapping[str, int]


class Metrics:
    """Counts of the verbs, by themselves; all else is read from `read` at each scrape. registry: what is served."""

    def __init__(self, read: Callable[[], Reading]) -> None:
        self.registry = CollectorRegistry()
        seconds = Histogram(
            "readygate_request_duration_seconds",
            "Time from the complete body to the complete answer.",
            ["verb"],
            buckets=BUCKETS_S,
            registry=self.registry,
        )
        requests = Counter(
            "readygate_requests_total", "Requests by verb and result.", ["verb", "result"], registry=self.registry
        )
        self._refused = Counter(
            "readygate_refused_nodes_total",
            "Nodes filtered out, counted once per request and node.",
            ["reason"],
            registry=self.registry,
        )
        self.observe_filter: Callable[[float], None] = seconds.labels("filter").observe
        self.count_filter: Mapping[RequestResult, Callable[[], None]] = {
            result: requests.labels("filter", result.value).inc for result in RequestResult
        }
        self.registry.register(_Scrape(read))

    def count_refused(self, reasons: Iterable[str]) -> None:
        for reason, count in Tally(reasons).items():
            self._refused.labels(reason).inc(count)


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
        return [synced, age, events, nodes, kicks]
