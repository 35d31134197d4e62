"""The thread that decides: what it logs, what wakes it, how long it sleeps, and what happens when a decision fails."""

import pytest

from extender.cluster.decider import APART_S, FAILING_LIMIT_S
from extender.cluster.silent_gates import AFTER_S
from extender.policy import decide as deciding
from extender.policy.reasons import CLOSED_NO_HEALTH_POD, CLOSED_NOT_READY, OPEN
from tests.extender.builders import LATER, lease, node, pod
from tests.extender.world import PODS, World


@pytest.fixture
def world():
    return World().listed([node("n1"), node("n2")], [pod("n1"), pod("n2", Ready="False")])


def test_changes_are_logged_once_with_their_facts(world, caplog):
    caplog.set_level("INFO")
    for _ in range(2):
        world.then.upsert_pod(pod("n1", Ready="False"))
    world.then.upsert_pod(pod("n1"))
    facts = [
        {name: vars(record).get(name) for name in ("node", "reason", "pod", "evidence")} for record in caplog.records
    ]
    pod_name = "readygate-system/agent-n1"
    assert [record.message for record in caplog.records] == ["node closed", "node opened"]
    assert facts == [
        {"node": "n1", "reason": CLOSED_NOT_READY, "pod": pod_name, "evidence": "R: m"},
        {"node": "n1", "reason": None, "pod": pod_name, "evidence": None},
    ]


def test_the_first_snapshot_is_not_logged_node_by_node(caplog):
    caplog.set_level("INFO")
    World().listed([node("n1")], [])
    assert [] == caplog.records


def test_a_decision_tells_since_when_it_holds(world):
    def since():
        return world.board.snapshot.gates["health"].decisions["n1"].since_monotonic

    world.clock.time = 110.0
    world.then.upsert_pod(pod("n1", NodeHealthy="True", Ready="True"))
    assert since() == 100.0
    world.then.upsert_pod(pod("n1", Ready="False"))
    assert since() == 110.0
    world.clock.time = 120.0
    world.then.upsert_pod(pod("n1", name="another", created=LATER, Ready="False"))
    assert since() == 110.0


# Gates to which nobody speaks.

UNHEARD = "a gate has no health pod"


def told(caplog):
    return [record.message for record in caplog.records if "health pod" in record.message]


def test_a_selector_that_matches_nothing_is_told_once_after_a_while_and_when_it_does_again(caplog):
    caplog.set_level("INFO")
    world = World().listed([node("n1")], [])
    assert AFTER_S == world.decide()
    for seconds in (AFTER_S - 1, 1, 5000):
        world.clock.time += seconds
        world.decide()
    assert [UNHEARD] == told(caplog)
    (record,) = [record for record in caplog.records if record.message == UNHEARD]
    assert ("health", PODS.namespace, PODS.label_selector) == (record.gate, record.namespace, record.labelSelector)
    world.then.upsert_pod(pod("n1"))
    assert [UNHEARD, "the gate has a health pod again"] == told(caplog)


@pytest.mark.parametrize(
    ("nodes", "pods", "expected"),
    [
        pytest.param([node("n1")], [pod("n1", Ready="False")], [], id="a bad one speaks"),
        pytest.param([], [], [], id="without nodes there is nothing to say"),
        pytest.param([node("n1")], [pod("n1", owners=[])], [UNHEARD], id="one of another DaemonSet does not"),
    ],
)
def test_who_counts_as_unheard(nodes, pods, expected, caplog):
    world = World().listed(nodes, pods)
    world.clock.time += AFTER_S
    world.decide()
    world.clock.time += AFTER_S
    world.decide()
    assert expected == told(caplog)


def test_a_roll_out_that_leaves_a_moment_without_any_is_not_told(caplog):
    world = World().listed([node("n1")], [pod("n1")])
    for _ in range(5):
        world.then.remove_pod(pod("n1"))
        world.clock.time += AFTER_S / 2
        world.then.upsert_pod(pod("n1"))
    assert [] == told(caplog)


# When it is woken, and what it sleeps.


def test_an_event_that_changes_no_evidence_wakes_nobody(world):
    before = world.woken
    world.index.upsert_pod(pod("n1"))
    world.index.upsert_node(node("n1"))
    world.index.remove_pod(pod("n1", name="unknown"))
    world.index.remove_node(node("unknown"))
    assert before == world.woken


def test_many_events_are_decided_on_together(world):
    snapshots = []
    swap = world.board.swap
    world.board.swap = lambda snapshot: snapshots.append(snapshot) or swap(snapshot)
    for step in range(1000):
        world.index.upsert_pod(pod("n2", Ready="True" if step % 2 else "False"))
        world.index.upsert_pod(pod("n1", Ready="False"))
    world.decide()
    world.decide()
    assert [{"n1": CLOSED_NOT_READY, "n2": OPEN}] == [snapshot.reasons for snapshot in snapshots]


@pytest.mark.parametrize(
    ("passed_s", "expected"),
    [
        pytest.param(10.0, [], id="at once after a quiet time"),
        pytest.param(0.005, [0.015], id="what comes soon after waits for the rest of the time"),
        pytest.param(0.0, [APART_S], id="never longer than that"),
        pytest.param(-3600.0, [APART_S], id="nor when the clock jumps back"),
    ],
)
def test_two_decisions_are_some_time_apart(world, passed_s, expected):
    slept = []
    world.decider._sleep = lambda seconds: slept.append(round(seconds, 6))
    world.clock.time = 200.0
    world.decide()
    world.clock.time += passed_s
    slept.clear()
    world.decide()
    assert expected == slept


def test_with_nothing_to_come_it_sleeps_until_it_is_woken(world):
    assert float("inf") == world.decide()


def test_it_sleeps_until_the_grace_of_a_missing_pod_ends(world):
    world.index.remove_pod(pod("n1"))
    assert 30.0 == world.decide()
    world.clock.time += 12
    assert 18.0 == world.decide()
    world.index.upsert_pod(pod("n1"))
    world.decide()
    world.clock.time += 18
    assert float("inf") == world.decide()


def test_it_sleeps_until_the_first_lease_reaches_its_limit(world):
    world.contact = world.clock.time
    world.leases.replace([lease("n1", "a"), lease("n2", "a")])
    assert 20.0 == world.decide()


def test_a_renewal_wakes_nobody(world):
    world.contact = world.clock.time
    world.then.leases.replace([lease("n1", "a"), lease("n2", "a")])
    before = world.woken
    for step in range(100):
        world.contact = world.clock.time = world.clock.time + 5
        world.leases.upsert(lease("n1", f"1{step}"))
        world.leases.upsert(lease("n2", f"2{step}"))
    assert before == world.woken


def test_a_new_lease_wakes_it_when_its_limit_comes_before_all_else(world):
    world.contact = world.clock.time
    world.then.leases.replace([lease("n1", "a", duration_s=400)])
    before = world.woken
    world.leases.upsert(lease("n2", "a"))
    assert (before + 1, 20.0) == (world.woken, world.decide())


def test_a_lost_node_whose_lease_moves_wakes_it(world):
    world.contact = world.clock.time
    world.leases.replace([lease("n1", "a"), lease("n2", "a")])
    world.decide()
    world.contact = world.clock.time = world.clock.time + 9
    world.leases.upsert(lease("n2", "b"))
    world.contact = world.clock.time = world.clock.time + 9
    world.leases.upsert(lease("n2", "bb"))
    world.contact = world.clock.time = world.clock.time + 9
    world.then.leases.upsert(lease("n2", "c"))
    before = world.woken
    world.leases.upsert(lease("n1", "b"))
    assert before + 1 == world.woken


@pytest.mark.parametrize("silent_s", [1, 119, 121, 3600])
def test_while_the_lease_watch_is_silent_it_looks_twice_a_second(world, silent_s):
    world.contact = world.clock.time
    world.then.leases.replace([lease("n1", "a")])
    world.clock.time += 20 + silent_s
    assert 0.5 == world.decide()


def test_ages_of_leases_are_looked_at_twice_a_second_at_most(world):
    world.contact = world.clock.time
    world.leases.replace([lease(f"n{i}", "a") for i in range(1, 3)])
    world.decide()
    looks = []
    lost = world.leases._beats.lost
    world.leases._beats.lost = lambda *how: looks.append(how) or lost(*how)
    for _ in range(1000):
        world.contact = world.clock.time = world.clock.time + 0.1
        world.leases.upsert(lease("n2", f"at {world.contact}"))
        world.decide()
    assert len(looks) <= 200


# When something goes wrong.


def failing(monkeypatch, *, while_true):
    decide = deciding.decide

    def fails(*arguments, **options):
        if while_true():
            raise RuntimeError("a bug of ours")
        return decide(*arguments, **options)

    monkeypatch.setattr("extender.cluster.decider.decide", fails)


def test_what_could_not_be_decided_is_decided_in_the_next_turn(world, monkeypatch):
    broken = True
    failing(monkeypatch, while_true=lambda: broken)
    world.refuse("n2")
    world.index.upsert_pod(pod("n2"))
    world.index.remove_pod(pod("n1"))
    with pytest.raises(RuntimeError):
        world.decide()
    assert {"n1": OPEN, "n2": CLOSED_NOT_READY} == world.reasons
    broken = False
    assert 30.0 == world.decide()
    assert ({"n1": OPEN, "n2": OPEN}, ["n2"]) == (world.reasons, world.kicked)


def test_a_time_that_came_while_decisions_failed_is_not_forgotten(world, monkeypatch):
    world.then.remove_pod(pod("n1"))
    broken = True
    failing(monkeypatch, while_true=lambda: broken)
    world.clock.time += 30
    with pytest.raises(RuntimeError):
        world.decide()
    broken = False
    world.decide()
    assert world.reasons["n1"] == CLOSED_NO_HEALTH_POD


def test_evidence_that_could_not_be_taken_is_a_failure_too_and_nothing_is_forgotten(world, monkeypatch):
    world.then.remove_pod(pod("n1"))
    world.clock.time += 30
    with monkeypatch.context() as broken:
        broken.setattr(world.index, "_look_at_beats", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            world.decide()
    assert not world.decider.deciding(world.clock.time + FAILING_LIMIT_S + 0.1)
    world.decide()
    assert (world.reasons["n1"], world.decider.deciding(world.clock.time + 3600)) == (CLOSED_NO_HEALTH_POD, True)


def test_a_decider_that_fails_for_long_is_not_deciding(world, monkeypatch):
    broken = True
    failing(monkeypatch, while_true=lambda: broken)
    began = world.clock.time
    for _ in range(3):
        with pytest.raises(RuntimeError):
            world.decide()
        world.clock.time += 10
    assert [True, False] == [world.decider.deciding(began + FAILING_LIMIT_S + late_s) for late_s in (0.0, 0.1)]
    broken = False
    world.decide()
    assert world.decider.deciding(began + 3600)


def test_a_relist_of_five_thousand_nodes_is_one_decision(world):
    names = [f"m{i}" for i in range(5000)]
    world.index.replace_nodes([node(name) for name in names])
    world.index.replace_pods([pod(name) for name in names])
    world.decide()
    first = world.board.snapshot
    assert 5000 == list(first.reasons.values()).count(OPEN)
    before = world.woken
    world.index.replace_nodes([node(name) for name in names])
    world.index.replace_pods([pod(name) for name in names])
    world.decide()
    assert (before + 2, first) == (world.woken, world.board.snapshot)
