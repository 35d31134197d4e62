"""What the verbs append waits for the recorder within bounds, whoever asks."""

import pytest

from extender.why import attempts as module
from extender.why.attempts import Attempt, Attempts


def attempt(**changes):
    return Attempt(**{"namespace": "ns", "name": "p", "uid": "u", "monotonic": 1.0} | changes)


def test_they_are_taken_in_the_order_they_came():
    attempts = Attempts()
    for name in ("a", "b"):
        attempts.add(attempt(name=name))
    assert [["a"], ["b"], []] == [[one.name for one in attempts.take(1)] for _ in range(3)]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"name": "a" * 400}, id="a name too long"),
        pytest.param({"namespace": "a" * 400}, id="a namespace too long"),
        pytest.param({"uid": "a" * 400}, id="a uid too long"),
    ],
)
def test_texts_that_no_api_server_would_take_do_not_wait(changes):
    attempts = Attempts()
    attempts.add(attempt(**changes))
    assert ([], 1, 0) == (attempts.take(9), attempts.unfit, attempts.dropped)


def test_a_recorder_that_is_behind_costs_a_bounded_number_of_attempts(monkeypatch):
    monkeypatch.setattr(module, "WAITING_NAMES_MAX", 3 * module.ATTEMPT_NAMES)
    attempts = Attempts()
    for number in range(5):
        attempts.add(attempt(name=f"p{number}"))
    assert (2, ["p0"]) == (attempts.dropped, [one.name for one in attempts.take(1)])
    attempts.add(attempt(name="late"))
    assert (2, ["p1", "p2", "late"]) == (attempts.dropped, [one.name for one in attempts.take(9)])


def test_and_a_bounded_number_of_names():
    attempts = Attempts()
    names = {f"n{number}": "r" for number in range(65_536)}
    for _ in range(10):
        attempts.add(attempt(refused=names))
    assert attempts.dropped == 6
    attempts.take(1)
    attempts.add(attempt(refused=dict.fromkeys(range(1000), "r"), names=["n"] * 64_000))
    attempts.add(attempt(names=["n"] * 1000))
    assert attempts.dropped == 7
