"""Counts of several processes are added up, and those of before are taken off."""

import json

import pytest

from tools.fleet.counting import Counts, Times
from tools.fleet.watching import Nodes, bound_s, served


def test_a_quantile_is_exact_to_five_percent() -> None:
    times = Times()
    for number in range(1, 101):
        times.add(number / 1000)
    assert times.quantile_s(0.5) == pytest.approx(0.050, rel=0.05)
    assert times.quantile_s(0.99) == pytest.approx(0.099, rel=0.05)
    assert Times().quantile_s(0.99) == 0.0


def test_counts_are_added_and_subtracted_through_json() -> None:
    first, second = Counts(), Counts()
    first.requests["PUT lease"] += 2
    first.lease.add(0.01)
    second.requests["PUT lease"] += 3
    second.failures["PUT lease: Conflict"] += 1
    second.lease.add(0.02)
    both = first.plus(Counts.of(json.loads(json.dumps(second.as_json()))))
    assert (both.requests["PUT lease"], both.failures.total(), both.lease.total()) == (5, 1, 2)
    later = both.since(first)
    assert (later.requests["PUT lease"], later.lease.total()) == (3, 1)
    assert later.lease.quantile_s(1.0) == pytest.approx(0.02, rel=0.05)


METRICS = """
apiserver_request_total{code="200",component="apiserver",dry_run="",resource="leases",scope="resource",verb="PUT"} 90
apiserver_request_total{code="409",component="apiserver",dry_run="",resource="leases",scope="resource",verb="PUT"} 10
apiserver_request_total{code="0",component="apiserver",dry_run="",resource="pods",scope="cluster",verb="WATCH"} 5
apiserver_request_duration_seconds_bucket{resource="leases",verb="PUT",le="0.005"} 50
apiserver_request_duration_seconds_bucket{resource="leases",verb="PUT",le="0.025"} 99
apiserver_request_duration_seconds_bucket{resource="leases",verb="PUT",le="+Inf"} 100
apiserver_request_duration_seconds_bucket{resource="nodes",verb="GET",le="0.005"} 7
"""


def test_what_an_api_server_served_is_read_from_its_metrics() -> None:
    found = served(METRICS)
    assert dict(found.requests) == {"PUT leases": 100}
    assert bound_s(found.renewals, 0.99) == 0.025
    assert bound_s({}, 0.99) == 0.0
    assert found.since(found).requests.total() == 0


def test_a_node_that_was_not_ready_for_a_moment_is_named() -> None:
    nodes = Nodes(2, 2, {"a": "2026-01-01T00:00:00Z", "b": "2026-01-01T00:05:00Z"})
    assert nodes.left_since("2026-01-01T00:01:00Z") == ["b"]
