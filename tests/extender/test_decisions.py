"""Events in, decisions out, by the rooms that do it together: index, decide, board. What time alone changes; and which
releases are kicked.
"""

import pytest

from extender.cluster import observed
from extender.policy.reasons import CLOSED_NO_HEALTH_POD, CLOSED_NODE_LOST, CLOSED_NOT_READY, CLOSED_UNHEALTHY, OPEN
from kube.times import format_time, parse_time
from tests.extender.builders import CREATED, LATER, lease, node, owner, pod, pod_json, seen
from tests.extender.world import World

BEFORE, FIVE_S_LATER = "2025-12-31T23:00:00Z", "2026-01-01T00:00:05Z"


@pytest.fixture
def world():
    return World().listed([node("n1"), node("n2")], [pod("n1"), pod("n2", Ready="False")])


def test_nothing_is_said_before_both_lists_are_there():
    world = World()
    world.then.replace_nodes([node("n1")])
    world.then.upsert_pod(pod("n1"))
    assert (world.board.filled, world.reasons) == (False, {})
    world.then.replace_pods([pod("n1")])
    assert (world.board.filled, world.reasons) == (True, {"n1": OPEN})


def test_a_cluster_without_nodes_is_a_cluster_too():
    world = World()
    world.then.replace_nodes([])
    world.then.replace_pods([])
    assert (world.board.filled, world.reasons, world.woken) == (True, {}, 1)


def test_events_change_one_node(world):
    world.then.upsert_pod(pod("n1", Ready="True", NodeHealthy="False"))
    assert world.reasons == {"n1": CLOSED_UNHEALTHY, "n2": CLOSED_NOT_READY}
    world.then.upsert_pod(pod("n2"))
    assert world.reasons == {"n1": CLOSED_UNHEALTHY, "n2": OPEN}
    world.then.remove_node(node("n1"))
    assert world.reasons == {"n2": OPEN}


def test_a_relist_forgets_what_is_missing(world):
    world.then.replace_nodes([node("n2"), node("n3")])
    assert world.reasons == {"n2": CLOSED_NOT_READY, "n3": CLOSED_NO_HEALTH_POD}
    world.then.replace_pods([])
    assert world.reasons == {"n2": CLOSED_NO_HEALTH_POD, "n3": CLOSED_NO_HEALTH_POD}


def test_a_request_keeps_the_map_it_began_with(world):
    reasons = world.reasons
    world.then.replace_nodes([])
    assert reasons == {"n1": OPEN, "n2": CLOSED_NOT_READY}


def test_a_pod_that_moves_is_taken_off_its_old_node(world):
    world.then.upsert_pod(pod("n2", name="agent-n1"))
    world.clock.time += 31
    world.decide()
    assert world.reasons == {"n1": CLOSED_NO_HEALTH_POD, "n2": OPEN}


def test_x53_a_pod_of_another_daemonset_is_ignored(world):
    world.then.upsert_pod(pod("n2", name="other", owners=[owner("other")]))
    assert world.reasons["n2"] == CLOSED_NOT_READY


def test_without_a_named_daemonset_the_selector_decides():
    world = World(daemon_set=None).listed([node("n1")], [pod("n1", owners=[])])
    assert world.reasons == {"n1": OPEN}


def test_x54_a_node_made_again_waits_for_a_new_pod(world):
    world.then.remove_node(node("n1"))
    world.then.upsert_node(node("n1", uid="again", created=LATER))
    assert world.reasons["n1"] == CLOSED_NO_HEALTH_POD
    world.then.upsert_pod(pod("n1", name="new", created=LATER))
    assert world.reasons["n1"] == OPEN


def test_x54_a_node_made_again_within_one_second_waits_for_a_new_pod_too(world):
    world.then.remove_node(node("n1"))
    world.then.upsert_node(node("n1", uid="again"))
    assert world.reasons["n1"] == CLOSED_NO_HEALTH_POD


def test_a_node_that_registers_again_opens_though_its_pod_has_nothing_new_to_say(world):
    """Its Node object was deleted and the kubelet restarted: since 1.35 that changes no pod's status."""
    world.clock.time += 600
    world.then.remove_node(node("n1"))
    world.then.upsert_node(node("n1", uid="again", created=LATER))
    world.refuse("n1")
    world.clock.time += 59
    world.decide()
    assert world.reasons["n1"] == CLOSED_NO_HEALTH_POD
    world.clock.time += 1
    world.decide()
    assert (world.reasons["n1"], world.kicked) == (OPEN, ["n1"])


def test_an_extender_that_starts_later_opens_a_node_that_registered_again_though_its_pod_is_older():
    world = World()
    world.clock.time += 660
    world.listed([node("n1", created=LATER)], [pod("n1")])
    assert world.reasons == {"n1": OPEN}


@pytest.mark.parametrize("created", [None, "", "yesterday", "2026-01-01T00:00:00", "2999-01-01T00:00:00Z"])
def test_a_node_whose_age_cannot_be_told_is_new(created):
    world = World().listed([node("n1", created=created)], [pod("n1", created="2025-12-31T00:00:00Z")])
    world.clock.time += 60
    world.decide()
    assert world.reasons == {"n1": OPEN}


def test_the_first_sync_kicks_a_node_that_is_open_for_what_the_process_before_refused():
    world = World()
    world.then.replace_pods([pod("n1", Ready="False"), pod("n2"), pod("n3")])
    assert world.kicked == []
    world.then.replace_nodes([node("n1"), node("n2"), node("n3")])
    assert world.kicked == ["n2", "n3"]
    world.then.replace_nodes([node("n1"), node("n2"), node("n3")])
    assert world.kicked == ["n2", "n3"]


def test_a_release_by_time_alone_is_kicked_for_what_the_process_before_refused():
    """A pod that is older than its Node counts after a minute: nothing is written then, so no event wakes anybody."""
    world = World()
    world.then.replace_nodes([node("n1", created=LATER)])
    world.then.replace_pods([pod("n1")])
    assert (world.reasons, world.kicked) == ({"n1": CLOSED_NO_HEALTH_POD}, [])
    for _ in range(660):
        world.clock.time += 1
        world.decide()
    assert (world.reasons, world.kicked) == ({"n1": OPEN}, ["n1"])


def test_the_first_sync_kicks_nothing_while_all_is_closed():
    world = World()
    world.then.replace_nodes([node("n1")])
    world.then.replace_pods([])
    assert world.kicked == []


def told_to_end(on, *, at, grace_s=30, **statuses):
    """A health pod that was started with its Node and deleted `at`."""
    told = pod_json(on, **statuses)
    told["metadata"]["deletionTimestamp"] = format_time(parse_time(at) + grace_s)
    told["metadata"]["deletionGracePeriodSeconds"] = grace_s
    told["status"]["startTime"] = CREATED
    return seen(observed.Pod, told)


@pytest.mark.parametrize("grace_s", [0, 30, 300])
def test_an_extender_that_starts_between_two_pods_of_a_rollout_closes_no_node_for_it(grace_s):
    world = World()
    world.clock.time = 110.0  # ten seconds after the Nodes were made, five after the deletion
    world.listed([node("n1", created=BEFORE)], [told_to_end("n1", at=FIVE_S_LATER, grace_s=grace_s, created=BEFORE)])
    assert world.reasons == {"n1": OPEN}
    world.then.remove_pod(pod("n1"))
    world.clock.time = 134.9
    world.decide()
    assert world.reasons == {"n1": OPEN}
    world.clock.time = 135.0
    world.decide()
    assert world.reasons == {"n1": CLOSED_NO_HEALTH_POD}


def test_a_pod_that_terminates_keeps_the_time_at_which_it_was_told_to(world):
    """Or each event of it would be one more decision."""
    world.clock.time = 110.0
    world.then.upsert_pod(told_to_end("n1", at=FIVE_S_LATER))
    before = world.woken
    world.clock.time = 112.3
    world.index.upsert_pod(told_to_end("n1", at=FIVE_S_LATER))
    assert before == world.woken


def test_the_grace_of_a_missing_pod_ends_without_an_event(world):
    world.then.remove_pod(pod("n1"))
    world.clock.time += 29
    world.decide()
    assert world.reasons["n1"] == OPEN
    world.clock.time += 1
    world.decide()
    assert world.reasons["n1"] == CLOSED_NO_HEALTH_POD


def only_n2_renews_for_24_s(world: World) -> None:
    world.contact = world.clock.time
    world.then.leases.replace([lease("n1", "a"), lease("n2", "a")])
    for step in range(3):
        world.contact = world.clock.time = world.clock.time + 8
        world.then.leases.upsert(lease("n2", f"b{step}"))
        world.decide()


def test_a_kubelet_that_stops_renewing_closes_its_node_and_opens_it_again(world):
    world.then.upsert_pod(pod("n2"))
    only_n2_renews_for_24_s(world)
    assert world.reasons == {"n1": CLOSED_NODE_LOST, "n2": OPEN}
    assert world.leases.seen() == {"n1": world.clock.time - 24.0, "n2": world.clock.time}
    world.refuse("n1")
    world.then.leases.upsert(lease("n1", "b"))
    assert (world.reasons["n1"], world.kicked) == (OPEN, ["n1"])


def test_a_lease_watch_that_went_silent_keeps_no_node_closed(world):
    only_n2_renews_for_24_s(world)
    assert world.reasons["n1"] == CLOSED_NODE_LOST
    world.clock.time += 120
    world.decide()
    assert world.reasons["n1"] == CLOSED_NODE_LOST
    world.clock.time += 1
    world.decide()
    assert world.reasons["n1"] == OPEN


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        pytest.param(["n2"], ["n2"], id="X55: a node that was refused is kicked when it opens"),
        pytest.param([], [], id="X55: no kick without a refusal"),
        pytest.param(["n1x"], [], id="no kick for another node's refusal"),
    ],
)
def test_a_release_is_kicked_once_after_the_cache_has_flipped(world, refused, expected):
    seen = []
    world.decider._on_release = lambda names: seen.extend((name, world.reasons[name]) for name in names)
    world.refuse(*refused)
    world.then.upsert_pod(pod("n2"))
    world.then.upsert_pod(pod("n2"))
    assert [(name, OPEN) for name in expected] == seen


def test_refusals_are_remembered_from_each_closing_anew(world):
    world.refuse("n2")
    world.then.upsert_pod(pod("n2"))
    world.then.upsert_pod(pod("n2", Ready="False"))
    world.then.upsert_pod(pod("n2"))
    assert world.kicked == ["n2"]


def test_a_node_refused_before_we_knew_it_is_kicked(world):
    world.refuse("n3")
    world.then.upsert_node(node("n3"))
    world.then.upsert_pod(pod("n3"))
    assert world.kicked == ["n3"]


def test_a_release_by_a_relist_is_kicked(world):
    world.refuse("n2")
    world.then.replace_pods([pod("n1"), pod("n2")])
    assert world.kicked == ["n2"]


# Leases and Nodes that do not belong together.


def all_but(world, silent, *, for_s):
    """The Leases of n1 and n2 and of `gone-0` to `gone-9`; all but the silent ones are renewed each five seconds."""
    names = ["n1", "n2", *(f"gone-{i}" for i in range(10))]
    world.then.upsert_pod(pod("n2"))
    world.contact = world.clock.time
    world.then.leases.replace([lease(name, "a") for name in names])
    for step in range(int(for_s / 5)):
        world.contact = world.clock.time = world.clock.time + 5
        for name in names:
            if name not in silent:
                world.leases.upsert(lease(name, f"b{step}"))
        world.decide()


def test_leases_without_a_node_do_not_make_a_dead_kubelet_one_of_many(world):
    all_but(world, ["n1", *(f"gone-{i}" for i in range(10))], for_s=25)
    assert world.reasons == {"n1": CLOSED_NODE_LOST, "n2": OPEN}


def test_a_node_without_a_lease_is_judged_by_its_pods(world):
    all_but(world, [], for_s=5)
    world.then.leases.remove(lease("n1", "a"))
    for step in range(12):
        world.contact = world.clock.time = world.clock.time + 5
        world.then.leases.upsert(lease("n2", f"c{step}"))
    assert world.reasons == {"n1": OPEN, "n2": OPEN}


def test_a_lease_that_is_deleted_and_made_anew_is_a_beat(world):
    all_but(world, ["n1"], for_s=25)
    assert world.reasons["n1"] == CLOSED_NODE_LOST
    world.then.leases.remove(lease("n1", "a"))
    world.then.leases.upsert(lease("n1", "a"))
    assert world.reasons["n1"] == OPEN


@pytest.mark.parametrize("duration_s", [-1, 0, 1, 10**9])
@pytest.mark.parametrize("renew_time", [None, "", "x", "9999-12-31T23:59:59Z", "2026-01-01T00:00:00", "\u0000"])
def test_no_text_in_a_lease_closes_its_node_or_keeps_another_open(world, renew_time, duration_s):
    odd = lease("n2", renew_time, duration_s=duration_s)
    world.contact = world.clock.time
    world.then.upsert_pod(pod("n2"))
    world.then.leases.replace([odd, lease("n1", "2026-01-01T00:00:00.000000Z"), lease("n3", "a")])
    world.decide()
    assert world.reasons == {"n1": OPEN, "n2": OPEN}
    for step in range(5):
        world.contact = world.clock.time = world.clock.time + 5
        world.then.leases.upsert(lease("n2", f"{renew_time}{step}", duration_s=duration_s))
        world.then.leases.upsert(lease("n3", f"b{step}"))
    assert world.reasons == {"n1": CLOSED_NODE_LOST, "n2": OPEN}
