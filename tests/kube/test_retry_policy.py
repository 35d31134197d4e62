"""When the API server is asked again: the pure rules, and what three reflectors make of them in virtual time."""

import math
import random as random_module
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count, takewhile

import pytest

from kube import errors
from kube.dial import AGAIN_S
from kube.listing import Page
from kube.reflector import Reflector
from kube.retry_policy import GUARD_FORGETS_S, SPACING_S, Guard, RetryPolicy, after_turn
from kube.server_health import WOKEN_APART_S, ServerHealth
from tools.kit.clock import Clock

CONNECT_S = 10.0
NO_JITTER: Callable[[], float] = lambda: 0.0  # noqa: E731


def pauses(steps: list[tuple[float, bool]], *, random: float = 0.0, asked_s: float | None = None) -> list[float | None]:
    """The pauses after failures at these times, and whether a request was sent."""
    pace, found = RetryPolicy(), []
    for monotonic, sent in steps:
        pause_s, pace = pace.failed(sent=sent, asked_s=asked_s, monotonic=monotonic, random=lambda: random)
        found.append(pause_s)
    return found


def at(*times: float, sent: bool = True) -> list[tuple[float, bool]]:
    return [(time, sent) for time in times]


@pytest.mark.parametrize(
    ("steps", "random", "expected"),
    [
        pytest.param(at(1, 2, 3), 0.0, [0.8, 1.0, 1.0], id="with a request: from 0.8 s to 1 s"),
        pytest.param(at(1, 2, 3), 1.0, [1.6, 2.0, 2.0], id="and with jitter to 2 s"),
        pytest.param(at(1, 60.9, 61.0, 600), 0.0, [0.8, 1.0, None, None], id="after a minute in the common budget"),
        pytest.param(at(1, 2, 3, 600, 9000, sent=False), 1.0, [0.8, 1.6, 2.0, 2.0, 2.0], id="refused: 2 s for ever"),
        pytest.param(
            [*at(1, 100), *at(101, sent=False), *at(102, 103)],
            0.0,
            [0.8, None, 0.4, 0.8, 1.0],
            id="a refusal begins a new minute: the server is starting",
        ),
    ],
)
def test_the_pause_after_a_failure(steps, random, expected):
    assert expected == pauses(steps, random=random)


@pytest.mark.parametrize(("asked_s", "expected"), [(None, 0.8), (0.1, 0.8), (5.0, 5.0), (9999.0, 300.0)])
def test_what_the_server_asks_for_is_the_least_up_to_a_limit(asked_s, expected):
    assert [expected] == pauses(at(1), asked_s=asked_s)


def test_a_watch_that_lasted_ends_the_outage():
    _, pace = RetryPolicy().failed(sent=True, asked_s=None, monotonic=1.0, random=NO_JITTER)
    assert pace.steady().failed(sent=True, asked_s=None, monotonic=100.0, random=NO_JITTER)[0] == 0.8


def test_turns_follow_each_other_by_the_requests_they_took():
    first = after_turn(-math.inf, requests=1, monotonic=100.0, random=NO_JITTER)
    second = after_turn(first, requests=2, monotonic=100.0, random=NO_JITTER)
    assert (first, second) == (100.0 + SPACING_S, 100.0 + 3 * SPACING_S)


@pytest.mark.parametrize(
    ("troubles", "expected"),
    [
        pytest.param([100.0], 130.0, id="half a minute after the first"),
        pytest.param([100.0, 110.0], 130.0, id="more until then are one"),
        pytest.param([100.0, "list", 131.0], 191.0, id="a minute after the next"),
        pytest.param([9e6, "list", 9e6 + 31], 9e6 + 91, id="also where the clock began long ago"),
        pytest.param([100.0, *["list", 101.0] * 20], 1901.0, id="at most half an hour"),
        pytest.param([100.0, "list", 101.0 + GUARD_FORGETS_S], 131.0 + GUARD_FORGETS_S, id="forgotten after an hour"),
        pytest.param([100.0, "list"], math.inf, id="never once a list was all right"),
    ],
)
def test_a_list_is_due_when_what_we_hold_is_in_doubt(troubles, expected):
    guard = Guard()
    for trouble in troubles:
        guard = guard.listed() if trouble == "list" else guard.troubled(trouble)
    assert expected == guard.due_at


def test_one_who_hears_wakes_the_others_once_a_minute():
    peers, woken = ServerHealth(), []
    for monotonic in (0.0, 1.0, WOKEN_APART_S):
        peers.wait("a", lambda: woken.append("a"))
        peers.answered(monotonic)
    peers.wait("b", lambda: woken.append("b"))
    peers.leave("b")
    peers.answered(1000.0)
    assert woken == ["a", "a"]


# Three reflectors of one server, in virtual time.


class Fresh(BaseException):
    """The reflector has news: its watch is open, or its list is there."""


@dataclass
class Server:
    """answers: what it does from which second on; the last for ever. Counts the requests that have reached it."""

    answers: list[tuple[float, str]]
    clock: Clock
    requests: list[float] = field(default_factory=list)

    def ask(self, *, watch: bool) -> bool:
        """Whether the answer is as it should be. Raises what the client raises; False for an empty one."""
        answer = [name for since, name in self.answers if since <= self.clock()][-1]
        if answer == "dropped":
            self._dial()
            return self.ask(watch=watch)
        if answer == "refused":
            raise errors.ConnectionRefused(path="/")
        self.requests.append(self.clock())
        if answer == "no answer":
            self.clock.time += 10.0
            raise errors.DeadlineExceeded(path="/")
        if answer in ("429", "503"):
            kind = errors.TooManyRequests if answer == "429" else errors.ServerError
            raise kind(path="/", status=int(answer), retry_after_s=5.0)
        if answer.isdigit():
            raise errors.from_status(path="/", status=int(answer))
        if answer == "empty" and not watch:
            raise errors.MalformedReply(path="/")
        return answer == "well"

    def _dial(self) -> None:
        """What is sent is dropped: the clock goes on until a packet of ours is none of those. The kernel's leave a
        second after a socket has begun, and after three, seven and fifteen."""
        began = self.clock()
        packets = sorted(
            began + first + again
            for first in takewhile(CONNECT_S.__gt__, count(0.0, AGAIN_S))
            for again in (0, 1, 3, 7)
        )
        back = next(since for since, answer in self.answers if since > began and answer != "dropped")
        taken = next((at for at in packets if at >= back), began + CONNECT_S)
        self.clock.time = min(taken, began + CONNECT_S)
        if self.clock() < taken or taken < back:
            raise errors.DeadlineExceeded(path="/", sent=False)


class Stream:
    def __init__(self, *, well: bool) -> None:
        self._well = well

    def batches(self, **_) -> Iterator[list[bytes]]:
        if self._well:
            raise Fresh
        return iter(())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class Listing:
    path = "/"

    def __init__(self, server: Server) -> None:
        self._server = server

    def page(self, **_) -> Page:
        self._server.ask(watch=False)
        return Page([], "1000", "", 0, "Node")

    def watch(self, *_, **__) -> Stream:
        return Stream(well=self._server.ask(watch=True))

    def close(self) -> None:
        return


class Nothing:
    def replace(self, _):
        return

    upsert = remove = replace


def play(answers: list[tuple[float, str]], *, seed: int, seconds: float = 600.0) -> tuple[list[float], list[float]]:
    """When each of three reflectors had news, and when the server was asked. They have lost their watches at 0."""
    clock = Clock(-100.0)
    server = Server([(-math.inf, "well"), *answers], clock)
    chance, peers = random_module.Random(seed), ServerHealth()
    reflectors = [
        Reflector(Listing(server), Nothing(), name=str(i), peers=peers, monotonic=clock, random=chance.random)
        for i in range(3)
    ]
    for reflector in reflectors:
        with pytest.raises(Fresh):
            reflector._loop.turn()
    server.requests.clear()
    due = {reflector: chance.random() for reflector in reflectors}
    fresh: list[float] = []
    while due and min(due.values()) <= seconds:
        reflector = min(due, key=due.__getitem__)
        clock.time = due.pop(reflector)
        try:
            pause_s = reflector._loop.turn()
        except Fresh:
            fresh.append(clock.time)
        else:
            due[reflector] = clock.time + pause_s
        for other in due:
            if other._loop._asleep.acquire(blocking=False):  # it was woken
                due[other] = min(due[other], max(clock.time, 0.0))
    return fresh, server.requests


SEEDS = range(8)


@pytest.mark.parametrize("answer", ["refused", "500", "403", "401", "410", "empty", "empty watch", "no answer"])
def test_a_server_that_fails_for_ten_minutes_is_asked_less_than_once_in_four_seconds(answer):
    """By all three together, after the first minute. A refused connection is no request: nothing is sent."""
    rates = [len([t for t in play([(0.0, answer)], seed=seed)[1] if 70 < t <= 600]) / 530 for seed in SEEDS]
    assert max(rates) <= 0.25


@pytest.mark.parametrize("answer", ["429", "503"])
def test_what_the_server_asks_for_is_waited_for_a_hundred_times_of_a_hundred(answer):
    found = []
    for seed in range(12):
        asked = sorted(play([(0.0, answer)], seed=seed, seconds=60.0)[1])
        # Three ask, each by itself: the fourth request is the second of the first.
        found += [later - earlier for earlier, later in zip(asked, asked[3:], strict=False)]
    assert (len(found) >= 100, min(found) >= 5.0 - 1e-6) == (True, True)


def freshness(answers: list[tuple[float, str]], back: float) -> float:
    """The longest time from the server's return until all three had news."""
    worst = 0.0
    for seed in SEEDS:
        fresh, _ = play([*answers, (back, "well")], seed=seed, seconds=back + 60)
        assert len(fresh) == 3
        worst = max(worst, max(fresh) - back)
    return worst


OUTAGES_S = (3.0, 46.0, 59.0, 81.0, 116.0, 600.0)


@pytest.mark.parametrize("outage_s", OUTAGES_S)
def test_news_come_within_three_seconds_of_the_return_after(outage_s):
    assert freshness([(0.0, "refused")], outage_s) <= 3.0


@pytest.mark.parametrize("outage_s", [*OUTAGES_S, 12.5, 31.3, 44.9, 63.7])
def test_news_come_within_three_seconds_of_the_return_of_a_host_that_was_away_after(outage_s):
    """Nothing was refused meanwhile: all that was sent was dropped."""
    assert freshness([(0.0, "dropped")], outage_s) <= 3.0


@pytest.mark.parametrize("loading_s", [0.5, 2.0, 5.0, 20.0])
@pytest.mark.parametrize("outage_s", [5.0, 116.0])
def test_news_come_within_three_seconds_of_the_moment_when_it_has_loaded_who_may_do_what(outage_s, loading_s):
    assert freshness([(0.0, "refused"), (outage_s, "403")], outage_s + loading_s) <= 3.0


@pytest.mark.parametrize("answer", ["500", "403", "empty"])
@pytest.mark.parametrize("outage_s", OUTAGES_S)
def test_a_server_that_answered_wrongly_all_the_time_is_found_well_within_six_seconds(answer, outage_s):
    """A request in four seconds finds it; the first to hear tells the others."""
    assert freshness([(0.0, answer)], outage_s) <= 6.0


def test_the_first_to_hear_tells_the_others():
    gaps = []
    for seed in SEEDS:
        fresh, _ = play([(0.0, "500"), (300.0, "well")], seed=seed)
        gaps.append(max(fresh) - min(fresh))
    assert max(gaps) == 0.0
