"""Whose bytes are looked at next: descriptors are numbers, what epoll says of each is its name."""

import pytest

from extender.serve.fairness import Readable


def chosen(ready, there, *, most=4, first=()):
    """Who is looked at in a turn in which these are ready."""
    return [fd for fd, _ in ready.chosen([(fd, fd + 100) for fd in there], lambda fd: fd in first, most)]


@pytest.mark.parametrize(
    ("there", "first", "expected"),
    [
        pytest.param([1, 2, 3], (), [1, 2, 3], id="all where there are few"),
        pytest.param([1, 2, 3, 4, 5, 6], (), [1, 2, 3, 4], id="of more those that the kernel names first"),
        pytest.param([1, 2, 3, 4, 5, 6], (6,), [6, 1, 2, 3], id="one that goes first, wherever it stands"),
        pytest.param([1, 2, 3, 4, 5, 6], (1, 2, 3, 4, 5), [1, 2, 3, 4], id="many that go first, in their order"),
        pytest.param([1, 2, 3, 4, 5, 6], (3, 4, 5, 6), [3, 4, 1, 2], id="half of a turn for them at most"),
        pytest.param([], (7,), [], id="nobody where nobody is ready"),
    ],
)
def test_who_is_chosen_of_those_that_are_ready(there, first, expected):
    assert expected == chosen(Readable(), there, first=first)


def test_each_comes_to_its_turn_though_the_kernel_names_the_same_ones_first():
    ready, there = Readable(), list(range(10))
    turns = [chosen(ready, there) for _ in range(5)]
    assert [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1], [2, 3, 4, 5], [6, 7, 0, 1]] == turns


def test_beside_some_that_always_go_first_each_other_one_comes_to_its_turn():
    ready, seen = Readable(), set()
    for _ in range(50):
        seen.update(chosen(ready, range(100), first=range(90, 100)))
    assert set(range(90)) <= seen


def test_who_is_ready_no_more_loses_its_place_in_the_order():
    ready = Readable()
    chosen(ready, [1, 2, 3, 4, 5, 6])
    assert [6, 1, 2, 3] == chosen(ready, [1, 2, 3, 4, 6])
    assert [4, 1, 2, 3] == chosen(ready, [1, 2, 3, 4, 5])


def test_what_the_kernel_says_now_counts():
    ready = Readable()
    ready.chosen([(1, 7), (2, 7), (3, 7)], lambda _: False, 2)
    assert [(3, 9), (1, 8)] == ready.chosen([(1, 8), (2, 8), (3, 9)], lambda _: False, 2)


def test_as_many_as_there_are_may_be_asked_for_and_those_not_looked_at_are_next():
    ready = Readable()
    assert [1, 2, 3, 4, 5, 6] == chosen(ready, [1, 2, 3, 4, 5, 6], most=100)
    ready.left([4, 5, 6])
    ready.left([6])
    assert [6, 4, 5, 1, 2, 3] == chosen(ready, [1, 2, 3, 4, 5, 6], most=100)
