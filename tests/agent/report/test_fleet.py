"""5,000 agents that write at once, in virtual time: how often their API server is asked while it is away, while it
takes less than they want, when it is back, and when all of them start with their hosts."""

import heapq
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

import pytest

from agent.modes.start_delay import SPREAD_S, first_pause_s
from agent.report.condition import Condition, ConditionPublisher
from kube import contract, errors
from tools.kit.clock import Clock

AGENTS = 5_000
BAD = Condition(contract.STATUS_FALSE, "Failed", "the network is away", identity="bad")
GOOD = Condition(contract.STATUS_TRUE, "Passed", "", identity="good")
REPLY = b'{"metadata": {"uid": "u"}}'


class Server:
    """`answers(second, asked)`: None for a success, else the error; `asked` counts the requests of that second."""

    def __init__(self, clock: Clock, answers: Callable[[int, int], Exception | None]) -> None:
        self._clock, self.answers = clock, answers
        self.asked: Counter[int] = Counter()
        self.written: Counter[int] = Counter()

    def patch(self, _path: str, _body: bytes, **_how: object) -> bytes:
        second = int(self._clock.time)
        self.asked[second] += 1
        if (error := self.answers(second, self.asked[second])) is not None:
            raise error
        self.written[second] += 1
        return REPLY


class Fleet:
    """Publishers without threads: each has its turn when it wants one."""

    def __init__(
        self, answers: Callable[[int, int], Exception | None], seed: int, *, up_s: float = 1e6, agents: int = AGENTS
    ) -> None:
        self.clock = Clock(0.0)
        self.server = Server(self.clock, answers)
        random = Random(seed)
        self.agents = [
            ConditionPublisher(
                self.server,
                namespace="ns",
                pod_name="p",
                pod_uid="u",
                not_before=first_pause_s(up_s, random.random(), is_first=True),
                wall=self.clock,
                monotonic=self.clock,
                random=random.random,
            )
            for _ in range(agents)
        ]

    def publish(self, condition: Condition) -> None:
        for agent in self.agents:
            agent.publish(condition)

    def run(self, until_s: float) -> None:
        numbers = itertools.count()
        due = [(self.clock.time, next(numbers), agent) for agent in self.agents]
        while due and due[0][0] < until_s:
            self.clock.time, _, agent = heapq.heappop(due)
            heapq.heappush(due, (self.clock.time + agent.turn(), next(numbers), agent))
        self.clock.time = until_s

    def told(self, condition: Condition) -> int:
        """How many the server knows to say so."""
        return sum(agent._written == condition for agent in self.agents)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Each of 5,000 says its one line."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def most(asked: Counter[int], first: int, last: int) -> int:
    return max(asked[second] for second in range(first, last))


def test_a_server_that_is_away_is_asked_less_and_less(seed: int) -> None:
    fleet = Fleet(lambda _second, _asked: errors.Unreachable(path="/"), seed)
    fleet.publish(BAD)
    fleet.run(300.0)
    asked = fleet.server.asked
    assert (True, True, True) == (
        most(asked, 10, 30) <= 1_600,
        most(asked, 60, 120) <= 450,
        most(asked, 120, 300) <= 320,
    ), (seed, [most(asked, n, n + 10) for n in range(0, 300, 10)])
    assert sum(asked[second] for second in range(120, 300)) / 180 <= 200, "in a second, as a rule"


def test_when_it_is_back_all_say_the_newest_soon_and_not_at_once(seed: int) -> None:
    back_s = 300
    fleet = Fleet(lambda second, _asked: errors.Unreachable(path="/") if second < back_s else None, seed)
    fleet.publish(BAD)
    fleet.run(200.0)
    fleet.publish(GOOD)
    fleet.run(back_s + 40.0)
    assert AGENTS == fleet.told(GOOD), (seed, fleet.told(GOOD))
    assert most(fleet.server.asked, back_s, back_s + 40) <= 600, (seed, fleet.server.asked)


@pytest.mark.parametrize("retry_after_s", [None, 1.0, 10.0])
def test_a_server_that_takes_two_hundred_a_second_is_not_asked_for_ever(retry_after_s: float | None, seed: int) -> None:
    """It refuses the rest, as priority and fairness do, and may ask all of them for the same pause."""

    def answers(_second: int, asked: int) -> Exception | None:
        return None if asked <= 200 else errors.TooManyRequests(path="/", retry_after_s=retry_after_s)

    fleet = Fleet(answers, seed)
    fleet.publish(BAD)
    fleet.run(240.0)
    asked = fleet.server.asked
    assert AGENTS == fleet.told(BAD), (seed, retry_after_s, fleet.told(BAD))
    assert sum(asked.values()) <= AGENTS * 12, (seed, retry_after_s, sum(asked.values()))
    peaks = [most(asked, n, n + 10) for n in range(0, 240, 10)]
    assert (True, True) == (max(peaks[2:]) <= 1_600, max(peaks[6:]) <= 450), (seed, retry_after_s, peaks)


def test_agents_that_start_with_their_hosts_do_not_ask_together(seed: int) -> None:
    """The power is back: each asks what there is, and writes what it has found."""
    fleet = Fleet(lambda _second, _asked: None, seed, up_s=60.0)
    fleet.publish(GOOD)
    fleet.run(SPREAD_S + 1.0)
    asked = fleet.server.asked
    assert (AGENTS, 2 * AGENTS) == (fleet.told(GOOD), sum(asked.values()))
    assert max(asked.values()) <= 3 * sum(asked.values()) / (SPREAD_S + 1.0) / 2, (seed, asked)


def test_an_agent_that_starts_alone_asks_at_once(seed: int) -> None:
    fleet = Fleet(lambda _second, _asked: None, seed, agents=1)
    fleet.publish(GOOD)
    fleet.run(1e-3)
    assert (1, {0: 2}) == (fleet.told(GOOD), fleet.server.asked)
