"""Two who are told the same remember the same: from the start, from a dump, from the steps since, after a renewal."""

import random

import msgspec
import pytest

from extender.why.entries import Cause, Entry, Event, Forgotten, Named, Reset, Tally
from extender.why.history import EVENTS_MAX
from extender.why.journal import Journal
from tests.extender.why.attempting import Scheduler, gate

NODES = [f"n{number}" for number in range(30)]


def remembered(memory):
    """All of it, comparable."""
    return memory.dump()


def on_the_wire(entries):
    encoder, decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(list[Entry])
    return decoder.decode(encoder.encode(entries))


def told(entries):
    journal = Journal(steps_max=0)
    for entry in on_the_wire(entries):
        journal.write(entry)
    return journal.memory


class Following:
    """Pods that ask, events and tallies, by chance."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.scheduler = Scheduler(gate("base", NODES, NODES[::3]), gate("gpu", NODES, NODES[::4], armed=False))
        self.journal = self.scheduler.journal
        self.journal.write(Reset(1.0))
        self.at = 1.0

    def goes_on(self):
        self.at += 1.0
        write, number = self.journal.write, self.random.randrange(20)
        match self.random.randrange(6):
            case 0 | 1 | 2:
                names = self.random.sample([*NODES, "unknown"], self.random.randrange(20))
                self.scheduler.asks(names, pod=f"p{number}", at=self.at)
            case 3:
                write(Event(self.journal.memory.serial + 1, self.at, "closed", "base", f"n{number}"))
            case 4:
                write(Forgotten([f"team/p{number}"]))
            case 5:
                write(Tally("base", True, 1.0, names=number, recent={1: number}))


def test_a_dump_at_any_time_and_the_steps_since_make_the_same(seed):
    following = Following(seed)
    for _ in range(20):
        for _ in range(following.random.randrange(40)):
            following.goes_on()
        serial, entries = following.journal.dump()
        other = Journal(steps_max=0)
        for entry in on_the_wire(entries):
            other.write(entry)
        for _ in range(following.random.randrange(40)):
            following.goes_on()
        while steps := following.journal.since(serial, following.random.randrange(1, 9)):
            serial += len(steps)
            for entry in on_the_wire(steps):
                other.write(entry)
        assert remembered(following.journal.memory) == remembered(other.memory), f"seed {seed}"


def test_steps_that_are_not_kept_any_more_are_told_anew():
    following = Following(1)
    following.journal = following.scheduler.journal
    following.journal._steps_max = 5
    for _ in range(50):
        following.goes_on()
    newest = following.journal.serial
    assert following.journal.since(newest, 9) == []
    assert len(following.journal.since(newest - 5, 9)) == 5
    assert following.journal.since(newest - 6, 9) is None
    assert following.journal.since(newest + 1, 9) is None


def test_after_a_renewal_all_is_told_anew_and_means_the_same():
    following = Following(2)
    for _ in range(200):
        following.goes_on()
    journal = following.journal
    before, serial = meaning(journal.memory), journal.serial
    for number in range(10):
        journal.write(Forgotten([f"team/p{number}"]))
        before.pop(f"team/p{number}", None)
    journal.renew(journal.memory.renumbered())
    assert journal.since(serial, 9) is None
    assert before == meaning(journal.memory) == meaning(told(journal.dump()[1]))


def pairs(record):
    return zip(memoryview(record.nodes).cast("I"), record.codes, strict=True)


def meaning(memory):
    names = memory.numbers.names
    return {one.key: [(names[number], memory.causes[code]) for number, code in pairs(one)] for one in memory.pods}


@pytest.mark.parametrize(
    "entry",
    [pytest.param(Named(7, ["n"]), id="names are missing"), pytest.param(Cause(3, "g", "r", False), id="causes are")],
)
def test_what_does_not_follow_is_refused(entry):
    with pytest.raises(ValueError, match="are missing"):
        Journal().write(entry)


def test_events_that_are_too_old_are_forgotten():
    journal = Journal(steps_max=0)
    for serial in range(1, EVENTS_MAX + 11):
        journal.write(Event(serial, 1.0, "closed"))
    journal.write(Event(5, 1.0, "closed"))
    assert (11, EVENTS_MAX + 10, EVENTS_MAX) == (
        journal.memory.events[0].serial,
        journal.memory.events[-1].serial,
        len(journal.memory.events),
    )
