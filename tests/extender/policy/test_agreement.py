"""What operators have ordered, and who agrees: a process that starts, another replica, after other settings."""

import pytest

from extender.policy.caps import Limit
from extender.policy.damping import Damping
from extender.policy.gates import Gate
from extender.policy.reasons import CLOSED_HELD, CLOSED_NOT_READY, OPEN
from kube.times import format_time
from tests.extender.policy.cluster import CAPS, DAY_S, GATE, STORM, WALL, Cluster, cluster, names

# Restart and replicas.


def history(world: Cluster) -> None:
    """Nodes that fail one after the other, more than the cap lets close, and one storm that lasts."""
    for number in (7, 3, 5, 1, 9, 2, 8):
        world.bad(f"n{number:03}")
        world.turn(70.0)
    world.bad(*(f"n{number:03}" for number in range(12, 20)), cause="dns")
    world.turn(5.0)


def test_a_process_that_starts_holds_the_same_nodes() -> None:
    world = cluster(20, storm=STORM)
    history(world)
    before = (world.closed(), world.held())
    assert names(1, 2, 3, 5, 7, 9) == before[0]
    world.start()
    world.turn(3.0)
    assert before == (world.closed(), world.held())


def test_a_second_replica_with_another_clock_and_another_order_holds_the_same_nodes() -> None:
    world = cluster(20, storm=STORM)
    history(world)
    other = Cluster(GATE, caps=CAPS, storm=STORM)
    other.monotonic, other.wall_ahead = 5_000.0, world.wall - 5_000.0 + 0.4
    other.nodes, other.pods = dict(sorted(world.nodes.items(), reverse=True)), world.pods
    for name in other.nodes:
        other.change(name, born_at=other.monotonic - DAY_S)
    other.turn()
    assert (world.closed(), world.held()) == (other.closed(), other.held())


def test_when_the_cap_becomes_smaller_the_newest_are_opened() -> None:
    world = cluster(10)
    for number in range(3):
        world.bad(f"n{number:03}")
        world.turn(10.0)
    world.rules = type(world.rules)((Gate("health", cap=Limit(absolute=1)),), CAPS, None)
    world.start()
    world.turn()
    assert names(0) == world.closed()


def test_a_gate_of_another_name_is_another_gate() -> None:
    world = cluster(10)
    world.bad("n000")
    world.turn()
    world.board.look_up(["n000"])
    world.rules = type(world.rules)((Gate("renamed"),), CAPS, None)
    world.changed = dict.fromkeys(world.nodes)
    world.pods = {(name, "renamed"): pods for (name, _), pods in world.pods.items()}
    assert (["n000"], names(0)) == (world.turn(), world.closed("renamed"))


@pytest.mark.parametrize("step_s", [-86_400.0, -3.0, 3.0, 86_400.0])
def test_steps_of_the_wall_clock_close_and_open_nothing(step_s: float) -> None:
    world = cluster(10, storm=STORM)
    for number in range(4):
        world.bad(f"n{number:03}")
        world.turn(30.0)
    before = (world.closed(), world.held())
    world.wall_ahead += step_s
    world.changed = dict.fromkeys(world.nodes)
    world.run(120.0)
    assert before == (world.closed(), world.held())


# Orders.


@pytest.mark.parametrize(
    ("orders", "expected"),
    [
        pytest.param({"o": "{order: hold, scope: {node: n005}}"}, ("n005", CLOSED_HELD, "hold"), id="hold a good node"),
        pytest.param(
            {"o": "{order: exempt, scope: {node: n000}, author: anna, reason: knows better}"},
            ("n000", OPEN, "exempt"),
            id="exempt a bad node",
        ),
        pytest.param({"o": "{order: pause}"}, ("n001", OPEN, "pause"), id="pause: no new closure"),
        pytest.param({"o": "{order: pause}"}, ("n000", CLOSED_NOT_READY, ""), id="pause: a closed one stays"),
        pytest.param(
            {"a": "{order: hold, scope: {gate: health}}", "b": "{order: exempt, scope: {node: n000}}"},
            ("n000", OPEN, "exempt"),
            id="the narrowest scope wins",
        ),
    ],
)
def test_what_operators_order(orders: dict[str, str], expected: tuple[str, str, str]) -> None:
    world = cluster(10)
    world.bad("n000")
    world.turn()
    world.order(**orders)
    world.turn(10.0)
    world.bad("n001")
    world.turn(10.0)
    name, reason, held_by = expected
    assert (reason, held_by) == (world.decision(name).reason, world.decision(name).held_by)


def test_a_gate_that_was_armed_by_an_order_stays_so_while_things_happen_at_another_one() -> None:
    world = cluster(10, Gate("a"), Gate("b", armed=False))
    world.bad("n003", gate="b")
    world.order(o="{order: arm, scope: {gate: b}}")
    world.turn()
    world.bad("n001", gate="a")
    world.turn()
    assert (True, names(1, 3)) == (world.state("b").armed, set(world.board.look_up(sorted(world.nodes)).refused))


def test_an_order_that_ends_releases_the_node_and_it_is_kicked() -> None:
    world = cluster(10)
    ends = format_time(WALL + 600.0)
    world.order(o=f'{{order: hold, scope: {{node: n000}}, expires: "{ends}"}}')
    world.turn()
    world.board.look_up(["n000"])
    world.run(599.0)
    assert names(0) == world.closed()
    at = world.previous.due_at(world.monotonic, world.wall)
    assert (["n000"], set()) == (world.turn(at - world.monotonic), world.closed())


def test_a_pause_is_kept_over_a_restart_who_failed_before_stays_closed() -> None:
    world = cluster(10)
    world.bad("n000")
    world.turn(10.0)
    world.order(o=f'{{order: pause, created: "{format_time(world.wall)}"}}')
    world.turn(10.0)
    world.bad("n001")
    world.turn(10.0)
    world.start()
    world.turn()
    assert (names(0), {"n001": "pause"}) == (world.closed(), dict(world.held()))


@pytest.mark.parametrize(
    ("told_good", "closed"),
    [
        pytest.param(False, 10, id="nothing tells that they were in use: new, and closed beside the cap"),
        pytest.param(True, 3, id="one of us has written that they were healthy once: they count"),
    ],
)
def test_a_young_cluster_whose_roll_out_fails_stays_within_the_cap_over_a_restart(told_good: bool, closed: int) -> None:
    """The pods that were good are gone; those that took their place have failed at once."""
    world = Cluster(GATE, caps=CAPS)
    world.add(*(f"n{number:03}" for number in range(10)), age_s=120.0)
    world.turn(30.0)
    world.bad(*world.nodes)
    world.turn(1.0)
    assert 3 == len(world.closed())
    for name in world.nodes:
        world.change(name, told_good=told_good)
    world.start()
    world.turn(1.0)
    assert closed == len(world.closed())
    other = Cluster(GATE, caps=CAPS)
    other.nodes, other.pods, other.monotonic = world.nodes, world.pods, world.monotonic
    other.start()
    other.turn()
    assert world.closed() == other.closed()


def test_a_node_that_was_never_healthy_is_new_until_it_is() -> None:
    world = cluster(10)
    world.add("new", age_s=0.0, good=False)
    world.turn(1.0)
    assert (True, False) == (world.decision("new").new, world.decision("n000").new)
    world.good("new")
    world.turn(1.0)
    world.bad("new")
    world.turn(1.0)
    assert (False, CLOSED_NOT_READY) == (world.decision("new").new, world.decision("new").verdict)


@pytest.mark.parametrize(
    ("failed_after_s", "closed"),
    [
        pytest.param(0, 10, id="Ready was False from the start: new, and closed beside the cap"),
        pytest.param(1, 10, id="nor is a second a sign of anything: times are rounded"),
        pytest.param(2, 3, id="Ready turned False later: it was in use, so it counts"),
    ],
)
def test_a_process_that_starts_tells_a_young_node_that_failed_from_one_that_was_never_good(
    failed_after_s: int, closed: int
) -> None:
    world = Cluster(GATE, caps=CAPS)
    world.add(*(f"n{number:03}" for number in range(10)), age_s=120.0)
    world.bad(*world.nodes, since=world.wall - 60.0)
    for name in world.nodes:
        pod = world.pods[name, "health"][0]
        fields = {field: getattr(pod, field) for field in type(pod).__slots__}
        world.replace(name, type(pod)(**fields | {"started": format_time(world.wall - 60.0 - failed_after_s)}))
    world.turn()
    assert closed == len(world.closed())


def test_a_node_that_an_exemption_opens_is_told_the_same_at_the_next_look() -> None:
    """Nothing keeps it closed any more: damping is for those that are."""
    made = cluster(5, Gate("health", damping=Damping()))
    for _ in range(3):
        made.bad("n000")
        made.turn(1.0)
        made.good("n000")
        made.turn(1.0)
    before = made.held()
    made.replace("n000")  # its health pod is on its way
    made.order(o="{order: exempt, scope: {node: n000}}")
    told = []
    for _ in range(2):
        made.turn()
        told.append((made.closed(), made.held()))
        made.changed["n000"] = None
    assert ({"n000": "damping"}, [(set(), {"n000": "grace"})] * 2) == (before, told)
