"""Events in, reasons out; what time alone changes; and the order that a kick depends on."""

from datetime import datetime

import pytest

from extender.cluster.index import UNKNOWN_NODE, NodeIndex
from extender.policy.verdict import OPEN
from kube.contract import CLOSED_NO_HEALTH_POD, CLOSED_NODE_LOST, CLOSED_NOT_READY, CLOSED_UNHEALTHY
from tests.extender.builders import CREATED, LATER, lease, node, owner, pod


class World:
    def __init__(self, **options):
        self.now = 100.0
        self.contact = None
        self.kicked = []
        self.index = NodeIndex(
            **{"daemon_set": "readygate-agent", "missing_grace_s": 30.0, "heartbeat_limit_s": 20.0} | options,
            on_release=self.kicked.append,
            lease_contact=lambda: self.contact,
            now=lambda: self.now,
            wall=lambda: datetime.fromisoformat(CREATED).timestamp() + self.now - 100.0,
        )

    def listed(self, nodes, pods):
        self.index.replace_nodes(nodes)
        self.index.replace_pods(pods)
        self.kicked.clear()  # that of the start
        return self

    def refuse(self, *names):
        """What a request does that finds these nodes closed."""
        releases = self.index.releases
        self.index.remember_refusals({name: self.index.reasons.get(name, UNKNOWN_NODE) for name in names}, releases)


@pytest.fixture
def world():
    return World().listed([node("n1"), node("n2")], [pod("n1"), pod("n2", Ready="False")])


def test_nothing_is_said_before_both_lists_are_there():
    world = World()
    world.index.replace_nodes([node("n1")])
    world.index.upsert_pod(pod("n1"))
    assert (world.index.built, world.index.reasons) == (False, {})
    world.index.replace_pods([pod("n1")])
    assert (world.index.built, world.index.reasons) == (True, {"n1": OPEN})


def test_events_change_one_node(world):
    world.index.upsert_pod(pod("n1", Ready="True", NodeHealthy="False"))
    assert world.index.reasons == {"n1": CLOSED_UNHEALTHY, "n2": CLOSED_NOT_READY}
    world.index.upsert_pod(pod("n2"))
    assert world.index.reasons == {"n1": CLOSED_UNHEALTHY, "n2": OPEN}
    world.index.remove_node(node("n1"))
    assert world.index.reasons == {"n2": OPEN}


def test_a_relist_forgets_what_is_missing(world):
    world.index.replace_nodes([node("n2"), node("n3")])
    assert world.index.reasons == {"n2": CLOSED_NOT_READY, "n3": CLOSED_NO_HEALTH_POD}
    world.index.replace_pods([])
    assert world.index.reasons == {"n2": CLOSED_NO_HEALTH_POD, "n3": CLOSED_NO_HEALTH_POD}


def test_a_request_keeps_the_map_it_began_with(world):
    reasons = world.index.reasons
    world.index.replace_nodes([])
    assert reasons == {"n1": OPEN, "n2": CLOSED_NOT_READY}


def test_a_pod_that_moves_is_taken_off_its_old_node(world):
    world.index.upsert_pod(pod("n2", name="agent-n1"))
    world.now += 31
    world.index.tick()
    assert world.index.reasons == {"n1": CLOSED_NO_HEALTH_POD, "n2": OPEN}


def test_x53_a_pod_of_another_daemonset_is_ignored(world):
    world.index.upsert_pod(pod("n2", name="other", owners=[owner("other")]))
    assert world.index.reasons["n2"] == CLOSED_NOT_READY


def test_without_a_named_daemonset_the_selector_decides():
    world = World(daemon_set=None).listed([node("n1")], [pod("n1", owners=[])])
    assert world.index.reasons == {"n1": OPEN}


def test_x54_a_node_made_again_waits_for_a_new_pod(world):
    world.index.remove_node(node("n1"))
    world.index.upsert_node(node("n1", uid="again", created=LATER))
    assert world.index.reasons["n1"] == CLOSED_NO_HEALTH_POD
    world.index.upsert_pod(pod("n1", name="new", created=LATER))
    assert world.index.reasons["n1"] == OPEN


def test_x54_a_node_made_again_within_one_second_waits_for_a_new_pod_too(world):
    world.index.remove_node(node("n1"))
    world.index.upsert_node(node("n1", uid="again"))
    assert world.index.reasons["n1"] == CLOSED_NO_HEALTH_POD


def test_a_node_that_registers_again_opens_though_its_pod_has_nothing_new_to_say(world):
    """Its Node object was deleted and the kubelet restarted: since 1.35 that changes no pod's status."""
    world.now += 600
    world.index.remove_node(node("n1"))
    world.index.upsert_node(node("n1", uid="again", created=LATER))
    world.refuse("n1")
    world.now += 59
    world.index.tick()
    assert world.index.reasons["n1"] == CLOSED_NO_HEALTH_POD
    world.now += 1
    world.index.tick()
    assert (world.index.reasons["n1"], world.kicked) == (OPEN, ["n1"])


def test_an_extender_that_starts_later_opens_a_node_that_registered_again_though_its_pod_is_older():
    world = World()
    world.now += 660
    world.listed([node("n1", created=LATER)], [pod("n1")])
    assert world.index.reasons == {"n1": OPEN}


@pytest.mark.parametrize("created", [None, "", "yesterday", "2026-01-01T00:00:00", "2999-01-01T00:00:00Z"])
def test_a_node_whose_age_cannot_be_told_is_new(created):
    world = World().listed([node("n1", created=created)], [pod("n1", created="2025-12-31T00:00:00Z")])
    world.now += 60
    world.index.tick()
    assert world.index.reasons == {"n1": OPEN}


def test_the_first_sync_kicks_one_open_node_for_what_the_process_before_refused():
    world = World()
    world.index.replace_pods([pod("n1", Ready="False"), pod("n2"), pod("n3")])
    assert world.kicked == []
    world.index.replace_nodes([node("n1"), node("n2"), node("n3")])
    assert world.kicked == ["n2"]
    world.index.replace_nodes([node("n1"), node("n2"), node("n3")])
    assert world.kicked == ["n2"]


def test_the_first_sync_kicks_nothing_while_all_is_closed():
    world = World()
    world.index.replace_nodes([node("n1")])
    world.index.replace_pods([])
    assert world.kicked == []


def test_the_grace_of_a_missing_pod_ends_without_an_event(world):
    world.index.remove_pod(pod("n1"))
    world.now += 29
    world.index.tick()
    assert world.index.reasons["n1"] == OPEN
    world.now += 1
    world.index.tick()
    assert world.index.reasons["n1"] == CLOSED_NO_HEALTH_POD


def test_a_kubelet_that_stops_renewing_closes_its_node_and_opens_it_again(world):
    world.index.upsert_pod(pod("n2"))
    world.contact = world.now
    world.index.replace_leases([lease("n1", "a"), lease("n2", "a")])
    for step in range(3):
        world.now = world.contact = world.now + 10
        world.index.upsert_lease(lease("n2", f"b{step}"))
        world.index.tick()
    assert world.index.reasons == {"n1": CLOSED_NODE_LOST, "n2": OPEN}
    assert world.index.heartbeat_ages_s() == {"n1": 30.0, "n2": 0.0}
    world.refuse("n1")
    world.index.upsert_lease(lease("n1", "b"))
    assert (world.index.reasons["n1"], world.kicked) == (OPEN, ["n1"])


def test_a_lease_watch_that_went_silent_keeps_no_node_closed(world):
    world.contact = world.now
    world.index.replace_leases([lease("n1", "a"), lease("n2", "a")])
    for step in range(3):
        world.now = world.contact = world.now + 10
        world.index.upsert_lease(lease("n2", f"b{step}"))
        world.index.tick()
    assert world.index.reasons["n1"] == CLOSED_NODE_LOST
    world.now += 120
    world.index.tick()
    assert world.index.reasons["n1"] == CLOSED_NODE_LOST
    world.now += 1
    world.index.tick()
    assert world.index.reasons["n1"] == OPEN


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
    world.index._on_release = lambda name: seen.append((name, world.index.reasons[name]))
    world.refuse(*refused)
    world.index.upsert_pod(pod("n2"))
    world.index.upsert_pod(pod("n2"))
    assert [(name, OPEN) for name in expected] == seen


def test_refusals_are_remembered_from_each_closing_anew(world):
    world.refuse("n2")
    world.index.upsert_pod(pod("n2"))
    world.index.upsert_pod(pod("n2", Ready="False"))
    world.index.upsert_pod(pod("n2"))
    assert world.kicked == ["n2"]


def test_a_node_refused_before_we_knew_it_is_kicked(world):
    world.refuse("n3")
    world.index.upsert_node(node("n3"))
    world.index.upsert_pod(pod("n3"))
    assert world.kicked == ["n3"]


def test_a_release_by_a_relist_is_kicked(world):
    world.refuse("n2")
    world.index.replace_pods([pod("n1"), pod("n2")])
    assert world.kicked == ["n2"]


def test_a_release_between_the_look_and_the_note_is_kicked(world):
    """The request reads "closed", the node opens, and only then the refusal is noted."""
    releases, reasons = world.index.releases, dict(world.index.reasons)
    world.index.upsert_pod(pod("n2"))
    assert world.kicked == []
    world.index.remember_refusals({"n2": reasons["n2"]}, releases)
    assert world.kicked == ["n2"]


def test_a_refusal_noted_after_its_node_opened_and_closed_again_waits_for_the_next_release(world):
    releases, reasons = world.index.releases, dict(world.index.reasons)
    world.index.upsert_pod(pod("n2"))
    world.index.upsert_pod(pod("n2", Ready="False"))
    world.index.remember_refusals({"n2": reasons["n2"]}, releases)
    assert world.kicked == []
    world.index.upsert_pod(pod("n2"))
    assert world.kicked == ["n2"]


def test_names_nobody_knows_do_not_fill_the_memory(world):
    world.refuse("n2", *(f"x{i}" for i in range(50_001)))
    world.index.tick()
    assert len(world.index._refused) == 1


def test_changes_are_logged_once_with_their_facts(world, caplog):
    caplog.set_level("INFO")
    for _ in range(2):
        world.index.upsert_pod(pod("n1", Ready="False"))
    assert [(record.message, record.node, record.reason, record.why) for record in caplog.records] == [
        ("node closed", "n1", CLOSED_NOT_READY, "R: m")
    ]
