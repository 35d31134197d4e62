"""What the index gives out: the evidence of what has changed, once."""

import math

import pytest

from extender.cluster import observed
from extender.cluster.health_pods import GatePods, PodList
from extender.cluster.index import AWAITED_S, Index
from extender.cluster.observed import Wanted
from extender.policy.evidence import NodeEvidence, ObservedCondition, ObservedNode
from kube import contract
from tests.extender.builders import (
    CREATED,
    LATER,
    health_pod,
    lease,
    node,
    node_json,
    observed_node,
    owner,
    pod,
    pod_json,
)
from tests.extender.builders import seen as seen_as
from tests.extender.world import PODS, LeaseWatchOf, OneList, kubelets
from tools.kit.clock import Clock

AGENT_ON_N1 = health_pod(
    "readygate-system/agent-n1", uid="uid-agent-n1", ready_since=CREATED, ready_reason="R", node_uid=""
)


class Seen:
    """An index, its clock, its Lease watch, and how often it called."""

    def __init__(self) -> None:
        self.clock = Clock(100.0)
        self.watch: LeaseWatchOf | None = None
        self.calls = 0
        self.leases = kubelets(20.0, clock=self.clock, on_change=self.called, watch=lambda: self.watch)
        self.index = OneList(
            daemon_set="readygate-agent",
            on_change=self.called,
            kubelets=self.leases,
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
    seen.leases.replace([lease("n1", "a"), lease("n2", "a")])
    lost = []
    for renewed in (["n2"], ["n2"], ["n2"], ["n1", "n2"]):
        seen.watch.last_word = seen.clock.time = seen.clock.time + 8
        for name in renewed:
            seen.leases.upsert(lease(name, f"at {seen.clock.time}"))
        lost.append({name: one.heartbeat_lost for name, one in seen.take().items() if one})
    assert [{}, {}, {"n1": True}, {"n1": False}] == lost
    assert dict.fromkeys(["n1", "n2"], seen.clock.time) == seen.leases.seen()


def test_without_leases_it_never_asks_to_be_asked(seen: Seen) -> None:
    batch = seen.index.take()
    assert batch is not None
    assert math.inf == batch.due_at


# Several gates.

CNI = PodList("kube-system", "")


@pytest.fixture
def several() -> Seen:
    """Gates `health` and `any` read one list, `cni` and `csi` another."""
    found = Seen()
    speakers = [
        GatePods("health", PODS, "readygate-agent"),
        GatePods("cni", CNI, "cilium"),
        GatePods("any", PODS, None),
        GatePods("csi", CNI, "ebs-csi-node"),
    ]
    found.index = Index(speakers=speakers, on_change=found.called, monotonic=found.clock, wall=lambda: 0.0)
    found.index.replace_nodes([node("n1"), node("n2")])
    found.index.replace_pods(PODS, [pod("n1")])
    return found


def cilium(on: str, **fields: object) -> object:
    return pod(on, name=f"cilium-{on}", namespace="kube-system", owners=[owner("cilium")], **fields)


def spoken_for(seen: Seen) -> dict[str, dict[str, list[str]]]:
    return {
        name: {gate: [pod.name for pod in pods] for gate, pods in found.pods.items() if pods}
        for name, found in seen.take().items()
        if found is not None
    }


def test_gates_with_one_selector_share_a_list(several: Seen) -> None:
    assert {"pods": PODS, "pods/cni": CNI} == several.index.lists


def test_nothing_is_given_out_before_the_pods_of_every_gate_are_there(several: Seen) -> None:
    assert several.index.take() is None
    several.index.replace_pods(CNI, [])
    assert ["n1", "n2"] == sorted(several.take())


def test_each_gate_hears_the_pods_of_its_daemonset(several: Seen) -> None:
    other = pod("n1", name="other", owners=[owner("other")])
    several.index.upsert_pod(PODS, other)
    several.index.replace_pods(CNI, [cilium("n1"), cilium("n2")])
    agent, cni = "readygate-system/agent-n1", "kube-system/cilium-n1"
    expected = {"health": [agent], "any": [agent, "readygate-system/other"], "cni": [cni]}
    assert {"n1": expected, "n2": {"cni": ["kube-system/cilium-n2"]}} == spoken_for(several)


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        pytest.param(lambda index: index.upsert_pod(CNI, cilium("n2", Ready="False")), ["n2"], id="a pod that changes"),
        pytest.param(lambda index: index.upsert_pod(CNI, pod("n1", owners=[owner("kube-proxy")])), [], id="no gate's"),
        pytest.param(lambda index: index.remove_pod(PODS, cilium("n2")), [], id="gone from a list it was not in"),
        pytest.param(lambda index: index.replace_pods(CNI, [cilium("n1")]), ["n2"], id="a list without one"),
        pytest.param(lambda index: index.replace_pods(PODS, []), ["n1"], id="an empty list"),
    ],
)
def test_a_change_for_one_gate_is_a_change_of_its_node(several: Seen, act: object, expected: list[str]) -> None:
    several.index.replace_pods(CNI, [cilium("n1"), cilium("n2")])
    several.take()
    act(several.index)  # type: ignore[operator]
    assert expected == sorted(several.take())


def test_a_pod_that_loses_its_owner_speaks_no_more(several: Seen) -> None:
    several.index.replace_pods(CNI, [cilium("n1")])
    several.take()
    several.index.upsert_pod(CNI, pod("n1", name="cilium-n1", namespace="kube-system", owners=[]))
    assert {"n1": {"health": ["readygate-system/agent-n1"], "any": ["readygate-system/agent-n1"]}} == spoken_for(
        several
    )


def test_everything_may_be_asked_for(seen: Seen) -> None:
    batch = seen.index.take(everything=True)
    assert batch is not None
    assert ["n1", "n2"] == sorted(batch.evidence)


# What is seen of a node beside its health pods.


def with_more(
    name: str, *, labels: object = None, spec: object = None, deleted: str | None = None, **types: str
) -> object:
    """A node with these labels and conditions; a condition is "status reason message heartbeat"."""
    value = node_json(name)
    value["metadata"] |= {"labels": labels, "deletionTimestamp": deleted}
    value["spec"] = spec or {}
    value["status"]["conditions"] = [
        dict(zip(("status", "reason", "message", "lastHeartbeatTime"), words.split(), strict=False))
        | {"type": kind, "lastTransitionTime": LATER}
        for kind, words in types.items()
    ]
    return seen_as(observed.Node, value)


def observed_of(seen: Seen, value: object) -> ObservedNode:
    seen.index.upsert_node(value)  # type: ignore[arg-type]
    found = seen.take("n1")["n1"]
    assert found is not None
    return found.node


def test_labels_are_seen_and_equal_texts_are_one_object(seen: Seen) -> None:
    labels = [observed_of(seen, with_more("n1", labels={"zone": "a" * 40 + str(1)})).labels for _ in range(2)]
    assert [{"zone": "a" * 40 + "1"}] * 2 == labels
    assert labels[0]["zone"] is labels[1]["zone"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, True, id="a node like any other"),
        pytest.param({"spec": {"unschedulable": True}}, False, id="cordoned"),
        pytest.param({"spec": {"unschedulable": False}}, True, id="uncordoned"),
        pytest.param({"deleted": LATER}, False, id="being deleted"),
        pytest.param({"DrainInProgress": "True"}, False, id="in drain"),
        pytest.param({"Drained": "True"}, False, id="drained"),
        pytest.param({"MaintenancePlanned": "True"}, False, id="to be maintained"),
        pytest.param({"MaintenanceInProgress": "True"}, False, id="in maintenance"),
        pytest.param({"MaintenanceInProgress": "False", "Drained": "Unknown"}, True, id="maintained no more"),
        pytest.param({"MemoryPressure": "True"}, True, id="any other condition"),
    ],
)
def test_whether_a_node_is_in_service(seen: Seen, fields: dict[str, object], expected: bool) -> None:
    assert expected == observed_of(seen, with_more("n1", **fields)).in_service  # type: ignore[arg-type]


def test_of_conditions_those_are_seen_that_a_gate_reads() -> None:
    types = ["KernelDeadlock", "DiskFailing", contract.CONDITION_NODE_HEALTHY]
    wanted = Wanted(node=frozenset(types), aging=frozenset({"DiskFailing"}))
    found = OneList(on_change=lambda: None, wanted=wanted)
    found.replace_nodes(
        [with_more("n1", Ready="True", **{name: f"True Why because at-{name}" for name in [*types, "X"]})]
    )
    found.replace_pods([])
    batch = found.take()
    assert batch is not None
    assert (
        ObservedCondition("KernelDeadlock", "True", "Why", "because", LATER),
        ObservedCondition("DiskFailing", "True", "Why", "because", LATER, "at-DiskFailing"),
    ) == batch.evidence["n1"].node.conditions  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(Wanted(), False, id="no gate reads it"),
        pytest.param(Wanted(node=frozenset({"KernelDeadlock"})), False, id="a gate reads it"),
        pytest.param(
            Wanted(node=frozenset({"KernelDeadlock"}), aging=frozenset({"KernelDeadlock"})),
            True,
            id="and how old it is",
        ),
    ],
)
def test_a_condition_that_is_said_again_is_a_change_only_for_who_asks_how_old_it_is(
    wanted: Wanted, expected: bool
) -> None:
    """5,000 kubelets say five conditions each again every five minutes."""
    calls: list[int] = []
    index = OneList(on_change=lambda: calls.append(1), wanted=wanted)
    index.replace_nodes([with_more("n1", Ready="True a b t1", KernelDeadlock="False a b t1")])
    index.replace_pods([])
    index.take()
    calls.clear()
    index.upsert_node(with_more("n1", Ready="True a b t2", KernelDeadlock="False a b t2"))
    assert expected == bool(calls)


def test_of_a_pods_conditions_those_are_seen_that_a_gate_reads() -> None:
    wanted = Wanted(pod=frozenset({"readygate.dev/Disk", "absent"}))
    value = pod_json("n1", Ready="True", **{"readygate.dev/Disk": "False", "other": "True"})
    found = observed.health_pod(seen_as(observed.Pod, value), "", wanted=wanted)
    assert {"readygate.dev/Disk": "False"} == found.conditions


@pytest.mark.parametrize(
    ("statuses", "cause"),
    [
        pytest.param({"Ready": "True"}, "", id="a good pod"),
        pytest.param({"Ready": "False"}, "R", id="the reason of what is not True"),
        pytest.param({"Ready": "False", "NodeHealthy": "False"}, "R", id="ours first"),
    ],
)
def test_the_cause_of_a_pod_that_is_not_good_is_the_reason_of_its_condition(
    statuses: dict[str, str], cause: str
) -> None:
    assert cause == observed.health_pod(pod("n1", **statuses), "").cause


# What is waited for at a start.


def test_what_is_not_required_is_waited_for_but_not_for_long() -> None:
    clock, waiting = Clock(100.0), [True]
    index = OneList(on_change=lambda: None, awaited=lambda: waiting[0], monotonic=clock)
    index.replace_nodes([])
    clock.time += 60
    index.replace_pods([])
    clock.time += AWAITED_S - 0.1
    assert index.take() is None
    clock.time += 0.1
    assert index.take() is not None


def test_it_is_waited_for_no_longer_than_it_takes_and_never_again() -> None:
    waiting = [True]
    index = OneList(on_change=lambda: None, awaited=lambda: waiting[0], monotonic=lambda: 1.0)
    index.replace_nodes([])
    index.replace_pods([])
    assert index.take() is None
    waiting[0] = False
    assert index.take() is not None
    waiting[0] = True
    assert index.take() is not None
