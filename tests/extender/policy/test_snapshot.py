"""Looking names up, and the order that no kick is lost by."""

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.policy.decide import Decision
from extender.policy.reasons import CLOSED_NOT_READY, OPEN
from extender.policy.snapshot import REFUSED_LIMIT, UNKNOWN_NODE, Board, Snapshot, sort_out

REASONS = {"a": "", "b": "", "bad": "closed"}
CLOSED = Decision(CLOSED_NOT_READY)


@pytest.mark.parametrize(
    ("names", "survivors", "refused"),
    [
        pytest.param(["b", "a"], ["b", "a"], {}, id="all open, in the order asked"),
        pytest.param(["b", "bad", "x", "a"], ["b", "a"], {"bad": "closed", "x": "unknown"}, id="mixed"),
        pytest.param(["bad"], [], {"bad": "closed"}, id="none left"),
        pytest.param([], [], {}, id="none asked"),
        pytest.param(["a", "bad", "a", "bad"], ["a"], {"bad": "closed"}, id="asked twice, answered once"),
    ],
)
def test_names_are_sorted_out(names: list[str], survivors: list[str], refused: dict[str, str]) -> None:
    answer = sort_out(names, REASONS, "unknown")
    assert (survivors, refused) == (answer.survivors, answer.refused)


@given(st.lists(st.sampled_from(["a", "b", "bad", "x", "y"])))
def test_every_name_is_on_exactly_one_side(names: list[str]) -> None:
    answer = sort_out(names, REASONS, "unknown")
    assert sorted(set(names)) == sorted([*answer.survivors, *answer.refused])


def test_a_name_is_looked_up_once_though_asked_twice() -> None:
    class Flips(dict):
        answers = iter(["", "closed"])

        def get(self, *_):
            return next(self.answers)

    answer = sort_out(["a", "a"], Flips(), "unknown")
    assert (["a"], {}) == (answer.survivors, answer.refused)


class World:
    """A board whose nodes are opened and closed by hand, each by a swap."""

    def __init__(self, **nodes: Decision) -> None:
        self.late: list[str] = []
        self.board = Board(self.late.append)
        self.first = self.board.swap(Snapshot().with_decisions("health", nodes))

    def say(self, **nodes: Decision | None) -> list[str]:
        """The nodes that the swap gives for a kick."""
        return self.board.swap(self.board.snapshot.with_decisions("health", nodes))

    def refuse(self, *names: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        """A request that finds these nodes closed. meanwhile: what happens between its look and its note."""

        once = [meanwhile]

        class Interrupted(dict[str, str]):
            def get(self, name: str, default: str = "") -> str:  # type: ignore[override]
                found = super().get(name, default)
                if name == names[-1] and once:
                    once.pop()()
                return found

        snapshot = self.board._snapshot
        self.board._snapshot = Snapshot(snapshot.gates, Interrupted(snapshot.reasons))
        assert list(names) == list(self.board.look_up(names).refused)


OPENED = Decision(OPEN)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param({"n1": CLOSED, "n2": OPENED, "n3": OPENED}, ["n2"], id="one open node"),
        pytest.param({"n1": CLOSED}, [], id="none while all is closed"),
        pytest.param({}, [], id="none without nodes"),
    ],
)
def test_the_first_swap_gives_a_kick_for_what_the_process_before_refused(nodes, expected) -> None:
    world = World(**nodes)
    assert (True, expected, []) == (world.board.filled, world.first, world.say(n4=OPENED))


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        pytest.param(["n2"], ["n2"], id="X55: a node that was refused is kicked when it opens"),
        pytest.param(["n1"], [], id="X55: none for a node that stays closed"),
        pytest.param([], [], id="X55: no kick without a refusal"),
        pytest.param(["n2", ""], [], id="X55: none for a request that asks for no name: its answer is an Error"),
    ],
)
def test_a_swap_gives_the_refused_nodes_that_opened(refused, expected) -> None:
    world = World(n1=CLOSED, n2=CLOSED)
    if refused:
        world.refuse(*refused)
    assert (expected, []) == (world.say(n2=OPENED), world.say(n2=OPENED))


def test_a_refused_node_that_is_no_more_is_kicked_when_it_comes_back_and_opens() -> None:
    world = World(n1=CLOSED)
    world.refuse("n1", "n2")
    assert [[], [], ["n1"], ["n2"]] == [
        world.say(n1=None),
        world.say(n1=CLOSED),
        world.say(n1=OPENED),
        world.say(n2=OPENED),
    ]


def test_a_release_between_the_look_and_the_note_is_found_by_the_request() -> None:
    world = World(n2=CLOSED)
    given = []
    world.refuse("n2", meanwhile=lambda: given.append(world.say(n2=OPENED)))
    assert ([[]], ["n2"], []) == (given, world.late, world.say(n2=CLOSED) + world.say(n2=OPENED))


def test_a_refusal_noted_after_its_node_opened_and_closed_again_waits_for_the_next_release() -> None:
    world = World(n2=CLOSED)
    world.refuse("n2", meanwhile=lambda: (world.say(n2=OPENED), world.say(n2=CLOSED)))
    assert ([], ["n2"]) == (world.late, world.say(n2=OPENED))


class Notes(dict[str, str]):
    """The memory of refusals, with what happens just before a note is written and just after the notes were read."""

    before_update: Callable[[], object] = staticmethod(lambda: None)
    after_copy: Callable[[], object] = staticmethod(lambda: None)

    def update(self, *others: dict[str, str]) -> None:  # type: ignore[override]
        self.before_update()
        super().update(*others)

    def copy(self) -> dict[str, str]:
        copied = super().copy()
        self.after_copy()
        return copied


def test_a_request_reads_the_snapshot_again_after_its_note_is_written() -> None:
    world = World(n2=CLOSED)
    world.board._refused = notes = Notes()
    notes.before_update = lambda: world.say(n2=OPENED)
    world.board.look_up(["n2"])
    assert ["n2"] == world.late


def test_a_swap_reads_the_notes_after_its_snapshot_is_written() -> None:
    world = World(n2=CLOSED)
    world.board._refused = notes = Notes()
    answers = []
    notes.after_copy = lambda: answers.append(world.board.look_up(["n2"]))
    world.say(n2=OPENED)
    assert [["n2"]] == [answer.survivors for answer in answers]


def test_another_node_that_opens_meanwhile_is_no_kick() -> None:
    world = World(n1=CLOSED, n2=CLOSED)
    world.refuse("n2", meanwhile=lambda: world.say(n1=OPENED))
    assert ([], ["n2"]) == (world.late, world.say(n2=OPENED))


def test_names_nobody_knows_do_not_fill_the_memory() -> None:
    world = World(n1=CLOSED, n2=CLOSED)
    world.refuse("n1", *(f"x{i}" for i in range(REFUSED_LIMIT)))
    world.refuse(*(f"y{i}" for i in range(1000)))
    world.refuse("n2")
    assert REFUSED_LIMIT + 2 == len(world.board._refused)
    assert (["n1"], 1) == (world.say(n1=OPENED), len(world.board._refused))
    assert ["n2"] == world.say(n2=OPENED)


def test_a_snapshot_never_changes() -> None:
    before = Snapshot().with_decisions("health", {"n1": CLOSED, "n2": OPENED})
    after = before.with_decisions("health", {"n1": OPENED, "n2": None})
    assert {"n1": CLOSED_NOT_READY, "n2": OPEN} == before.reasons
    assert {"n1": CLOSED, "n2": OPENED} == before.gates["health"]
    assert ({"n1": OPEN}, {"n1": OPENED}) == (after.reasons, after.gates["health"])


def test_reasons_are_shared_where_only_evidence_differs() -> None:
    before = Snapshot().with_decisions("health", {"n1": CLOSED})
    after = before.with_decisions("health", {"n1": Decision(CLOSED_NOT_READY, evidence="another")})
    assert before.reasons is after.reasons


def test_a_name_in_no_snapshot_is_without_a_health_pod() -> None:
    assert {"x": UNKNOWN_NODE} == World().board.look_up(["x"]).refused


FLIPS = 20_000
NODES = tuple(f"n{i}" for i in range(4))
REQUESTERS = 6
LOST_AFTER_S = 2.0


@pytest.fixture
def shortest_switch_interval() -> Iterator[None]:
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval_s)


@pytest.mark.usefixtures("shortest_switch_interval")
def test_no_kick_is_lost_by_twenty_thousand_flips_under_six_request_threads() -> None:
    """While all nodes are open nobody is refused, so a refusal that is still remembered then is a kick that is lost."""
    world = World(**dict.fromkeys(NODES, CLOSED))
    done = threading.Event()
    kicked = Counter[str]()

    def ask() -> None:
        while not done.is_set():
            world.board.look_up(NODES)

    requesters = [threading.Thread(target=ask, daemon=True) for _ in range(REQUESTERS)]
    for thread in requesters:
        thread.start()
    try:
        for _ in range(FLIPS // 2):
            kicked.update(world.say(**dict.fromkeys(NODES, OPENED)))
            lost_at = time.monotonic() + LOST_AFTER_S
            while world.board._refused and time.monotonic() < lost_at:
                time.sleep(0)
            assert {} == world.board._refused
            kicked.update(world.say(**dict.fromkeys(NODES, CLOSED)))
    finally:
        done.set()
        for thread in requesters:
            thread.join(5.0)
    assert (True, True) == (bool(kicked), bool(world.late))  # both ways were gone
