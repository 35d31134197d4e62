"""Who leads, read aloud: what a replica knows, what it sees, and what it may do then. And a run of chance."""

import random

import pytest

from extender.outlets.election import DURATION_S, HOLD_S, LOOK_EVERY_S, RENEW_EVERY_S, WRITE_S, Election, Record
from tools.kit.cases import cases
from tools.kit.scope import draws

OTHERS = Record("b", 15, "10:00:00", "09:00:00", 3)
OURS = OTHERS._replace(holder="a")


def seen(record, at=100.0):
    return Election("a").saw(record, at)


@cases(
    "election, monotonic, expected",
    ("there is no Lease: it may be made", Election("a"), 0.0, True),
    ("somebody else's, just seen: no, however old its times are", seen(OTHERS), 100.0, False),
    ("not before its duration has passed here", seen(OTHERS), 114.9, False),
    ("its duration has passed here without a change", seen(OTHERS), 115.0, True),
    ("seen again unchanged: the time goes on", seen(OTHERS).saw(OTHERS, 114.0), 115.0, True),
    ("renewed: it begins anew", seen(OTHERS).saw(OTHERS._replace(renewed="10:00:04"), 114.0), 120.0, False),
    (
        "renewed by a clock that was set back",
        seen(OTHERS).saw(OTHERS._replace(renewed="09:59:00"), 114.0),
        120.0,
        False,
    ),
    ("its own duration counts, not ours", seen(OTHERS._replace(duration_s=60)), 130.0, False),
    ("released: at once", seen(OTHERS._replace(holder="")), 100.0, True),
    ("our own, of a write whose answer was lost: at once", seen(OURS), 100.0, True),
)
def test_who_may_take_it(election, monotonic, expected):
    assert expected == election.may_take(monotonic)


@cases(
    "election, monotonic, expected",
    ("nobody leads by itself", Election("a"), 0.0, False),
    ("nor by reading its name: when was that written?", seen(OURS), 100.0, False),
    ("after a write that was taken", seen(OTHERS).wrote(OURS, 200.0), 209.9, True),
    ("not longer than that holds", seen(OTHERS).wrote(OURS, 200.0), 210.0, False),
    ("a process that was stopped for a minute does not lead", seen(OTHERS).wrote(OURS, 200.0), 260.0, False),
    ("somebody else has it now", seen(OTHERS).wrote(OURS, 200.0).saw(OTHERS, 201.0), 201.0, False),
    ("our own, read again", seen(OTHERS).wrote(OURS, 200.0).saw(OURS, 201.0), 205.0, True),
    ("released", seen(OTHERS).wrote(OURS, 200.0).released(), 201.0, False),
)
def test_who_leads(election, monotonic, expected):
    assert expected == election.leads(monotonic)


@pytest.mark.parametrize(
    ("election", "expected"),
    [
        pytest.param(Election("a"), Record("a", DURATION_S, "now", "now", 0), id="the first of all"),
        pytest.param(seen(OTHERS), Record("a", DURATION_S, "now", "now", 4), id="taken over: one transition more"),
        pytest.param(seen(OURS), Record("a", DURATION_S, "now", "09:00:00", 3), id="renewed: acquired when it was"),
    ],
)
def test_what_is_written_to_take_it(election, expected):
    assert expected == election.claim("now")


def test_what_is_written_to_release_it_is_what_client_go_writes():
    assert Record("", 1, "now", "now", 3) == seen(OURS).release("now")


def test_a_write_that_a_leader_began_in_its_last_moment_ends_before_anybody_else_may_begin():
    assert HOLD_S + WRITE_S <= DURATION_S
    assert RENEW_EVERY_S + WRITE_S <= HOLD_S  # one renewal may be lost


class Server:
    """A Lease with versions. Time is that of the test."""

    def __init__(self):
        self.record, self.version = None, 0

    def write(self, record, version):
        if version != self.version:
            return False
        self.record, self.version = record, self.version + 1
        return True


class Replica:
    """One that looks now and then, hangs at any moment, and whose requests take a while or are lost."""

    def __init__(self, name, server, chance):
        self.election, self.server, self.chance, self.version = Election(name), server, chance, None
        self.due_at = chance.uniform(0, 3)
        self.step = self.steps()

    def steps(self):
        """Yields how long the next step takes; it is given the time afterwards."""
        time = yield 0.0
        while True:
            version, record = self.server.version, self.server.record
            time = yield self.delay()
            if record is not None:
                self.election = self.election.saw(record, time)
            if record is None or self.election.may_take(time):
                began = time
                claim = self.election.claim(f"{time}")
                time = yield self.delay()
                taken = self.server.write(claim, version)
                answered = yield self.delay()
                if taken and self.chance.random() > 0.2:
                    self.election = self.election.wrote(claim, began)
                time = answered
            time = yield RENEW_EVERY_S if self.election.leads(time) else LOOK_EVERY_S

    def delay(self):
        return self.chance.choice([0.01, 0.01, 0.01, 0.5, 4.0, 20.0])


def test_of_replicas_that_hang_and_lose_answers_at_any_moment_never_two_lead_and_one_leads_most_of_the_time(seed):
    chance = random.Random(seed)
    server = Server()
    replicas = [Replica(name, server, chance) for name in "abc"]
    for replica in replicas:
        next(replica.step)
    time, led = 0.0, 0
    for _ in range(draws(5_000, 20_000)):
        replica = min(replicas, key=lambda r: r.due_at)
        time = max(time, replica.due_at)
        replica.due_at = time + replica.step.send(time)
        leaders = [r.election.identity for r in replicas if r.election.leads(time)]
        assert len(leaders) <= 1, f"seed {seed}: {leaders} at {time}"
        led += len(leaders)
    assert led > 1000, f"seed {seed}"
