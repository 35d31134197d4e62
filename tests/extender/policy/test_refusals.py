"""The notes of what was refused: how many there may be, what a kick settles, and the order that loses none."""

import itertools
import queue
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator

import pytest

from extender.policy.encoded_names import spell
from extender.policy.refusals import NAME_LIMIT, UNKNOWN_LIMIT, Refusals
from extender.policy.snapshot import Board
from tests.extender.policy.test_snapshot import CLOSED, OPENED, World
from tools.kit.scope import WHOLE, draws

KNOWN = {"n1": "closed", "n2": "closed", "n3": "closed"}


def noted(*names: str) -> Refusals:
    refusals = Refusals()
    note(refusals, *names)
    return refusals


def note(refusals: Refusals, *names: str, known: Collection[str] = KNOWN) -> None:
    refusals.note(dict.fromkeys(names, "closed"), [name for name in names if name not in known])


def opened(refusals: Refusals, *names: str) -> list[str]:
    known = frozenset(KNOWN) | set(names)
    return sorted(refusals.take(known, dict.fromkeys(known - set(names), "closed")))


def test_a_note_is_taken_once() -> None:
    refusals = noted("n1", "n2")
    assert (["n1"], [], ["n2"]) == (opened(refusals, "n1"), opened(refusals, "n1"), opened(refusals, "n2"))


# What a kick settles.


def test_a_kick_settles_what_was_noted_before_it() -> None:
    refusals = noted("n1")
    refusals.turn()
    note(refusals, "n2")
    refusals.settle()
    assert ["n2"] == opened(refusals, "n1", "n2")


def test_a_kick_that_is_not_taken_settles_nothing() -> None:
    refusals = noted("n1")
    refusals.turn()
    note(refusals, "n2")
    refusals.turn()
    assert ["n1", "n2"] == opened(refusals, "n1", "n2")


def test_what_was_noted_before_and_after_a_kick_is_one_release() -> None:
    refusals = noted("n1")
    refusals.turn()
    note(refusals, "n1")
    assert (["n1"], []) == (opened(refusals, "n1"), opened(refusals, "n1"))


# How many names.


def test_names_nobody_knows_do_not_fill_the_memory() -> None:
    refusals = noted("n1")
    for turn in range(20):
        note(refusals, *(f"x{turn}-{number}" for number in range(65_536)))
    assert 1 + UNKNOWN_LIMIT == len(refusals)
    assert ["n1"] == opened(refusals, "n1")


def test_nor_do_names_that_are_no_names_of_nodes() -> None:
    refusals = Refusals()
    note(refusals, "x" * (NAME_LIMIT + 1), "y" * NAME_LIMIT)
    assert ["y" * NAME_LIMIT] == list(refusals._unknown)


def test_of_the_unknown_names_those_stay_that_were_asked_for_last() -> None:
    refusals = noted("new")
    note(refusals, *(f"x{number}" for number in range(UNKNOWN_LIMIT - 1)))
    note(refusals, "new")
    note(refusals, "y")
    assert (["new", "y"], False) == (opened(refusals, "new", "y"), "x0" in refusals._unknown)


def test_a_node_that_the_scheduler_saw_before_us_is_not_forgotten_once_we_have_seen_it() -> None:
    refusals = noted("new")
    known = {**KNOWN, "new": "closed"}
    assert [] == refusals.take(frozenset(known), known)
    note(refusals, *(f"x{number}" for number in range(65_536)), known=known)
    assert ["new"] == refusals.take(frozenset(known), KNOWN)


def test_names_of_nodes_that_are_no_more_do_not_fill_it_either() -> None:
    refusals = Refusals()
    for number in range(10_000):
        name = f"spot-{number}"
        note(refusals, name, known=[name])
        refusals.take(frozenset(KNOWN), KNOWN)
    assert len(refusals) <= len(KNOWN) + 2 * UNKNOWN_LIMIT


# The order, one interleaving after the other.


class Notes(dict[str, str]):
    """A page of the notes, with what happens just before one is written and just after they were read."""

    before_update: Callable[[], object] = staticmethod(lambda: None)
    after_copy: Callable[[], object] = staticmethod(lambda: None)

    def update(self, *others: dict[str, str]) -> None:  # type: ignore[override]
        self.before_update()
        super().update(*others)

    def copy(self) -> dict[str, str]:
        copied = super().copy()
        self.after_copy()
        return copied


def watched(world: World) -> Notes:
    notes = Notes()
    world.board._refusals["health"]._pages = (notes,)
    return notes


def test_a_request_reads_the_snapshot_again_after_its_note_is_written() -> None:
    world = World(n2=CLOSED).after_the_start()
    watched(world).before_update = lambda: world.say(n2=OPENED)
    world.board.look_up(["n2"])
    assert ["n2"] == world.late


def test_a_swap_reads_the_notes_after_its_snapshot_is_written() -> None:
    world = World(n2=CLOSED).after_the_start()
    answers = []
    watched(world).after_copy = lambda: answers.append(world.board.look_up(["n2"]))
    world.say(n2=OPENED)
    assert ["n2"] in [answer.survivors for answer in answers]


def test_a_swap_that_looks_while_the_page_is_turned_finds_the_note_in_the_page_before() -> None:
    world = World(n2=CLOSED).after_the_start()
    notes = watched(world)
    world.board.look_up(["n2"])
    notes.after_copy = world.board.before_kick
    assert ["n2"] == world.say(n2=OPENED)


def test_a_note_written_while_the_page_is_turned_is_found_until_the_kick_is_taken() -> None:
    world = World(n2=CLOSED).after_the_start()
    watched(world).before_update = world.board.before_kick
    world.board.look_up(["n2"])
    assert ["n2"] == world.say(n2=OPENED)


# All of them, as they come.

ROUNDS = draws(40, 750)
ROUNDS_LAST_S = 20.0 if WHOLE else 3.0  # on a machine that others keep busy: as many as go into that
BOTH_WAYS_WITHIN_S = 120.0  # longer, until both ways were gone
NODES = tuple(f"n{i}" for i in range(4))
PODS = 6
LOST_AFTER_S = 60.0


@pytest.fixture
def shortest_switch_interval() -> Iterator[None]:
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval_s)


Ask = Callable[[Board], object]


def by_names(board: Board) -> object:
    return board.look_up(NODES).survivors


def as_spelled(board: Board) -> object:
    found = board.look_up_spelled([spell(name) for name in NODES])
    assert found is not None
    return found[0].survivors


class Scheduler:
    """Pods that ask, each in a thread; one that was refused asks again only after a kick, as with kube-scheduler: one
    that came since its attempt began, or later. And the thread that kicks, when it was asked to."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.world = World(**dict.fromkeys(NODES, CLOSED)).after_the_start()
        self.late = 0
        self.requests: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.world.board._on_late_release = self._released_late
        self.kicks = 0
        self.bound = [0] * PODS
        self.done = False
        threads = [threading.Thread(target=self._pod, args=(number,), daemon=True) for number in range(PODS)]
        self.threads = [*threads, threading.Thread(target=self._kick, daemon=True)]

    def _released_late(self, _: object) -> None:
        self.late += 1
        self.requests.put(None)

    def _pod(self, number: int) -> None:
        while not self.done:
            kicks = self.kicks
            if self.ask(self.world.board):
                self.bound[number] += 1
                continue
            while self.kicks == kicks and not self.done:
                time.sleep(0)

    def _kick(self) -> None:
        while not self.done:
            if self.requests.empty():
                time.sleep(0)
                continue
            self.requests.get()
            self.world.board.before_kick()
            self.kicks += 1
            self.world.board.after_kick()

    def heal(self) -> bool:
        """Opens all nodes; whether each pod was bound after that."""
        before = list(self.bound)
        if self.world.say(**dict.fromkeys(NODES, OPENED)):
            self.requests.put(None)
        lost_at = time.monotonic() + LOST_AFTER_S
        while time.monotonic() < lost_at:
            if all(now > then for now, then in zip(self.bound, before, strict=True)):
                return True
            time.sleep(0)
        return False


@pytest.mark.usefixtures("shortest_switch_interval")
@pytest.mark.parametrize("ask", [by_names, as_spelled], ids=["asked by names", "asked by names as requests spell them"])
def test_no_pod_is_left_waiting_by_thousands_of_heals_and_kicks(ask: Ask) -> None:
    scheduler = Scheduler(ask)
    for thread in scheduler.threads:
        thread.start()
    try:
        begun = time.monotonic()
        for number in itertools.count():
            lasted_s = time.monotonic() - begun
            both = scheduler.kicks > 0 and scheduler.late > 0
            if (both and (number >= ROUNDS or lasted_s > ROUNDS_LAST_S)) or lasted_s > BOTH_WAYS_WITHIN_S:
                break
            assert scheduler.heal()
            scheduler.world.say(**dict.fromkeys(NODES, CLOSED))
    finally:
        scheduler.done = True
        for thread in scheduler.threads:
            thread.join(5.0)
    assert (True, True) == (scheduler.kicks > 0, scheduler.late > 0)  # both ways were gone
