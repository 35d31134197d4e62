import math

from hypothesis import given, settings
from hypothesis import strategies as st

from extender.policy.deadlines import Deadlines


def test_the_earliest_first_and_each_once() -> None:
    deadlines = Deadlines([("b", 2.0), ("a", 1.0)])
    deadlines.set("c", 3.0)
    assert (1.0, ["a", "b"], 3.0) == (deadlines.next_at(), deadlines.due(2.0), deadlines.next_at())
    assert ([], ["c"], math.inf) == (deadlines.due(2.9), deadlines.due(3.0), deadlines.next_at())


def test_a_time_may_move_both_ways() -> None:
    deadlines = Deadlines([("late", 1.0), ("early", 9.0)])
    deadlines.set("late", 5.0)
    deadlines.set("early", 2.0)
    assert [["early"], [], ["late"]] == [deadlines.due(at) for at in (2.0, 4.9, 5.0)]


def test_what_is_dropped_is_never_due() -> None:
    deadlines = Deadlines([("a", 1.0)])
    deadlines.drop("a")
    deadlines.drop("unknown")
    assert ([], 0) == (deadlines.due(10.0), len(deadlines))


def test_times_that_move_on_and_on_keep_one_entry() -> None:
    deadlines = Deadlines()
    for at in range(10_000):
        deadlines.set("a", float(at))
        deadlines.drop("a")
        deadlines.set("a", float(at + 1))
    assert 1 == len(deadlines._heap)


def test_names_that_come_and_go_leave_nothing_behind_until_their_time() -> None:
    """As of nodes that an autoscaler makes and takes away, under an order that ends in a year."""
    deadlines = Deadlines()
    deadlines.set("stays", 1e6)
    for number in range(10_000):
        deadlines.set(f"n{number}", 3e7)
        deadlines.drop(f"n{number}")
    assert (True, 1e6) == (len(deadlines._heap) < 200, deadlines.next_at())


Step = tuple[str, str, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["set", "drop", "due"]), st.sampled_from(["a", "b", "c"]), st.integers(0, 20))
)


@settings(deadline=None)
@given(STEPS)
def test_it_does_as_a_dictionary_that_is_walked(steps: list[Step]) -> None:
    deadlines, walked = Deadlines(), dict[str, int]()
    for do, name, at in steps:
        if do == "set":
            deadlines.set(name, at)
            walked[name] = at
        elif do == "drop":
            deadlines.drop(name)
            walked.pop(name, None)
        else:
            expected = {known for known, its in walked.items() if its <= at}
            assert expected == set(deadlines.due(at))
            walked = {known: its for known, its in walked.items() if its > at}
        assert deadlines.next_at() <= min(walked.values(), default=math.inf)
