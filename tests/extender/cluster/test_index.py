"""What the index gives out: the evidence of what has changed, once."""

import math

import pytest

from extender.cluster.index import Index
from extender.policy.evidence import NodeEvidence
from tests.extender.builders import CREATED, LATER, health_pod, lease, node, observed_node, owner, pod
from tests.extender.world import LeaseWatchOf
from tests.kit.clock import Clock

AGENT_ON_N1 = health_pod(
    "readygate-system/agent-n1", uid="uid-agent-n1", ready_since=CREATED, ready_reason="R", node_uid=""
)


class Seen:
    """An index, its clock, its Lease watch, and how often it called."""

    def __init__(self) -> None:
        self.clock = Clock(100.0)
        self.watch: LeaseWatchOf | None = None
        self.calls = 0
        self.index = Index(
            daemon_set="readygate-agent",
            heartbeat_limit_s=20.0,
            on_change=self.called,
            lease_watch=lambda: self.watch,
            monotonic=self.clock,
            wall=lambda: 0.0,  # before any Node was made: all of them are new
        )

    def called(self) -> None:
        self.calls += 1

    def take(self, *also: str) -> dict[str, NodeEvidence | None]:
        batch = self.index.take(also)
        assert batch is not None
        return batch.evidence


@pytest.fixture
def seen() -> Seen:
    found = Seen()
    found.index.replace_nodes([node("n1"), node("n2")])
    found.index.replace_pods([pod("n1")])
    found.take()
    found.calls = 0
    return found


@pytest.mark.parametrize("listed", [[], ["nodes"], ["pods"]])
def test_before_both_lists_are_there_nothing_is_given_out(listed: list[str]) -> None:
    seen = Seen()
    if "nodes" in listed:
        seen.index.replace_nodes([node("n1")])
    if "pods" in listed:
        seen.index.replace_pods([pod("n1")])
    seen.index.upsert_pod(pod("n1", Ready="False"))
    seen.index.upsert_node(node("n1", Ready="False"))
    assert (None, 0) == (seen.index.take(), seen.calls)


def test_the_first_batch_has_all_nodes() -> None:
    seen = Seen()
    seen.index.replace_pods([pod("n1")])
    seen.index.replace_nodes([node("n1"), node("n2")])
    assert seen.calls == 1
    assert seen.take() == {
        "n1": NodeEvidence(observed_node("n1", ready=""), {"health": (AGENT_ON_N1,)}),
        "n2": NodeEvidence(observed_node("n2", uid="uid-n2", ready=""), {"health": ()}),
    }


@pytest.mark.parametrize(
    ("method", "what", "expected"),
    [
        pytest.param("upsert_pod", pod("n1", Ready="False"), ["n1"], id="a pod that changes"),
        pytest.param("upsert_pod", pod("n2", name="agent-n1"), ["n1", "n2"], id="a pod that moves: both nodes"),
        pytest.param("upsert_pod", pod("n2", owners=[owner("other")]), [], id="X53: a pod of another DaemonSet"),
        pytest.param("upsert_pod", pod("n1"), [], id="the same pod again"),
        pytest.param("remove_pod", pod("n1"), ["n1"], id="a pod that goes"),
        pytest.param("remove_pod", pod("n1", name="unknown"), [], id="a pod nobody knew"),
        pytest.param("upsert_node", node("n1", Ready="False"), ["n1"], id="a node that changes"),
        pytest.param("upsert_node", node("n1"), [], id="the same node again"),
        pytest.param("upsert_node", node("n3"), ["n3"], id="a new node"),
        pytest.param("remove_node", node("n1"), ["n1"], id="a node that goes"),
        pytest.param("remove_node", node("n3"), [], id="a node nobody knew"),
        pytest.param("replace_nodes", [node("n2"), node("n3")], ["n1", "n3"], id="a list of nodes"),
        pytest.param("replace_pods", [pod("n2")], ["n1", "n2"], id="a list of pods"),
    ],
)
def test_what_changes_is_given_out_once(seen: Seen, method: str, what: object, expected: list[str]) -> None:
    getattr(seen.index, method)(what)
    assert (expected, {}) == (sorted(seen.take()), seen.take())
    assert (1 if expected else 0) == seen.calls


@pytest.mark.parametrize("method", ["replace_nodes", "replace_pods"])
def test_a_list_that_changes_nothing_calls_but_gives_nothing(seen: Seen, method: str) -> None:
    getattr(seen.index, method)([node("n1"), node("n2")] if method == "replace_nodes" else [pod("n1")])
    assert (1, {}) == (seen.calls, seen.take())


def test_a_node_that_is_no_more_is_none(seen: Seen) -> None:
    seen.index.remove_node(node("n1"))
    assert {"n1": None, "n9": None} == seen.take("n9")


def test_what_could_not_be_used_is_given_out_again(seen: Seen) -> None:
    seen.index.give_back(["n2"])
    assert ["n2"] == list(seen.take())


def test_a_pod_keeps_the_node_object_it_was_first_seen_on(seen: Seen) -> None:
    seen.index.remove_node(node("n1"))
    seen.index.upsert_node(node("n1", uid="again", created=LATER))
    seen.index.upsert_pod(pod("n1", Ready="False"))
    seen.index.replace_pods([pod("n1"), pod("n1", name="new")])
    evidence = seen.take()["n1"]
    assert evidence is not None
    assert [("agent-n1", "uid-n1"), ("new", "again")] == [
        (one.name.partition("/")[2], one.node_uid) for one in evidence.pods["health"]
    ]


def test_a_node_object_keeps_the_time_it_was_born_at(seen: Seen) -> None:
    seen.clock.time += 50
    seen.index.upsert_node(node("n1", Ready="True"))
    seen.index.upsert_node(node("n2", uid="again"))
    born_at = {name: one.node.born_at for name, one in seen.take().items() if one}
    assert {"n1": 100.0, "n2": 150.0} == born_at


def test_a_lost_heartbeat_is_evidence_until_the_lease_moves(seen: Seen) -> None:
    seen.watch = LeaseWatchOf()
    seen.watch.last_word = seen.clock.time
    seen.index.replace_leases([lease("n1", "a"), lease("n2", "a")])
    lost = []
    for renewed in (["n2"], ["n2"], ["n2"], ["n1", "n2"]):
        seen.watch.last_word = seen.clock.time = seen.clock.time + 8
        for name in renewed:
            seen.index.upsert_lease(lease(name, f"at {seen.clock.time}"))
        lost.append({name: one.heartbeat_lost for name, one in seen.take().items() if one})
    assert [{}, {}, {"n1": True}, {"n1": False}] == lost
    assert dict.fromkeys(["n1", "n2"], seen.clock.time) == seen.index.beats()


def test_without_leases_it_never_asks_to_be_asked(seen: Seen) -> None:
    batch = seen.index.take()
    assert batch is not None
    assert math.inf == batch.due_at
