"""The metrics of the extender, made at each scrape.

No label holds a node, a pod or any text of a request: code and gates fix the number of series.
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from extender.feed.status import Status
from extender.policy.decision import HeldBy
from extender.policy.orders import Kind, Orders
from extender.policy.reasons import OPEN, REASONS
from extender.policy.snapshot import Snapshot
from extender.verbs.counts import BUCKETS_S, Counts
from extender.web.view import View


class Metrics:
    """All metrics. registry: what is served; all of it is read from the view at each scrape."""

    def __init__(self, view: View) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_Scrape(view))


def _verbs(counts: Counts) -> Iterable[Metric]:
    requests = CounterMetricFamily("readygate_requests", "Requests by verb and result.", labels=["verb", "result"])
    _add_results(requests, counts)
    refused = CounterMetricFamily(
        "readygate_refused_nodes", "Nodes filtered out, counted once per request and node.", labels=["reason"]
    )
    for reason, number in counts.refused.copy().items():
        refused.add_metric([reason], number)
    removed = CounterMetricFamily(
        "readygate_preemption_removed_nodes", "Nodes removed from a preemption's candidates.", labels=["reason"]
    )
    for reason, number in counts.removed.copy().items():
        removed.add_metric([reason], number)
    lost = CounterMetricFamily(
        "readygate_connections_lost",
        "Connections that the server closed because a resource was missing, by resource.",
        labels=["cause"],
    )
    seconds = HistogramMetricFamily(
        "readygate_request_duration_seconds",
        "Time from the complete body to the complete answer.",
        labels=["verb"],
    )
    limits = [*(str(limit_s) for limit_s in BUCKETS_S), "+Inf"]
    buckets = list(zip(limits, map(float, accumulate(counts.durations)), strict=True))
    seconds.add_metric(["filter"], buckets, counts.duration_s)
    return [requests, refused, removed, _by_label(lost, counts.lost), seconds]


def _add_results(family: CounterMetricFamily, counts: Counts) -> None:
    for verb, results in {"filter": counts.results, **counts.others}.items():
        for result, number in results.items():
            family.add_metric([verb, result], number)


def _caches(status: Status, monotonic: float) -> Iterable[Metric]:
    synced = GaugeMetricFamily("readygate_cache_synced", "1 once the cache was filled.", labels=["cache"])
    age = GaugeMetricFamily(
        "readygate_cache_age_seconds",
        "Seconds since the last answer of the API server; bookmarks come once a minute.",
        labels=["cache"],
    )
    events = CounterMetricFamily("readygate_cache_events", "Watch events by cache and kind.", labels=["cache", "event"])
    lag = GaugeMetricFamily(
        "readygate_cache_lag_seconds", "How old recent watch events were when they came.", labels=["cache"]
    )
    ages_s = status.ages_s(monotonic)
    for name, cache in status.caches.items():
        synced.add_metric([name], float(cache.synced))
        age.add_metric([name], ages_s[name])
        if cache.lag_s is not None:
            lag.add_metric([name], cache.lag_s)
        for event, count in cache.counters.items():
            events.add_metric([name, event], count)
    return [synced, age, lag, events]


def _gates(snapshot: Snapshot) -> Iterable[Metric]:
    nodes = GaugeMetricFamily(
        "readygate_gate_nodes",
        "Nodes by gate, by decision (in shadow: what it would be), and by what changed the verdict.",
        labels=["gate", "decision", "held_by"],
    )
    armed = GaugeMetricFamily("readygate_gate_armed", "1 if the gate refuses, 0 in shadow.", labels=["gate"])
    limit = GaugeMetricFamily("readygate_gate_cap_nodes", "How many nodes the gate may close.", labels=["gate"])
    storms = GaugeMetricFamily("readygate_gate_storms", "Storms that hold nodes open now.", labels=["gate"])
    for gate, state in snapshot.gates.items():
        tally = Counter((decision.reason == OPEN, decision.held_by) for decision in state.decisions.values())
        for is_open, held_by in {(True, HeldBy.NONE): 0, (False, HeldBy.NONE): 0} | tally:
            nodes.add_metric([gate, "open" if is_open else "closed", held_by], tally[is_open, held_by])
        armed.add_metric([gate], float(state.armed))
        if state.cap.limit is not None:
            limit.add_metric([gate], state.cap.limit)
        storms.add_metric([gate], len(state.storms))
    return [nodes, armed, limit, storms]


def _orders(orders: Orders) -> Iterable[Metric]:
    numbers = Counter(order.kind for order in orders.in_force(time.time()))
    in_force = GaugeMetricFamily("readygate_orders", "Orders of operators that are in force.", labels=["order"])
    yield _by_label(in_force, {kind: numbers[kind] for kind in Kind})
    faults = "Entries of the orders' ConfigMap that are ignored because they are invalid."
    yield GaugeMetricFamily("readygate_order_faults", faults, value=len(orders.faults))


def _outlets(status: Status) -> Iterable[Metric]:
    written = CounterMetricFamily(
        "readygate_outlet_writes",
        "Writes of the Lease, of the nodes' condition and of Events, by result.",
        labels=["outlet", "result"],
    )
    waiting = GaugeMetricFamily("readygate_outlet_waiting", "Writes that are due.", labels=["outlet"])
    for name, outlet in status.outlets.items():
        waiting.add_metric([name], outlet.waiting)
        for result, number in outlet.results.items():
            written.add_metric([name, result], number)
    if status.leads is not None:
        yield GaugeMetricFamily(
            "readygate_leader",
            "1 while this replica writes the nodes' condition and Events; of all replicas one does.",
            value=float(status.leads),
        )
    yield from (written, waiting)
    if status.credentials_issued is not None:
        yield GaugeMetricFamily(
            "readygate_credentials_issued_timestamp_seconds",
            "When the extender's token was issued: the last renewal. Seconds since the epoch.",
            value=status.credentials_issued,
        )
    if status.credentials_expire is not None:
        yield GaugeMetricFamily(
            "readygate_credentials_expiry_timestamp_seconds",
            "When the extender's token ends unless it is renewed. Seconds since the epoch.",
            value=status.credentials_expire,
        )


def _by_label(family: GaugeMetricFamily | CounterMetricFamily, numbers: Mapping[str, float]) -> Metric:
    for word, number in numbers.items():
        family.add_metric([word], number)
    return family


class _Scrape(Collector):
    def __init__(self, view: View) -> None:
        self._view = view

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        view = self._view
        yield GaugeMetricFamily(
            "readygate_feed_connected",
            "1 while the extender's own process is connected; if 0, the other series are its last values.",
            value=float(view.connected),
        )
        tally = Counter(view.board.snapshot.reasons.values())
        yield _by_label(
            GaugeMetricFamily("readygate_nodes", "Nodes by verdict: open, or why closed.", labels=["verdict"]),
            {"open": tally.get(OPEN, 0), **{reason: tally.get(reason, 0) for reason in REASONS}},
        )
        yield from _gates(view.board.snapshot)
        yield from _orders(view.orders)
        shown = "Requests for a verb that the status API answered, by verb and result."
        asked = CounterMetricFamily("readygate_status_api_requests", shown, labels=["verb", "result"])
        _add_results(asked, view.counts)
        yield asked
        status = view.status()
        if status is None:
            return
        yield from _verbs(status.counts)
        yield from _caches(status, view.monotonic())
        yield from _outlets(status)
        kicks = CounterMetricFamily("readygate_kicks", "Node writes after a release, by result.", labels=["result"])
        yield _by_label(kicks, status.kicks)
