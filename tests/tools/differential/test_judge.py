"""What looks for a planted error: the agent beside answers that are known already."""

import math
from random import Random
from types import SimpleNamespace

import msgspec
import pytest

from agent.wire.semantics import Semantics
from tools.differential.compare import AGAIN, FORGIVEN, compare, differs_again, drawn_batch, too_many
from tools.differential.judge import NONE, Batch, batch_line, first_difference
from tools.differential.kubelet import GATES

GATES_OF_A_KUBELET = dict(GATES[0])


class Doubled:
    """A target whose agent doubles a number; it breaks with words."""

    name = "doubled"

    def draw(self, random: Random) -> int:
        return random.randrange(10)

    def answer(self, history: int, semantics: Semantics) -> int:  # noqa: ARG002 - no gate is about numbers
        return 2 * int(history)

    def told(self, answer: object) -> object:
        return answer


@pytest.mark.parametrize(
    ("histories", "kubelet", "expected"),
    [
        pytest.param([1, 2, 3], [2, 4, 6], NONE, id="equal answers"),
        pytest.param([1, 2, 3], [2, 5, 7], 1, id="the first of two that differ"),
        pytest.param(["no number"], [2], 0, id="an agent that breaks differs"),
        pytest.param([], [], NONE, id="nothing was asked"),
    ],
)
def test_the_first_difference_is_found(histories: list[object], kubelet: list[object], expected: int):
    assert expected == first_difference(Doubled(), Batch(GATES_OF_A_KUBELET, histories, kubelet))


def test_a_batch_is_the_same_for_whoever_draws_it():
    assert drawn_batch(Doubled(), 3, 20, seed=7) == drawn_batch(Doubled(), 3, 20, seed=7)


class Answered:
    """A kubelet that doubles numbers too."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []

    def ask(self, _target: str, _gates: object, histories: list[int]) -> None:
        self.asked.append(histories)

    def answers(self) -> list[int]:
        return [2 * history for history in self.asked[-1]]


@pytest.mark.parametrize(
    ("limit_s", "histories"),
    [pytest.param(math.inf, 50, id="all of them"), pytest.param(0.0, 0, id="none is begun after the limit")],
)
def test_as_many_are_played_as_begin_within_the_limit(limit_s: float, histories: int):
    tally = compare(Doubled(), Answered(), batches=[(0, 20), (1, 30)], seed=1, limit_s=limit_s)
    assert (histories, None) == (tally.histories, tally.difference)


def test_a_batch_crosses_a_pipe_in_one_line():
    line = batch_line(GATES_OF_A_KUBELET, [{"text": "a\nb"}], [None])
    assert 1 == line.count(b"\n")
    assert Batch(GATES_OF_A_KUBELET, [{"text": "a\nb"}], [None]) == msgspec.json.decode(line, type=Batch)


def test_of_what_lies_behind_the_first_difference_nothing_is_asked():
    asked = []
    target = SimpleNamespace(
        name="asked", draw=None, told=lambda answer: answer, answer=lambda history, _: asked.append(history)
    )
    first_difference(target, Batch(GATES_OF_A_KUBELET, [1, 2, 3], ["other", "other", "other"]))
    assert [1] == asked


class Slow(Answered):
    """A kubelet that is wrong the first few times, as one that had no processor."""

    def __init__(self, wrong: int) -> None:
        super().__init__()
        self.wrong = wrong

    def answers(self) -> list[int]:
        return [answer + (len(self.asked) <= self.wrong) for answer in super().answers()]


@pytest.mark.parametrize(
    ("name", "wrong", "expected"),
    [
        pytest.param("handlers", 1, False, id="it was late once more, and then it was not"),
        pytest.param("handlers", AGAIN, True, id="it differs each time"),
        pytest.param("doubled", 0, True, id="nothing takes time there: it is not asked again"),
    ],
)
def test_a_history_that_meets_a_network_differs_where_it_does_so_again(name: str, wrong: int, *, expected: bool):
    target = Doubled()
    target.name = name
    assert expected is differs_again(target, Slow(wrong), GATES_OF_A_KUBELET, 3)


def test_those_that_agreed_only_when_they_were_played_again_are_told():
    target = Doubled()
    target.name = "handlers"
    tally = compare(target, Slow(1), batches=[(0, 20), (1, 30)], seed=1)
    _, drawn = drawn_batch(target, 0, 20, seed=1)
    assert (50, None, tuple(drawn)) == (tally.histories, tally.difference, tally.forgiven)


@pytest.mark.parametrize(
    ("forgiven", "histories", "expected"),
    [
        pytest.param(FORGIVEN, 100, False, id="a few, as where a machine is busy"),
        pytest.param(FORGIVEN + 1, 100, True, id="more than a few"),
        pytest.param(20, 20_000, False, id="one in a thousand"),
        pytest.param(21, 20_000, True, id="more than one in a thousand"),
    ],
)
def test_how_many_may_agree_only_when_they_are_played_again(forgiven: int, histories: int, *, expected: bool):
    assert expected is too_many(forgiven, histories)
