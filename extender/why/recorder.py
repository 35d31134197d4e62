"""The thread that records: takes attempts and decisions in batches, and drops old records."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from component.loop import Loop
from extender.policy.orders import Orders
from extender.policy.snapshot import Board, Snapshot
from extender.why.attempts import Attempt, Attempts
from extender.why.blame import AttemptRecorder
from extender.why.counters import GateCounters
from extender.why.entries import Dropped, Event, Forgotten, Reset
from extender.why.events import events_between, events_of_orders
from extender.why.journal import Journal

LOOK_EVERY_S = 0.5
AT_ONCE = 128  # attempts, and events, of one turn; then the interpreter is released
FORGET_AT_ONCE = 500  # pods
YIELD_S = 0.001
AGES_EVERY_S = 10.0
STUCK_AFTER_S = 30.0
NUMBERS_SPARE = 10_000  # names of removed nodes, before all get new numbers
DECISIONS_MAX = 1024  # in the queue; the decider makes fifty a second at most


class Step(NamedTuple):
    """From one snapshot to the next."""

    before: Snapshot
    after: Snapshot
    monotonic: float


class Recorder:
    """A Service with one thread, which calls turn(). journal: the history.

    orders: the known ones; wall: decides which are in force. on_refused_everywhere: called with each attempt that was
    answered without a node for the pod; must not block.
    """

    name = "recorder"

    def __init__(
        self,
        attempts: Attempts,
        board: Board,
        journal: Journal,
        *,
        orders: Callable[[], Orders] = Orders,
        on_refused_everywhere: Callable[[Attempt], None] = lambda _: None,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.journal = journal
        self._attempts = attempts
        self._board = board
        self._orders = orders
        self._in_force = Orders()
        self._on_refused_everywhere = on_refused_everywhere
        self._monotonic = monotonic
        self._wall = wall
        self._steps: deque[Step] = deque()
        self._steps_dropped = 0
        self._events: Iterator[Event] = iter(())  # of the decisions that were taken from the queue
        self._rememberer = AttemptRecorder(journal.memory, journal.put)
        self._tallies = GateCounters()
        self._ages_at = -math.inf
        self._too_many = False  # more must be dropped than one turn may; until then nothing is added
        self._loop = Loop("recorder", self.turn, stuck_after_s=STUCK_AFTER_S, monotonic=monotonic)
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def on_decided(self, before: Snapshot, after: Snapshot, monotonic: float) -> None:
        """Called by the deciding thread with every snapshot: one append, without a wait."""
        if len(self._steps) >= DECISIONS_MAX:
            self._steps_dropped += 1
        else:
            self._steps.append(Step(before, after, monotonic))

    def turn(self) -> float:
        """Records a part of the queues. Returns the seconds until the next turn."""
        memory, write = self.journal.memory, self.journal.write
        monotonic = self._monotonic()
        if memory.since is None:
            write(Reset(monotonic))
        self._look_at_orders(monotonic)
        more = self._look_at_decisions(monotonic)
        more |= self._look_at_attempts()
        for tally in self._tallies.take():
            write(tally)
        dropped = Dropped(self._attempts.dropped, self._steps_dropped)
        if dropped != memory.dropped:
            write(dropped)
        if monotonic >= self._ages_at:
            self._ages_at = monotonic + AGES_EVERY_S
            self._look_at_ages(monotonic)
        return YIELD_S if more else LOOK_EVERY_S

    def _look_at_attempts(self) -> bool:
        """Returns whether more may wait than one turn takes."""
        memory = self.journal.memory
        self._attempts.keep_names = closes_in_shadow(self._board.snapshot)
        attempts = [] if self._too_many else self._attempts.take(AT_ONCE)
        everywhere = []
        with self.journal.writing():
            for attempt in attempts:
                record = self._rememberer.remember(attempt)
                if record is not None and not attempt.unanswered:
                    self._tallies.attempt(record, memory.causes)
                    if refused_everywhere(attempt):
                        everywhere.append(attempt)
        for attempt in everywhere:
            self._on_refused_everywhere(attempt)
        if gone := memory.pods.too_many(FORGET_AT_ONCE):
            self.journal.write(Forgotten(gone))
        self._too_many = len(gone) == FORGET_AT_ONCE
        return self._too_many or len(attempts) == AT_ONCE

    def _look_at_decisions(self, monotonic: float) -> bool:
        """Returns whether there is more than one turn takes."""
        happened = list(islice(self._events, AT_ONCE))
        while len(happened) < AT_ONCE and self._steps:
            step = self._steps.popleft()
            self._tallies.look(step.after, monotonic=step.monotonic)
            self._events = events_between(step.before, step.after, at=step.monotonic)
            happened += islice(self._events, AT_ONCE - len(happened))
        if len(happened) < AT_ONCE:
            self._tallies.look(self._board.snapshot, monotonic=monotonic)
        self._happened(happened)
        return len(happened) == AT_ONCE

    def _look_at_orders(self, monotonic: float) -> None:
        orders = self._orders()
        in_force = Orders(orders.in_force(self._wall()), orders.faults)
        if in_force != self._in_force:
            self._happened(events_of_orders(self._in_force, in_force, at=monotonic))
            self._in_force = in_force

    def _happened(self, events: Iterable[Event]) -> None:
        for event in events:
            newest = self.journal.memory.serial
            self.journal.write(replace(event, serial=newest + 1))
            self._tallies.event(event)

    def _look_at_ages(self, monotonic: float) -> None:
        memory = self.journal.memory
        if gone := memory.pods.aged(monotonic, FORGET_AT_ONCE):
            self._ages_at = monotonic  # there may be more
            self.journal.write(Forgotten(gone))
        if len(memory.numbers) > 2 * len(self._board.snapshot.nodes) + NUMBERS_SPARE:
            self.journal.renew(memory.renumbered())
            self._rememberer.forget_numbers()


def refused_everywhere(attempt: Attempt) -> bool:
    """Returns whether no asked node is left. For a nominated node kube-scheduler makes a call for it alone, and then
    for all."""
    return bool(attempt.refused) and not attempt.survivors and not attempt.nominated


def closes_in_shadow(snapshot: Snapshot) -> bool:
    """Returns whether a gate in shadow would refuse a node at present."""
    return any(not state.armed and state.severity == "gate" and state.closed for state in snapshot.gates.values())
