"""The page for Prometheus."""

from agent.report.metrics import Family, metrics_page
from agent.wire.histogram import Histogram


def test_a_histogram_counts_by_upper_bounds_each_with_those_below() -> None:
    took = Histogram((0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 7.0):
        took.observe(seconds)
    page = metrics_page([Family("x_seconds", "histogram", "Help.", histograms=[({"a": 'q"'}, took)])])
    assert [
        "# HELP x_seconds Help.",
        "# TYPE x_seconds histogram",
        'x_seconds_bucket{a="q\\"",le="0.1"} 2',
        'x_seconds_bucket{a="q\\"",le="1"} 3',
        'x_seconds_bucket{a="q\\"",le="+Inf"} 4',
        'x_seconds_sum{a="q\\""} 7.65',
        'x_seconds_count{a="q\\""} 4',
    ] == page.body.splitlines()


def test_a_large_counter_keeps_its_last_digit() -> None:
    page = metrics_page([Family("x_total", "counter", "Help.", [({}, 1_234_567.0), ({"a": "b"}, 0.1)])])
    assert ["x_total 1234567", 'x_total{a="b"} 0.1'] == page.body.splitlines()[2:]
