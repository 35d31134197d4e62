"""When a check runs: own times, news, what confirms a failure, and how soon one that has failed looks again."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from agent.checks.schedule import Turns, Why

HOUR_S = 3600.0


@dataclass
class Played:
    """A check of `failures` as its threshold, on a clock of its own; a run takes no time."""

    turns: Turns
    failures: int
    bad: Sequence[tuple[float, float]]  # from when to when it fails
    ran: list[tuple[float, Why]] = field(default_factory=list)
    closed: list[tuple[float, bool]] = field(default_factory=list)

    def until(self, end_s: float, news: Sequence[float]) -> "Played":
        failed_runs, closed, at, waiting = 0, False, 0.0, list(news)
        while at < end_s:
            if waiting and waiting[0] <= at:
                self.turns.tell(waiting.pop(0))
            elif (why := self.turns.due(at)) is not None:
                fails = any(begin <= at < end for begin, end in self.bad)
                failed_runs = failed_runs + 1 if fails else 0
                before, closed = closed, failed_runs >= self.failures
                self.turns.ended(at, fails=fails, failed=closed)
                self.ran.append((at, why))
                self.closed += [(at, closed)] if closed is not before else []
            else:
                at = min(at + max(0.001, self.turns.wait_s(at)), *waiting[:1], end_s)
        return self


def play(
    *, news: Sequence[float], bad: Sequence[tuple[float, float]], end_s: float = 20.0, period_s: float = HOUR_S,
    failures: int = 2, doubts: bool = True,
    random: Callable[[], float] = lambda: 0.0,
) -> Played:  # fmt: skip
    return Played(Turns(period_s, 1.0, doubts, random), failures, bad).until(end_s, news)


TOLD = [
    pytest.param([5.0], [(5.0, 99.0)], 2, [(5.6, True)], id="what is broken at once closes in 0.6 s"),
    pytest.param([5.0], [(5.0, 99.0)], 3, [(6.0, True)], id="with three failures in a second"),
    pytest.param([5.0], [(5.0, 99.0)], 1, [(5.2, True)], id="with one as soon as it has settled"),
    pytest.param([5.0, 5.1], [(5.0, 5.1)], 2, [], id="replaced in a tenth of a second: nobody sees it"),
    pytest.param([5.0, 5.5], [(5.0, 5.5)], 2, [], id="replaced in half a second: one failure"),
    pytest.param(
        [5.0, 5.3, 5.6, 5.9, 6.2, 6.5], [(5.0, 6.5)], 2, [], id="replaced file by file, in a second and a half"
    ),
    pytest.param(
        [5.0, 5.3, 5.6, 5.9, 6.2, 6.5], [(5.0, 99.0)], 2, [(7.1, True)], id="broken so: when nobody touches it any more"
    ),
    pytest.param([5.0], [(5.0, 5.7)], 2, [(5.6, True), (6.7, False)], id="half there for longer: a second later open"),
    pytest.param([], [(5.0, 99.0)], 2, [], id="what nobody tells of has the check's own times"),
]


TICKS = [
    pytest.param([9.5], [(9.5, 99.0)], [(10.0, True)], id="its own time is what confirms"),
    pytest.param([9.9], [(9.9, 99.0)], [(10.5, True)], id="its own time comes before the news have settled"),
    pytest.param([10.1], [(9.9, 99.0)], [(10.7, True)], id="its own time comes before the news"),
    pytest.param([9.9], [(9.9, 10.4)], [], id="and what was half there is whole again"),
    pytest.param([9.9, 10.2], [(9.9, 10.7)], [], id="somebody is still at it"),
    pytest.param([9.0], [(9.9, 99.0)], [(20.0, True)], id="news that were looked at before do not count"),
]


@pytest.mark.parametrize(("news", "bad", "expected"), TICKS)
def test_a_failure_is_confirmed_soon_whichever_run_finds_it_where_there_were_news(
    news: list[float], bad: list[tuple[float, float]], expected: list[tuple[float, bool]]
) -> None:
    found = play(news=news, bad=bad, period_s=10.0, end_s=25.0)
    assert expected == [(pytest.approx(at, abs=0.01), closed) for at, closed in found.closed]


@pytest.mark.parametrize(("news", "bad", "failures", "expected"), TOLD)
def test_what_is_told_is_looked_at_twice_before_it_closes(
    news: list[float], bad: list[tuple[float, float]], failures: int, expected: list[tuple[float, bool]]
) -> None:
    found = play(news=news, bad=bad, failures=failures)
    assert expected == [(pytest.approx(at, abs=0.01), closed) for at, closed in found.closed]


def test_its_own_time_between_the_looks_that_confirm_changes_nothing() -> None:
    """News at 9.7, the first look at 9.9, its own time at 10, and the third failure closes."""
    found = play(news=[9.7], bad=[(9.7, 99.0)], period_s=10.0, failures=3)
    assert [(pytest.approx(10.4), True)] == found.closed


def test_who_goes_on_replacing_files_closes_no_node_and_costs_few_runs() -> None:
    """One each tenth of a second for a minute, all of it half there; its own times count on, and are an hour apart."""
    found = play(news=[number / 10 for number in range(50, 650)], bad=[(5.0, 65.0)], end_s=70.0)
    assert ([], [Why.PERIOD, Why.NEWS, Why.FAILURE]) == (found.closed, [why for _, why in found.ran])


def test_where_nothing_is_half_done_news_count_each_time_and_are_confirmed_too() -> None:
    found = play(news=[5.0], bad=[(5.0, 99.0)], end_s=6.0, doubts=False)
    assert [(0.0, Why.PERIOD), (5.0, Why.NEWS), (5.4, Why.FAILURE)] == [(round(at, 2), why) for at, why in found.ran]


def test_a_failure_that_its_own_time_has_found_is_confirmed_by_the_next_one() -> None:
    found = play(news=[], bad=[(15.0, 99.0)], period_s=10.0, end_s=31.0)
    assert [(30.0, True)] == found.closed


AGAIN = [
    pytest.param(10.0, 0.0, 100.0, 1.1, id="soon"),
    pytest.param(10.0, 1.0, 100.0, 1.32, id="a part of it is chance"),
    pytest.param(3600.0, 1.0, 100.0, 1.32, id="whatever its period"),
    pytest.param(10.0, 0.0, 300.0, 3.0, id="after five minutes more seldom"),
    pytest.param(10.0, 0.0, 5000.0, 5.0, id="then twice in its period"),
    pytest.param(2.0, 1.0, 100.0, 1.0, id="one of a short period as often as that"),
]


@pytest.mark.parametrize(("period_s", "drawn", "failed_for_s", "expected"), AGAIN)
def test_how_soon_one_that_has_failed_runs_again(
    period_s: float, drawn: float, failed_for_s: float, expected: float
) -> None:
    turns = Turns(period_s, 1.0, doubts=False, random=lambda: drawn)
    assert turns.due(0.0) is Why.PERIOD
    turns.ended(0.0, fails=True, failed=True)
    turns._ticker.reset(failed_for_s)
    turns.ended(failed_for_s, fails=True, failed=True)
    assert expected == pytest.approx(turns.wait_s(failed_for_s))


def test_five_thousand_nodes_with_one_cause_do_not_ask_together() -> None:
    """All begin to fail at the same moment; a minute later they have spread over a second."""
    chance = random.Random(7)
    last = [
        play(news=[0.1], bad=[(0.0, 99.0)], end_s=62.0, failures=1, random=chance.random).ran[-1][0] for _ in range(500)
    ]
    tenths = Counter(int(10 * at) for at in last)
    assert (True, True) == (len(tenths) > 9, max(tenths.values()) < 100)
