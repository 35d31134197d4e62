"""A reflector in a world where anything happens by chance: its store equals the server whenever all is taken over."""

import random

from kube.listing import ListerWatcher
from kube.reflector import Reflector
from kube.watching import Next
from tests.kube.in_process import Finished, World
from tests.scripted.following import Node, Recorder
from tools.kit.clock import Clock

STEPS = 40  # of a play
EXPECTED = {
    f"errors.{cause}"
    for cause in (
        *("BrokenLine", "DeadlineExceeded", "Forbidden", "Gone", "ServerError", "TooManyRequests"),
        *("UnreadDeletion", "VeryShortWatch"),
    )
}
QUIET_LOOKS = 60
LOOK_APART_S = 60.0  # of the clock, in the end: the guard's longest pause is half an hour


class Play:
    def __init__(self, chance: random.Random) -> None:
        self.clock = Clock()
        self.world = World(chance, self.clock, STEPS, at_rest=self._compare)
        self.store = Recorder()
        self.store.refused = self.world.refused
        self.compared = 0
        self.differences: list[object] = []
        self.reflector = Reflector(
            ListerWatcher(self.world, "/nodes", Node),
            self.store,
            name="nodes",
            monotonic=self.clock,
            random=chance.random,
        )

    def run(self) -> None:
        """Raises AssertionError with what was done before the store differed."""
        try:
            self._run()
        except BaseException as e:
            e.add_note(f"done: {self.world.done}")
            raise

    def _run(self) -> None:
        self._turns()
        self.world.heal()
        for _ in range(QUIET_LOOKS):
            self.world.steps, self.world.step = 1, self._look
            self._turns()
            if self.store.versions == self.world.truth():
                break
        assert self.world.truth() == self.store.versions
        assert self.differences == []
        bugs = {key for key in self.reflector.counters if key.startswith("errors.")} - EXPECTED
        assert bugs == set()

    def _turns(self) -> None:
        try:
            while True:
                self.clock.time += self.reflector._loop.turn()
        except Finished:
            self.reflector._next = Next.WATCH  # as if it had just ended

    def _look(self) -> None:
        self.world.steps = 0
        self.clock.time += LOOK_APART_S

    def _compare(self, world: World) -> None:
        """Nothing is under way; but what was refused or could not be read waits for a list."""
        if self.reflector._guard.due_at == float("inf") and not world.refused:
            self.compared += 1
            if world.truth() != self.store.versions:  # not raised: the reflector would take it for its own bug
                self.differences.append((len(world.done), world.truth(), dict(self.store.versions)))
