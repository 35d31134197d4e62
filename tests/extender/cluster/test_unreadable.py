"""One object that nobody could foresee costs at most the node that it is about, never the verdict on all others."""

import pytest

from extender.cluster import observed
from tests.extender.builders import CREATED, node, pod, pod_json, seen
from tests.extender.world import World

OPEN, MISSING = "", "node(s) without a health pod"
AT = "2026-01-01T00:01:40Z"


def ending(name, *, grace_s, ends=AT):
    """Who may delete a pod may give it any grace, a node one that runs on it; the API server adds it to the time."""
    value = pod_json(name)
    value["metadata"] |= {"deletionTimestamp": ends, "deletionGracePeriodSeconds": grace_s}
    return seen(observed.Pod, value)


@pytest.mark.parametrize(
    ("grace_s", "ends"),
    [
        pytest.param(10**12, "2149-09-21T18:33:09Z", id="as kube-apiserver 1.36.3 writes a grace of 30,000 years"),
        pytest.param(2**63 - 1, "2026-01-01T00:01:39Z", id="the longest"),
        pytest.param(-(2**63), AT, id="less than none"),
        pytest.param(0, "0001-01-01T00:00:00Z", id="before anybody counted"),
    ],
)
@pytest.mark.parametrize("heard", ["in a list", "by the watch"])
def test_a_pod_that_was_told_to_end_at_no_time_that_can_be_is_missed_from_now_on(grace_s, ends, heard):
    world = World().listed([node("n1"), node("n2")], [pod("n1"), pod("n2")])
    poison = ending("n2", grace_s=grace_s, ends=ends)
    if heard == "in a list":
        world.then.replace_pods([pod("n1"), poison])
    else:
        world.then.upsert_pod(poison)
    world.clock.time += 29.0
    world.decide()
    assert {"n1": OPEN, "n2": OPEN} == world.reasons, "the grace of a missing pod"
    world.clock.time += 2.0
    world.decide()
    assert {"n1": OPEN, "n2": MISSING} == world.reasons


def test_one_who_starts_and_finds_such_a_pod_answers():
    world = World().listed([node("n1"), node("n2")], [pod("n1"), ending("n2", grace_s=10**12)])
    assert {"n1": OPEN, "n2": MISSING} == world.reasons


def test_a_pod_that_cannot_be_taken_is_left_out_of_its_list(monkeypatch, caplog):
    def health_pod(read, *rest):
        if read.spec.node_name == "n2":
            raise ValueError("a fault of ours")
        return good(read, *rest)

    good = observed.health_pod
    monkeypatch.setattr(observed, "health_pod", health_pod)
    world = World().listed([node("n1"), node("n2")], [pod("n2"), pod("n1")])
    assert {"n1": OPEN, "n2": MISSING} == world.reasons
    (record,) = [one for one in caplog.records if one.message == "an object of a list was left out"]
    assert ("readygate-system", "agent-n2") == (record.namespace, record.object)


def test_a_node_that_cannot_be_taken_is_one_that_nobody_knows(monkeypatch):
    def observed_node(read, *rest):
        if read.metadata.name == "n2":
            raise ValueError("a fault of ours")
        return good(read, *rest)

    good = observed.observed_node
    monkeypatch.setattr(observed, "observed_node", observed_node)
    world = World().listed([node("n1", created=CREATED), node("n2")], [pod("n1"), pod("n2")])
    assert {"n1": OPEN} == world.reasons


def test_of_a_condition_that_stands_there_twice_the_first_counts_as_in_kubernetes():
    """podutil.GetPodCondition; no validation keeps a client that replaces a status from writing it so."""
    twice = pod_json("n1", Ready="False")
    twice["status"]["conditions"] += pod_json("n1")["status"]["conditions"]
    world = World().listed([node("n1")], [seen(observed.Pod, twice)])
    assert {"n1": "node(s) with a health pod that is not Ready"} == world.reasons
