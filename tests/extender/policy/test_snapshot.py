"""Looking names up, and which nodes a swap gives for a kick."""

import random
from collections.abc import Callable
from typing import Self

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from extender.policy import snapshot as board_of
from extender.policy.decision import Decision
from extender.policy.reasons import CLOSED_NOT_READY, OPEN
from extender.policy.snapshot import INHERITED_KICKS, UNKNOWN_NODE, Board, Snapshot, sort_out
from tests.extender.snapshots import with_decisions
from tools.kit.cases import cases

CLOSED = Decision(CLOSED_NOT_READY)
OPENED = Decision(OPEN)
STEPS = 5_000
ASKED = with_decisions(Snapshot(), "health", {"a": OPENED, "b": OPENED, "bad": CLOSED})


@pytest.mark.parametrize(
    ("names", "survivors", "refused"),
    [
        pytest.param(["b", "a"], ["b", "a"], {}, id="all open, in the order asked"),
        pytest.param(["b", "bad", "x", "a"], ["b", "a"], {"bad": CLOSED_NOT_READY, "x": UNKNOWN_NODE}, id="mixed"),
        pytest.param(["bad"], [], {"bad": CLOSED_NOT_READY}, id="none left"),
        pytest.param(["x", "bad"], [], {"x": UNKNOWN_NODE, "bad": CLOSED_NOT_READY}, id="none left, one unknown"),
        pytest.param([], [], {}, id="none asked"),
        pytest.param(["a", "bad", "a", "bad"], ["a"], {"bad": CLOSED_NOT_READY}, id="asked twice, answered once"),
        pytest.param(["a", "a"], ["a"], {}, id="asked twice, open"),
    ],
)
def test_names_are_sorted_out(names: list[str], survivors: list[str], refused: dict[str, str]) -> None:
    answer = sort_out(names, ASKED)
    assert (survivors, refused) == (answer.survivors, answer.refused)


@given(st.lists(st.sampled_from(["a", "b", "bad", "x", "y"])))
def test_every_name_is_on_exactly_one_side_and_survivors_are_in_the_order_asked(names: list[str]) -> None:
    answer = sort_out(names, ASKED)
    assert sorted(set(names)) == sorted([*answer.survivors, *answer.refused])
    assert [name for name in dict.fromkeys(names) if name in ("a", "b")] == answer.survivors


class World:
    """A board whose nodes are opened and closed by hand, each by a swap."""

    def __init__(self, **nodes: Decision) -> None:
        self.late: list[str] = []
        self.board = Board(self.late.extend)
        self.first = self.board.swap(with_decisions(Snapshot(), "health", nodes))

    def kick(self) -> None:
        """A kick that is taken."""
        self.board.before_kick()
        self.board.after_kick()

    def after_the_start(self) -> Self:
        """The kicks are over that are for what another process refused."""
        for _ in range(INHERITED_KICKS):
            self.kick()
        return self

    def say(self, **nodes: Decision | None) -> list[str]:
        """The nodes that the swap gives for a kick."""
        return self.board.swap(with_decisions(self.board.snapshot, "health", nodes))

    def refuse(self, *names: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        """A request that finds these nodes closed. meanwhile: what happens between its look and its note."""

        once = [meanwhile]

        class Interrupted(dict[str, str]):
            def __getitem__(self, name: str) -> str:
                found = super().__getitem__(name)
                if once:
                    once.pop()()
                return found

        snapshot = self.board._snapshot
        state = snapshot.gates["health"]
        self.board._snapshot = Snapshot({"health": replace(state, closed=Interrupted(state.closed))}, snapshot.nodes)
        assert list(names) == list(self.board.look_up(names).refused)


# What another process refused.


@cases(
    "nodes, expected",
    ("nodes that are open", {"n1": CLOSED, "n2": OPENED, "n3": OPENED}, ["n2", "n3"]),
    ("a few of them", {f"n{i}": OPENED for i in range(100)}, sorted(f"n{i}" for i in range(100))[:8]),
    ("none while all is closed", {"n1": CLOSED}, []),
    ("none without nodes", {}, []),
)
def test_the_first_swap_gives_a_kick_for_what_the_process_before_refused(nodes, expected) -> None:
    world = World(**nodes)
    assert (True, expected) == (world.board.filled, world.first)


def test_where_all_was_closed_at_first_the_node_that_opens_later_is_kicked_though_we_refused_it_to_nobody() -> None:
    world = World(n1=CLOSED, n2=CLOSED)
    assert ["n2"] == world.say(n2=OPENED)


def test_a_process_that_is_about_to_end_may_have_answered_what_the_first_kick_woke() -> None:
    world = World(n1=CLOSED, n2=CLOSED, n3=OPENED)
    world.kick()
    assert ["n1"] == world.say(n1=OPENED)
    world.kick()
    assert [] == world.say(n2=OPENED)


def test_a_kick_that_was_not_taken_does_not_count() -> None:
    world = World(n1=CLOSED, n2=CLOSED)
    for _ in range(10):
        world.board.before_kick()
    assert ["n1"] == world.say(n1=OPENED)


# What we refused ourselves.


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
    world = World(n1=CLOSED, n2=CLOSED).after_the_start()
    if refused:
        world.refuse(*refused)
    assert (expected, []) == (world.say(n2=OPENED), world.say(n2=OPENED))


def test_a_refused_node_that_is_no_more_is_kicked_when_it_comes_back_and_opens() -> None:
    world = World(n1=CLOSED).after_the_start()
    world.refuse("n1", "n2")
    assert [[], [], ["n1"], ["n2"]] == [
        world.say(n1=None),
        world.say(n1=CLOSED),
        world.say(n1=OPENED),
        world.say(n2=OPENED),
    ]


def test_a_release_between_the_look_and_the_note_is_found_by_the_request() -> None:
    world = World(n2=CLOSED).after_the_start()
    given = []
    world.refuse("n2", meanwhile=lambda: given.append(world.say(n2=OPENED)))
    assert ([[]], ["n2"], []) == (given, world.late, world.say(n2=CLOSED) + world.say(n2=OPENED))


def test_a_refusal_noted_after_its_node_opened_and_closed_again_waits_for_the_next_release() -> None:
    world = World(n2=CLOSED).after_the_start()
    world.refuse("n2", meanwhile=lambda: (world.say(n2=OPENED), world.say(n2=CLOSED)))
    assert ([], ["n2"]) == (world.late, world.say(n2=OPENED))


def test_another_node_that_opens_meanwhile_is_no_kick() -> None:
    world = World(n1=CLOSED, n2=CLOSED).after_the_start()
    world.refuse("n2", meanwhile=lambda: world.say(n1=OPENED))
    assert ([], ["n2"]) == (world.late, world.say(n2=OPENED))


def _spelled(board: Board, names: list[str]) -> None:
    board.look_up_spelled([f'"{name}"'.encode() for name in names])


@pytest.mark.parametrize("ask", [Board.look_up, _spelled], ids=["names", "names as a request spells them"])
@pytest.mark.parametrize(
    ("asked", "released"),
    [
        pytest.param(["n1", "n2", "n3", "n4", "n5"], [["n2"], ["n3"], ["n4"], ["n1"]], id="about every closed node"),
        pytest.param(["n1", "n3", "n5"], [[], ["n3"], [], ["n1"]], id="about some of them"),
        pytest.param(["n5"], [[], [], [], []], id="about none of them"),
    ],
)
def test_of_several_gates_a_node_is_kicked_when_the_one_opens_that_it_was_refused_by(
    ask: Callable[[Board, list[str]], object], asked: list[str], released: list[list[str]]
) -> None:
    """n2 is closed at two gates: the pod is told of the first, and told of the second when it has tried again."""
    first = with_decisions(Snapshot(), "first", {"n1": CLOSED, "n2": CLOSED, "n5": OPENED})
    second = with_decisions(first, "second", {"n2": CLOSED, "n3": CLOSED})
    snapshot = with_decisions(second, "third", {"n4": CLOSED})
    board = World().after_the_start().board
    board.swap(snapshot)
    ask(board, asked)
    opened = [("first", "n2"), ("second", "n3"), ("third", "n4"), ("first", "n1")]
    assert released == [board.swap(with_decisions(board.snapshot, gate, {node: OPENED})) for gate, node in opened]


# What was noted of a snapshot is not noted again.

Step = Callable[[World], object]


def ask(*names: str) -> Step:
    return lambda world: _spelled(world.board, [*names])


def say(**nodes: Decision) -> Step:
    return lambda world: world.say(**nodes)


def turn(world: World) -> None:
    """A kick is about to be written, and not taken yet."""
    world.board.before_kick()


@cases(
    "steps, released",
    ("refused once", [ask("n1", "n2")], ["n1"]),
    ("refused twice", [ask("n1", "n2"), ask("n1", "n2")], ["n1"]),
    ("another time another one", [ask("n1", "n2"), ask("n2", "n3")], ["n1"]),
    ("never refused", [ask("n2", "n3")], []),
    ("kicked since", [ask("n1", "n2"), World.kick], []),
    ("kicked, and refused again", [ask("n1", "n2"), World.kick, ask("n1", "n2")], ["n1"]),
    ("then one of fewer", [ask("n1", "n2", "n3"), World.kick, ask("n1", "n2")], ["n1"]),
    ("kicked at the second try", [ask("n1", "n2"), turn, World.kick], []),
    ("refused between two tries", [ask("n1", "n2"), turn, ask("n1", "n2"), World.kick], ["n1"]),
    ("opened and closed since, and not asked about", [ask("n1", "n2"), say(n1=OPENED), say(n1=CLOSED)], []),
    ("and refused after that", [ask("n1", "n2"), say(n1=OPENED), say(n1=CLOSED), ask("n1", "n2")], ["n1"]),
    ("another node closed between", [ask("n1", "n2"), say(n4=CLOSED), ask("n1", "n2")], ["n1"]),
)
def test_a_node_that_was_refused_since_the_last_kick_gives_one_when_it_opens(
    steps: list[Step], released: list[str]
) -> None:
    world = World(n1=CLOSED, n2=CLOSED, n3=CLOSED, n4=OPENED).after_the_start()
    for step in steps:
        step(world)
    assert (released, [], []) == (world.say(n1=OPENED), world.say(n1=OPENED), world.late)


def test_whatever_happens_names_as_requests_spell_them_are_noted_as_names_are(monkeypatch, seed) -> None:
    """By chance: requests, swaps and kicks, some of them between the look of a request and its note."""
    chance = random.Random(f"{seed} noted")
    names = ["n1", "n2", "n3", "n4", "n5"]
    meanwhile: list[Step] = []
    worlds = [World(**dict.fromkeys(names, CLOSED)).after_the_start() for _ in range(2)]
    by = dict(zip(map(id, worlds), (Board.look_up, _spelled), strict=True))

    def interrupted(look: Callable[..., object]) -> Callable[..., object]:
        def looked(*details: object) -> object:
            found = look(*details)
            if meanwhile:
                meanwhile[0](now)
            return found

        return looked

    for look in ("sort_out", "sort_out_spelled"):
        monkeypatch.setattr(board_of, look, interrupted(getattr(board_of, look)))

    def changed() -> Step:
        decisions = {name: chance.choice([CLOSED, OPENED]) for name in chance.sample(names, chance.randint(1, 2))}
        return chance.choice([say(**decisions), say(**decisions), World.kick, turn])

    for number in range(STEPS):
        asked = chance.sample(names, chance.randint(2, len(names)))
        request: Step = lambda world: by[id(world)](world.board, asked)  # noqa: B023, E731
        step = chance.choice([request, changed()])
        meanwhile[:] = [changed()] if step is request and chance.random() < 0.3 else []
        told = []
        for now in worlds:
            given = step(now)
            told.append((sorted(given or ()) if step is not request else None, sorted(now.late)))
            now.late.clear()
        assert told[0] == told[1], f"step {number}"


def test_a_snapshot_never_changes() -> None:
    before = with_decisions(Snapshot(), "health", {"n1": CLOSED, "n2": OPENED})
    after = with_decisions(before, "health", {"n1": OPENED, "n2": None})
    assert {"n1": CLOSED_NOT_READY, "n2": OPEN} == before.reasons
    assert {"n1": CLOSED, "n2": OPENED} == before.gates["health"].decisions
    assert ({"n1": OPEN}, {"n1": OPENED}) == (after.reasons, after.gates["health"].decisions)
    assert ({"n1", "n2"}, {"n1"}) == (before.nodes, after.nodes)


def test_what_is_closed_is_shared_where_only_evidence_differs() -> None:
    before = with_decisions(Snapshot(), "health", {"n1": CLOSED})
    after = with_decisions(before, "health", {"n1": Decision(CLOSED_NOT_READY, evidence="another")})
    assert before.gates["health"].closed is after.gates["health"].closed


def test_a_name_in_no_snapshot_is_without_a_health_pod() -> None:
    assert {"x": UNKNOWN_NODE} == World().board.look_up(["x"]).refused
