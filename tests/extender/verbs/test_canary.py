"""The canary: a pod by which a deployment sees that kube-scheduler asks. Refused everywhere; nothing else is one."""

import json
import re

import pytest

from extender.config.settings import parse
from extender.policy.exempt import rules_of
from extender.policy.reasons import CLOSED_NO_HEALTH_POD, REASONS
from extender.policy.snapshot import INHERITED_KICKS
from extender.verbs import wire
from extender.verbs.filter import answer_filter
from extender.verbs.preempt import answer_preempt
from extender.verbs.reply import is_canary
from kube import contract
from tests.contract.go_types import read_filter_result, read_preemption_result
from tests.extender.builders import node, owner, pod
from tests.extender.verbs.test_filter import World
from tests.extender.world import PODS
from tools.kit.cases import cases

MARKED = {"labels": {contract.LABEL_CANARY: "true"}}
CANARY = {"metadata": {"name": "readygate-canary-0", "namespace": contract.NAMESPACE, **MARKED}}
NODES = ["h1", "u1", "x1"]
SHADOW = "gates: [{enforcement: shadow}]\n"


@pytest.mark.parametrize("metadata", [None, {}], ids=["no metadata", "empty metadata"])
def test_a_pod_without_a_name_is_no_canary(metadata):
    services = filled(World(SHADOW)).services
    pod = wire.read_filter_args(json.dumps({"Pod": {"metadata": metadata}, "NodeNames": []}).encode(), whole=True).pod
    assert (is_canary(services, pod), is_canary(services, None)) == (False, False)


def filled(world):
    world.services.index.replace_nodes([node(name) for name in ("h1", "h2", "u1")])
    world.services.index.replace_pods(PODS, [pod("h1"), pod("h2"), pod("u1", Ready="False")])
    world.see()
    return world


def stale(world):
    for cache in world.caches.values():
        cache.age = float("inf")
    return world


@pytest.fixture
def world():
    return filled(World())


@cases(
    "made",
    ("nodes open, closed and unknown", lambda: filled(World())),
    ("before anything is known", World),
    ("stale: no answer for longer than the limit", lambda: stale(filled(World()))),
    ("in shadow", lambda: filled(World(SHADOW))),
    ("where no gate speaks for it", lambda: filled(World("gates: [{for: {namespaces: [tenant]}}]\n"))),
)
def test_x61_the_canary_is_refused_everywhere_whatever_is_known(made):
    result = made().filter(NODES, pod=CANARY)
    assert ([], dict.fromkeys(NODES, contract.CANARY_REFUSED)) == (result.NodeNames, result.FailedAndUnresolvableNodes)
    assert ({}, "") == (result.FailedNodes, result.Error)


@cases(
    "metadata",
    ("the label in another namespace", {"namespace": "default", **MARKED}),
    ("the label in an exempt namespace", {"namespace": "kube-system", **MARKED}),
    ("the label without a namespace", MARKED),
    ("our namespace without the label", {"namespace": contract.NAMESPACE}),
    ("null for labels", {"namespace": contract.NAMESPACE, "labels": None}),
    ("the label says no", {"namespace": contract.NAMESPACE, "labels": {contract.LABEL_CANARY: "false"}}),
    ("an annotation", {"namespace": contract.NAMESPACE, "annotations": {contract.LABEL_CANARY: "true"}}),
    ("a health pod", {"namespace": contract.NAMESPACE, **MARKED, "ownerReferences": [owner()]}),
    (
        "a pod that a controller made",
        {
            "namespace": contract.NAMESPACE,
            **MARKED,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u"}],
        },
    ),
)
def test_x61_nothing_else_is_a_canary(world, metadata):
    """Each is answered as it is without the label."""
    plain = {key: value for key, value in metadata.items() if key not in ("labels", "annotations")}
    expected = world.filter(["h1", "u1"], pod={"metadata": plain})
    given = world.filter(["h1", "u1"], pod={"metadata": metadata})
    assert "h1" in given.NodeNames
    assert (expected.NodeNames, expected.FailedAndUnresolvableNodes) == (
        given.NodeNames,
        given.FailedAndUnresolvableNodes,
    )


def test_x61_a_controllers_pod_is_none_also_where_daemonsets_are_not_exempt():
    world = filled(World("exempt: {daemonSetPods: false}\n"))
    made = {"namespace": contract.NAMESPACE, **MARKED, "ownerReferences": [owner(name="another")]}
    assert ["h1", "u1"] == world.filter(["h1", "u1"], pod={"metadata": made}).NodeNames


def test_x61_our_own_namespace_is_the_configured_one():
    world = World("namespace: ours\n")
    ours, usual = ({"metadata": {"namespace": one, **MARKED}} for one in ("ours", contract.NAMESPACE))
    assert [] == world.filter(NODES, pod=ours).NodeNames
    assert "ours" == rules_of(parse("namespace: ours")).own
    assert world.filter(NODES, pod=usual).Error, "an ordinary pod before anything is known"


def test_x61_the_same_bytes_at_each_attempt_in_any_form(world):
    """kube-scheduler retries a pod without pause whose text changes."""
    spelled = json.dumps({"Pod": CANARY, "Nodes": None, "NodeNames": NODES}, separators=(",", ":")).encode()
    loose = json.dumps({"nodenames": NODES, "pod": CANARY}).encode()
    answers = {answer_filter(world.services, body).body for body in (spelled, loose, spelled)}
    assert 1 == len(answers)
    assert dict.fromkeys(NODES, contract.CANARY_REFUSED) == read_filter_result(answers.pop()).FailedAndUnresolvableNodes


@pytest.mark.parametrize("names", [[""], ["h1", ""]])
def test_x28_an_empty_name_is_not_echoed_to_a_canary_either(world, names):
    assert wire.plain(wire.NAMELESS_NODE) == world.filter(names, pod=CANARY).Error


def test_x61_no_name_and_a_doubled_name(world):
    none, doubled = world.filter([], pod=CANARY), world.filter(["h1", "h1"], pod=CANARY)
    assert ([], {}) == (none.NodeNames, none.FailedAndUnresolvableNodes)
    assert ([], {"h1": contract.CANARY_REFUSED}) == (doubled.NodeNames, doubled.FailedAndUnresolvableNodes)


def test_x61_it_leaves_no_trace(world, monkeypatch):
    """No node was closed by it: none is counted as refused, none is kicked when it opens."""
    for _ in range(INHERITED_KICKS):  # those of the start
        world.services.board.after_kick()
    kicked: list[str] = []
    monkeypatch.setattr(world.services.decider, "_on_release", kicked.extend)
    world.filter(NODES, pod=CANARY)
    world.see(pod("u1"))
    assert ([], {}) == (kicked, world.services.counts.refused)
    world.filter(["h2", "m1"])
    assert {CLOSED_NO_HEALTH_POD: 1} == world.services.counts.refused, "as it is for any other pod"


@pytest.mark.parametrize("form", ["NodeNameToMetaVictims", "NodeNameToVictims"])
def test_x61_it_preempts_nobody(world, form):
    entry = {"Pods": [{"UID": "a"}] if "Meta" in form else [{"metadata": {"uid": "a"}}], "NumPDBViolations": 0}
    body = json.dumps({"Pod": CANARY, form: {"h1": entry, "u1": entry}}).encode()
    reply = answer_preempt(world.services, body)
    assert (200, {}) == (reply.status, read_preemption_result(reply.body))


def test_its_reason_is_its_own_and_never_changes():
    assert contract.CANARY_REFUSED not in REASONS
    assert not re.search(r"[0-9%]|node\(s\)", contract.CANARY_REFUSED)
    assert contract.CANARY_REFUSED == wire.plain(contract.CANARY_REFUSED)
