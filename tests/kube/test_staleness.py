"""How old news are when they come, by times that the objects state."""

import pytest

from kube.staleness import NEWS_MAX, OLD_AFTER_S, SAMPLES, Lag, News
from kube.times import format_time

WALL = 1_000_000.0
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"


def lag_of(written, *, monotonic=0.0):
    """written: (seconds before it came, monotonic)."""
    lag = Lag()
    for ago_s, at in written:
        lag.saw(format_time(WALL - ago_s), WALL, at)
    return lag.s(monotonic)


@pytest.mark.parametrize(
    ("written", "monotonic", "expected"),
    [
        pytest.param([], 0.0, None, id="nothing has come"),
        pytest.param([(3.0, 0.0)], 0.0, 3.0, id="one has"),
        pytest.param([(1.0, 0.0), (3600.0, 1.0), (2.0, 2.0)], 2.0, 2.0, id="a single clock that is wrong"),
        pytest.param([(-5.0, 0.0)], 0.0, 0.0, id="written by a clock ahead of ours"),
        pytest.param([(90.0, 0.0)] * SAMPLES + [(1.0, 1.0)] * SAMPLES, 1.0, 1.0, id="it has gone"),
        pytest.param([(90.0, 0.0), (1.0, OLD_AFTER_S)], OLD_AFTER_S + 1, 1.0, id="what came long ago does not count"),
        pytest.param([(90.0, 0.0)], OLD_AFTER_S + 1, None, id="nothing has come of late"),
    ],
)
def test_the_lag_is_the_median_of_what_came_of_late(written, monotonic, expected):
    assert expected == lag_of(written, monotonic=monotonic)


@pytest.mark.parametrize("stated", [None, "yesterday", "2026-13-01T00:00:00Z"])
def test_what_is_no_time_is_passed_over(stated):
    lag = Lag()
    lag.saw(stated, WALL, 0.0)
    assert lag.s(0.0) is None


def told(steps):
    news = News(lambda item: item[0], lambda item: item[1])
    return [news(step) for step in steps]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([("a", EARLY), ("a", LATE)], [None, LATE], id="a later time than before"),
        pytest.param([("a", EARLY), ("a", EARLY)], [None, None], id="a label has changed"),
        pytest.param([("a", LATE), ("a", EARLY)], [None, None], id="a condition is gone"),
        pytest.param([("a", EARLY), ("b", LATE)], [None, None], id="another object that is seen for the first time"),
        pytest.param(
            [("a", None), ("a", ""), ("a", EARLY), ("a", LATE)], [None, None, None, LATE], id="no time at first"
        ),
    ],
)
def test_news_are_what_has_a_later_time_than_it_had(steps, expected):
    assert expected == told(steps)


def test_objects_that_come_and_go_cost_no_more_than_a_bound():
    news = News(str, lambda _: EARLY)
    for number in range(NEWS_MAX + 10):
        news(number)
    assert len(news._known) <= NEWS_MAX
