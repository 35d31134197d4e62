"""What each gate has refused, or would have: counted from attempts, snapshots and events."""

import pytest

from extender.why.counters import PODS_MAX, GateCounters, of_late
from extender.why.entries import Event
from tests.extender.why.attempting import Scheduler, gate, snapshot_of

NODES = ["n1", "n2", "n3"]


class Counting:
    def __init__(self, *gates):
        self.scheduler = Scheduler(*gates)
        self.tallies = GateCounters()
        self.see(*gates, at=1.0)

    def see(self, *gates, at):
        self.scheduler.board.swap(snapshot_of(*gates))
        self.tallies.look(self.scheduler.board.snapshot, monotonic=at)

    def asks(self, names, **options):
        self.tallies.attempt(self.scheduler.asks(names, **options), self.scheduler.memory.causes)

    def tally(self, name):
        return {one.gate: one for one in self.tallies.take()}[name]


def test_names_calls_and_pods():
    counting = Counting(gate("base", NODES, ["n1", "n2"]), gate("dns", NODES, ["n2"], armed=False))
    counting.asks(NODES, pod="a", uid="a")
    counting.asks(["n1", "n3"], pod="a", uid="a")
    counting.asks(["n3"], pod="b", uid="b")
    counting.asks(["n2"], pod="c", uid="c")
    tallies = {one.gate: one for one in counting.tallies.take()}
    assert [(3 + 1, 3, 2, True), (2, 2, 2, False)] == [
        (one.names, one.calls, one.pods, one.armed) for one in tallies.values()
    ]
    assert list(counting.tallies.take()) == []


def test_a_gate_that_is_armed_is_counted_anew():
    counting = Counting(gate("dns", NODES, ["n1", "n2"], armed=False))
    counting.asks(NODES)
    assert (2, False, 2, 1.0) == fields(counting.tally("dns"))
    counting.see(gate("dns", NODES, ["n1"]), at=7.0)
    counting.asks(NODES)
    assert (1, True, 1, 7.0) == fields(counting.tally("dns"))


def fields(tally):
    return tally.names, tally.armed, tally.most_closed, tally.since


def test_a_gate_that_is_no_more_is_forgotten():
    counting = Counting(gate("base", NODES, ["n1"]), gate("dns", NODES, ["n2"]))
    counting.see(gate("base", NODES, ["n1"]), at=2.0)
    assert ["base"] == [one.gate for one in counting.tallies.take()]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([("held", "cap"), ("held", "cap"), ("released", "")], (2, 0), id="two held by the cap"),
        pytest.param([("opened", "cap"), ("opened", ""), ("held", "damping")], (1, 0), id="one makes room for another"),
        pytest.param([("storm", "storm"), ("stormEnded", ""), ("held", "storm")], (0, 1), id="a storm is one"),
    ],
)
def test_hits_of_cap_and_storm(events, expected):
    counting = Counting(gate("base", NODES))
    for kind, held_by in events:
        counting.tallies.event(Event(0, 1.0, kind, "base", "n1", held_by=held_by))
    tally = counting.tally("base")
    assert expected == (tally.cap_hits, tally.storm_hits)


def test_calls_of_the_last_ten_minutes():
    counting = Counting(gate("base", NODES, ["n1"]))
    for at in (5.0, 6.0, 300.0, 601.0):
        counting.asks(NODES, at=at)
    tally = counting.tally("base")
    assert [4, 2, 2, 1, 0] == [of_late(tally, at) for at in (599.0, 601.0, 890.0, 1100.0, 2000.0)]
    for at in range(0, 36_000, 10):
        counting.asks(NODES, at=float(at))
    assert len(counting.tally("base").recent) <= 62


def test_so_many_pods_are_told_apart():
    counting = Counting(gate("base", NODES, ["n1"]))
    record = counting.scheduler.asks(NODES)
    counting.tallies._counts["base"].pods.update(range(PODS_MAX))
    counting.tallies.attempt(record, counting.scheduler.memory.causes)
    tally = counting.tally("base")
    assert (PODS_MAX, True) == (tally.pods, tally.pods_at_least)
