"""Counts of calls, and what is said of the last ten minutes of them."""

import pytest

from extender.verbs.counts import LATELY_S, Counts, Lately, Pace, RequestResult


def counted(calls: int, slow: int = 0, result: RequestResult = RequestResult.ANSWERED) -> Counts:
    counts = Counts()
    counts.results[result] = calls
    counts.durations[3], counts.durations[-1] = calls - slow, slow
    return counts


@pytest.mark.parametrize(
    ("result", "expected"),
    [(result, 0 if result in (RequestResult.ANSWERED, RequestResult.EXEMPT) else 5) for result in RequestResult],
)
def test_which_calls_got_no_verdict(result: RequestResult, expected: int) -> None:
    assert (5, expected) == (counted(5, result=result).calls, counted(5, result=result).unanswered)


@pytest.mark.parametrize(
    ("noted", "newest", "at", "expected"),
    [
        pytest.param([], 9, 20.0, Pace(), id="nobody has looked yet"),
        pytest.param([(0, 10.0)], 0, 20.0, Pace(), id="no calls"),
        pytest.param([(7, 10.0)], 7, 20.0, Pace(), id="those before the first look were at no time that is known"),
        pytest.param([(0, 10.0), (5, 20.0)], 10, 30.0, Pace(0.5, 0.002, 10.0), id="calls"),
        pytest.param([(9, 10.0), (0, 20.0), (5, 30.0)], 5, 30.0, Pace(0.5, 0.002, 0.0), id="of one that began anew"),
        pytest.param(
            [(0, 0.0), (600, 10.0), (600, 20.0 + LATELY_S)], 600, 20.0 + LATELY_S, Pace(0.0, None, 10.0 + LATELY_S),
            id="longer than ten minutes ago",
        ),
    ],
)  # fmt: skip
def test_the_calls_of_late(noted: list[tuple[int, float]], newest: int, at: float, expected: Pace) -> None:
    lately = Lately()
    for calls, monotonic in noted:
        lately.note(counted(calls), monotonic)
    assert expected == lately.over(counted(newest), at)


@pytest.mark.parametrize(
    ("slow", "expected"),
    [
        pytest.param(1, 0.002, id="one of a hundred may be slower"),
        pytest.param(2, float("inf"), id="two are beyond all bounds"),
    ],
)
def test_the_bound_that_99_of_100_keep(slow: int, expected: float) -> None:
    lately = Lately()
    lately.note(Counts(), 0.0)
    assert expected == lately.over(counted(100, slow), 10.0).p99_s


def test_what_is_kept_does_not_grow() -> None:
    lately = Lately()
    for second in range(5000):
        lately.note(counted(second), float(second))
    assert (61, 1.0) == (len(lately._looks), round(lately.over(counted(5000), 5000.0).per_s, 2))
