"""What a wrong check, a bad image or a dead service can do at most: a cluster by hand, all stages together."""

from collections.abc import Callable

import pytest

from extender.policy.caps import Caps, Limit
from extender.policy.damping import Damping
from extender.policy.decision import CapState
from extender.policy.gates import Gate
from extender.policy.reasons import CLOSED_NO_HEALTH_POD, CLOSED_NOT_READY, OPEN
from extender.policy.storm import StormRule
from kube.times import format_time
from tests.extender.policy.cluster import CAPS, GATE, STORM, Cluster, cluster, names
from tools.kit.cases import cases

POOL = "readygate.dev/pool"


# A rack without power.


def test_a_dead_rack_is_a_storm_that_lasts_and_takes_no_place_under_the_cap() -> None:
    """Its nodes' own Ready is Unknown, so Kubernetes' taint keeps pods off them; the cap is for who fails besides."""
    world = cluster(20, storm=STORM)
    rack = names(0, 1, 2, 3, 4)
    for name in rack:
        world.change(name, ready="Unknown", ready_since=format_time(world.wall))
    world.turn(1.0)
    assert (set(), dict.fromkeys(rack, "storm")) == (world.closed(), dict(world.held()))
    world.run(86_400.0)
    assert (set(), dict.fromkeys(rack, "storm")) == (world.closed(), dict(world.held()))
    world.bad("n010", "n011")
    world.turn(1.0)
    assert (names(10, 11), rack) == (world.closed(), set(world.held()))
    for name in rack:
        world.change(name, ready="True")
    world.turn(1.0)
    assert (names(10, 11), {}) == (world.closed(), dict(world.held()))


def test_fewer_dead_nodes_than_make_a_storm_are_closed() -> None:
    world = cluster(20, storm=STORM)
    for name in names(0, 1, 2):
        world.change(name, ready="Unknown", ready_since=format_time(world.wall))
    world.turn(1.0)
    assert names(0, 1, 2) == world.closed()


def test_a_damped_node_that_loses_its_place_while_its_pod_is_missing_is_open_by_grace() -> None:
    """Found by a million steps by chance: nobody was said to hold it, and it had healed no more."""
    world = cluster(10, Gate("health", cap=Limit(absolute=1), damping=Damping(), missing_grace_s=30.0))
    for _ in range(2):
        world.bad("n000")
        world.turn(20.0)
        world.good("n000")
        world.turn(1.0)
    assert {"n000": "damping"} == dict(world.held())
    world.replace("n000")
    world.bad("n001", since=world.wall - 3600.0)
    world.turn(1.0)
    assert ({"n001"}, {"n000": "grace"}) == (world.closed(), dict(world.held()))
    decision = world.decision("n000")
    assert ("health pod missing, last verdict", CLOSED_NO_HEALTH_POD) == (decision.note, decision.verdict)


# Caps.


@pytest.mark.parametrize(
    ("gates", "caps", "expected"),
    [
        pytest.param((Gate("a"), Gate("b")), CAPS, 3, id="30% of ten, of all gates together"),
        pytest.param((Gate("s", armed=False), Gate("a")), CAPS, 3, id="of those that are armed"),
        pytest.param((Gate("s", armed=False),), CAPS, None, id="no gate refuses"),
        pytest.param((Gate("a", severity="warn"),), CAPS, None, id="none is to refuse"),
        pytest.param((Gate("a"),), Caps(leave_in_pool=1), None, id="there is no such cap"),
    ],
)
def test_how_many_nodes_the_cluster_may_close(gates: tuple[Gate, ...], caps: Caps, expected: int | None) -> None:
    assert expected == cluster(10, *gates, caps=caps).board.snapshot.cap


def test_the_cap_of_the_cluster_follows_its_nodes() -> None:
    world = cluster(10)
    world.remove("n000")
    world.turn(1.0)
    assert world.board.snapshot.cap == 2


def test_beyond_the_cap_the_newest_are_held_open_and_shown() -> None:
    world = cluster(10)
    for number in range(5):
        world.bad(f"n{number:03}")
        world.turn(10.0)
    assert (names(0, 1, 2), CapState(3, 3, 2), 3) == (world.closed(), world.state().cap, world.board.snapshot.cap)
    held = world.decision("n004")
    assert (OPEN, CLOSED_NOT_READY, "cap", "cap of gate health: 30%") == (
        held.reason,
        held.verdict,
        held.held_by,
        held.note,
    )


def test_a_release_is_immediate_and_the_next_oldest_takes_the_place() -> None:
    world = cluster(10)
    for number in range(5):
        world.bad(f"n{number:03}")
        world.turn(10.0)
    world.board.look_up(["n000"])
    world.good("n000")
    assert ["n000"] == world.turn(0.02)
    assert names(1, 2, 3) == world.closed()


def given(order: str, node: str) -> Callable[[Cluster], object]:
    return lambda world: world.order(o=f"{{order: {order}, scope: {{node: {node}}}}}")


def newcomer(name: str, age_s: float) -> Callable[[Cluster], object]:
    return lambda world: world.add(name, age_s=age_s, good=False)


@cases(
    "change, closed, cap",
    ("as it is", lambda _: None, names(0, 1, 2), CapState(3, 3, 1)),
    ("a cordoned node leaves both", lambda w: w.change("n000", in_service=False), names(0, 1, 2), CapState(2, 2, 1)),
    ("a deleted node leaves both", lambda w: w.remove("n000"), names(1, 2), CapState(2, 2, 1)),
    ("a node on hold is closed beside the cap", given("hold", "n009"), names(0, 1, 9), CapState(2, 2, 2)),
    ("an exempt node is open and makes room", given("exempt", "n000"), names(1, 2, 3), CapState(3, 3, 0)),
    ("a new node is closed beside the cap", newcomer("new", 5.0), {*names(0, 1, 2), "new"}, CapState(3, 3, 1)),
    ("a node long without a health pod comes last", newcomer("old", 700.0), names(0, 1, 2), CapState(3, 3, 2)),
)
def test_who_counts(change: Callable[[Cluster], object], closed: set[str], cap: CapState) -> None:
    world = cluster(10)
    world.bad("n000", "n001", "n002", "n003")
    world.turn(10.0)
    change(world)
    world.turn(10.0)
    assert (closed, cap) == (world.closed(), world.state().cap)


def test_a_new_node_counts_from_its_first_good_pod_on_or_when_it_is_new_no_more() -> None:
    world = cluster(3)
    world.add("new", age_s=0.0, good=False)
    world.turn()
    assert ({"new"}, 1) == (world.closed(), world.state().cap.limit)
    world.good("new")
    world.turn(60.0)
    assert set() == world.closed()
    world.bad("new")
    world.turn(10.0)
    assert ({"new"}, CapState(1, 1, 0)) == (world.closed(), world.state().cap)


def test_a_cluster_of_new_nodes_stays_closed_until_the_first_good_pods() -> None:
    world = Cluster(GATE, caps=CAPS, storm=StormRule())
    world.add(*(f"n{number:03}" for number in range(10)), age_s=5.0, good=False)
    world.after_the_start()
    assert 10 == len(world.closed())
    world.run(700.0)
    assert (3, 7) == (len(world.closed()), world.state().cap.held)


@pytest.mark.parametrize("count", [0, 1])
def test_the_only_node_is_never_closed(count: int) -> None:
    world = cluster(count)
    world.bad(*world.nodes)
    world.turn()
    assert set() == world.closed()


def test_in_each_pool_one_node_is_left_open() -> None:
    world = Cluster(Gate("health"), caps=Caps(cluster=Limit(percent=100), leave_in_pool=1))
    for number in range(6):
        world.add(f"n{number:03}", labels={POOL: "gpu" if number < 2 else "web"})
    world.after_the_start()
    world.bad(*world.nodes)
    world.turn()
    assert names(0, 2, 3, 4) == world.closed()
    world.change("n001", labels={POOL: "web"})  # the pool of n000 has no other node now
    world.turn()
    assert names(1, 2, 3, 4) == world.closed()


def test_caps_of_the_cluster_count_a_node_once_for_all_armed_gates() -> None:
    world = cluster(10, Gate("a"), Gate("b"))
    world.bad("n000", "n001", gate="a")
    world.bad("n000", "n002", "n003", gate="b")
    world.turn()
    assert (names(0, 1), names(0, 2)) == (world.closed("a"), world.closed("b"))
    assert "cap of the cluster: 30%" == world.decision("n003", "b").note


def test_a_gate_in_shadow_is_counted_alone_and_refuses_nothing() -> None:
    world = cluster(10, Gate("a"), Gate("b", armed=False))
    world.bad("n000", "n001", "n002", gate="a")
    world.bad("n003", "n004", "n005", "n006", gate="b")
    world.turn()
    assert (names(0, 1, 2), names(3, 4, 5)) == (world.closed("a"), world.closed("b"))
    assert names(0, 1, 2) == set(world.board.look_up(sorted(world.nodes)).refused)


def test_a_gate_that_is_armed_shares_the_cap_from_then_on_and_one_that_is_disarmed_releases() -> None:
    world = cluster(10, Gate("a"), Gate("b", armed=False))
    world.bad("n000", "n001", "n002", gate="a")
    world.turn()
    world.bad("n003", gate="b")
    world.turn(10.0)
    world.order(o="{order: arm, scope: {gate: b}}")
    world.turn()
    assert (names(0, 1, 2), set()) == (world.closed("a"), world.closed("b"))
    world.board.look_up(sorted(world.nodes))
    world.order(o="{order: disarm}")
    assert names(0, 1, 2) == set(world.turn())


# Storms.


def test_when_all_health_pods_fail_at_once_only_those_closed_before_stay_closed() -> None:
    world = cluster(100, storm=STORM)
    world.bad("n000", "n001", cause="disk")
    world.turn()
    world.monotonic += 300.0
    world.bad(*world.nodes, cause="dns")
    world.turn(0.5)
    assert names(0, 1) == world.closed()
    assert [("dns", 98)] == [(storm.cause, storm.nodes) for storm in world.state().storms]
    assert {"storm"} == {by for name, by in world.held().items()}


def test_when_all_health_pods_are_deleted_nothing_is_closed_either() -> None:
    world = cluster(100, storm=STORM)
    for name in world.nodes:
        world.replace(name)
    world.turn()
    world.run(40.0)
    assert set() == world.closed()
    assert [(CLOSED_NO_HEALTH_POD, 100)] == [(storm.reason, storm.nodes) for storm in world.state().storms]


def test_a_storm_ends_after_a_minute_of_calm_and_who_is_still_bad_closes() -> None:
    world = cluster(20, storm=STORM)
    world.bad(*sorted(world.nodes)[:8])
    world.turn()
    assert (set(), 8) == (world.closed(), world.state().storms[0].nodes)
    world.good(*sorted(world.nodes)[2:8])
    world.turn(30.0)
    assert (set(), world.monotonic + 60.0) == (world.closed(), world.state().storms[0].until)
    world.run(59.9)
    assert set() == world.closed()
    world.run(0.2)
    assert (names(0, 1), ()) == (world.closed(), world.state().storms)


def test_storms_in_two_gates_hold_their_own_nodes() -> None:
    world = cluster(10, Gate("a"), Gate("b"), storm=STORM)
    world.bad("n000", "n001", "n002", gate="a")
    world.bad("n002", "n003", "n004", gate="b")
    world.bad("n005", gate="b", cause="another")
    world.turn()
    assert (set(), names(5)) == (world.closed("a"), world.closed("b"))


# A roll-out of a broken image, node after node, whenever it fails.


@pytest.mark.parametrize(
    "fails_after_s",
    [
        pytest.param(None, id="it never becomes Ready"),
        pytest.param(5.0, id="it fails after five seconds"),
        pytest.param(40.0, id="it fails after forty seconds"),
    ],
)
def test_a_bad_image_on_a_hundred_nodes_stays_within_the_cap(fails_after_s: float | None) -> None:
    world = cluster(100, storm=STORM)
    most, due = 0, list[tuple[float, str]]()
    for name in sorted(world.nodes):
        old = world.pods[name, "health"][0]
        new = world.pod(name, "health", "False" if fails_after_s is None else "True", "ContainersNotReady")
        new = type(new)(**{f: getattr(new, f) for f in type(new).__slots__} | {"uid": f"{old.uid}-new"})
        world.replace(name, new)
        if fails_after_s is not None:
            due.append((world.monotonic + fails_after_s, name))
        for _ in range(10):
            world.turn(1.0)
            while due and due[0][0] <= world.monotonic:
                world.bad(due.pop(0)[1])
            most = max(most, len(world.closed()))
    for _ in range(300):
        world.turn(1.0)
        while due and due[0][0] <= world.monotonic:
            world.bad(due.pop(0)[1])
        most = max(most, len(world.closed()))
    assert most <= 30
    assert 30 == len(world.closed())


# Damping.


def test_a_node_that_flaps_each_second_changes_its_state_three_times_in_ten_minutes() -> None:
    world = cluster(10)
    states = [False]
    for half_second in range(1200):
        (world.good if half_second % 2 else world.bad)("n000")
        world.turn(0.5)
        if states[-1] != ("n000" in world.closed()):
            states.append(not states[-1])
    assert [False, True, False, True] == states
    assert ("damping", CLOSED_NOT_READY) == (world.decision("n000").held_by, world.decision("n000").reason)


def test_a_node_on_trial_opens_by_itself_when_its_time_has_come_and_is_kicked() -> None:
    world = cluster(10)
    for _ in range(2):
        world.bad("n000")
        world.turn(1.0)
        world.good("n000")
        world.turn(1.0)
    world.board.look_up(["n000"])
    assert (OPEN, world.monotonic + 10.0) == (world.decision("n000").verdict, world.decision("n000").until)
    world.monotonic += 9.9
    assert [] == world.turn()
    world.monotonic += 0.1
    assert ["n000"] == world.turn()


def test_a_node_that_was_held_open_while_it_failed_is_not_closed_for_having_healed() -> None:
    world = cluster(10, Gate("health", damping=Damping(), cap=Limit(absolute=1)))
    world.bad("n000")
    world.turn(5.0)
    for _ in range(5):
        world.bad("n001")
        world.turn(1.0)
        world.good("n001")
        world.turn(1.0)
    assert names(0) == world.closed()


# A health pod that is only replaced.


@pytest.mark.parametrize(
    ("node_healthy", "after_s", "closed"),
    [
        pytest.param("", 1.0, False, id="its successor starts"),
        pytest.param("", 59.0, False, id="and takes its time"),
        pytest.param("", 60.0, True, id="too much of it"),
        pytest.param("Unknown", 1.0, False, id="it has not found out yet"),
        pytest.param("False", 1.0, True, id="it says at once that the node is not healthy"),
    ],
)
def test_x50_a_roll_out_of_health_pods_closes_no_node(node_healthy: str, after_s: float, closed: bool) -> None:
    world = cluster(3)
    new = world.pod("n000", "health", "False", "ContainersNotReady")
    fields = {field: getattr(new, field) for field in type(new).__slots__}
    world.replace("n000", type(new)(**fields | {"uid": "new", "node_healthy": node_healthy}))
    world.turn()
    world.run(after_s)
    assert closed == ("n000" in world.closed())
