"""The thread that remembers: takes what the verbs have appended, many at once, and forgets what is old."""

import math
import time
from collections.abc import Callable

from component.loop import Loop
from extender.policy.snapshot import Board, Snapshot
from extender.why.attempts import Attempts
from extender.why.entries import Anew, Dropped, Forgotten
from extender.why.journal import Journal
from extender.why.remember import Rememberer

LOOK_EVERY_S = 0.25
AT_ONCE = 64  # attempts of one turn, then the interpreter is given to whoever waits for it
YIELD_S = 0.001
AGES_EVERY_S = 10.0
STUCK_AFTER_S = 30.0
NUMBERS_SPARE = 10_000  # names of nodes that are no more, before all get new numbers


class Recorder:
    """A Service with one thread, which calls turn(). journal: what is remembered."""

    name = "recorder"

    def __init__(
        self, attempts: Attempts, board: Board, journal: Journal, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.journal = journal
        self._attempts = attempts
        self._board = board
        self._monotonic = monotonic
        self._rememberer = Rememberer(journal.memory, journal.write)
        self._ages_at = -math.inf
        self._loop = Loop("recorder", self.turn, stuck_after_s=STUCK_AFTER_S, monotonic=monotonic)
        self.start, self.stop, self.healthy = self._loop.start, self._loop.stop, self._loop.healthy

    def turn(self) -> float:
        """Remembers some of what waits; seconds until the next turn."""
        memory, write = self.journal.memory, self.journal.write
        monotonic = self._monotonic()
        if memory.since is None:
            write(Anew(monotonic))
        self._attempts.keep_names = closes_in_shadow(self._board.snapshot)
        taken = 0
        while taken < AT_ONCE and (attempt := self._attempts.take()) is not None:
            self._rememberer.remember(attempt)
            taken += 1
        if self._attempts.dropped != memory.dropped:
            write(Dropped(self._attempts.dropped))
        if gone := memory.pods.too_many():
            write(Forgotten(gone))
        if monotonic >= self._ages_at:
            self._ages_at = monotonic + AGES_EVERY_S
            self._look_at_ages(monotonic)
        return YIELD_S if taken == AT_ONCE else LOOK_EVERY_S

    def _look_at_ages(self, monotonic: float) -> None:
        memory = self.journal.memory
        if gone := memory.pods.aged(monotonic):
            self.journal.write(Forgotten(gone))
        if len(memory.numbers) > 2 * len(self._board.snapshot.nodes) + NUMBERS_SPARE:
            self.journal.renew(memory.renumbered())


def closes_in_shadow(snapshot: Snapshot) -> bool:
    """Whether a gate in shadow would refuse a node at present."""
    return any(not state.armed and state.severity == "gate" and state.closed for state in snapshot.gates.values())
