"""Which gates speak for the pod of a request: nodes that are closed for others only are open for it, at every verb."""

import json

import pytest

from extender.policy.decision import GateState
from extender.policy.devices import PodClaim
from extender.policy.pods import Classes, PodClass, PodSeen, PodVolume
from extender.policy.reasons import CLOSED_NOT_READY, CLOSED_UNHEALTHY
from extender.policy.snapshot import Snapshot
from extender.verbs.pods import seen_of
from extender.verbs.table import VERBS
from extender.verbs.wire import read_filter_args
from tests.contract.go_types import read_filter_result, read_preemption_result, read_priorities
from tests.extender.verbs.test_filter import World
from tools.kit.cases import cases

GPU = "nvidia.com/gpu"
NODES = ["n1", "n2", "n3"]


@pytest.fixture
def world():
    """base is for every pod and closes n1; gpu is for pods that ask for one and closes n2; soft would avoid n3."""
    world = World()
    services = world.services
    gates = {
        "base": GateState("base", closed={"n1": CLOSED_NOT_READY}),
        "gpu": GateState("gpu", closed={"n1": CLOSED_UNHEALTHY, "n2": CLOSED_UNHEALTHY}),
        "soft": GateState("soft", severity="preferNot", closed={"n3": CLOSED_NOT_READY}),
        "shadow": GateState("shadow", armed=False, closed=dict.fromkeys(NODES, CLOSED_NOT_READY)),
    }
    services.board.swap(Snapshot(gates, frozenset(NODES)))
    asks = PodClass(resources=frozenset({GPU}))
    services.classes = Classes([PodClass(), asks, asks, PodClass()])
    return world


def pod_with(**spec):
    return {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": spec}


PLAIN = pod_with(containers=[{"name": "c", "resources": {"requests": {"cpu": "1"}}}])
WITH_GPU = pod_with(containers=[{"name": "c"}, {"name": "d", "resources": {"limits": {GPU: "1"}}}])


def answer(world, verb, request):
    return VERBS[verb](world.services, json.dumps(request).encode()).body


@cases(
    "pod, expected",
    ("no GPU: the gate of all pods speaks", PLAIN, {"n1": CLOSED_NOT_READY}),
    ("a GPU: both, the first one's reason", WITH_GPU, {"n1": CLOSED_NOT_READY, "n2": CLOSED_UNHEALTHY}),
)
def test_filter(world, pod, expected):
    result = read_filter_result(answer(world, "filter", {"Pod": pod, "NodeNames": NODES}))
    assert expected == result.FailedAndUnresolvableNodes
    assert [name for name in NODES if name not in expected] == result.NodeNames


@pytest.mark.parametrize(
    ("pod", "expected"), [pytest.param(PLAIN, ["n2", "n3"], id="no GPU"), pytest.param(WITH_GPU, ["n3"], id="a GPU")]
)
def test_preempt(world, pod, expected):
    request = {"Pod": pod, "NodeNameToMetaVictims": {name: {"Pods": [{"UID": "a"}]} for name in NODES}}
    assert expected == list(read_preemption_result(answer(world, "preempt", request)))


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(PLAIN, {"n1": 10, "n2": 10, "n3": 10}, id="no GPU"),
        pytest.param(WITH_GPU, {"n1": 10, "n2": 10, "n3": 0}, id="a GPU"),
    ],
)
def test_prioritize(world, pod, expected):
    assert expected == read_priorities(answer(world, "prioritize", {"Pod": pod, "NodeNames": NODES}))


def test_the_attempt_is_remembered_with_the_gates_that_spoke(world):
    answer(world, "filter", {"Pod": PLAIN, "NodeNames": NODES})
    answer(world, "filter", {"Pod": WITH_GPU, "NodeNames": NODES})
    taken = world.services.attempts.take(2)
    assert [0b1001, 0b1111] == [attempt.mask for attempt in taken]


@pytest.mark.parametrize("names", [[""], ["n3", ""]])
def test_x28_an_empty_name_is_not_echoed_where_no_gate_refuses_the_pod_anything(world, names):
    world.services.classes = Classes([PodClass(resources=frozenset({GPU}))] * 4)
    result = read_filter_result(answer(world, "filter", {"Pod": PLAIN, "NodeNames": names}))
    assert (None, True) == (result.NodeNames, bool(result.Error))


WHOLE = pod_with(
    schedulerName="other",
    priority=7,
    resources={"limits": {"pod.example/level": "1"}},
    initContainers=[{"name": "i", "resources": {"requests": {"init.example/one": None}}}],
    containers=[{"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": None}}, {"name": "d"}],
    volumes=[
        {"name": "a", "csi": {"driver": "inline.example"}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "c", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}},
        {"name": "d", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"name": "e", "emptyDir": {}},
    ],
    resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}],
)


def read(pod, *, whole):
    return seen_of(read_filter_args(json.dumps({"Pod": pod, "NodeNames": []}).encode(), whole=whole).pod)


@cases(
    "whole, expected",
    (
        "where a gate asks for them: with resources, volumes and claims",
        True,
        PodSeen(
            namespace="default",
            priority=7,
            scheduler_name="other",
            resources=frozenset({"cpu", "pod.example/level", "init.example/one"}),
            volumes=(
                PodVolume(driver="inline.example"),
                PodVolume(claim="data"),
                PodVolume(claim="p-c", storage_class="fast"),
                PodVolume(claim="p-d"),
            ),
            claims=(PodClaim("shared"),),
        ),
    ),
    ("else: no more than is needed", False, PodSeen(namespace="default", priority=7, scheduler_name="other")),
)
def test_what_gates_see_of_a_pod(whole, expected):
    assert expected == read(WHOLE, whole=whole)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"containers": None, "volumes": None, "initContainers": None, "resources": None, "resourceClaims": None},
        {"volumes": [{}]},
        {"resourceClaims": []},
    ],
    ids=["nothing", "nulls", "a volume of no kind", "no claims"],
)
def test_a_pod_without_any_of_it(spec):
    assert PodSeen(namespace="default") == read(pod_with(**spec), whole=True)


BY_TEMPLATE = {"name": "gpu", "resourceClaimTemplateName": "single-gpu"}
MADE = {"name": "gpu", "resourceClaimName": "p-gpu-x7k2p"}


@cases(
    "claims, status, expected",
    ("a claim by name", [{"name": "gpu", "resourceClaimName": "shared"}], None, [PodClaim("shared")]),
    ("a template whose claim is not made yet", [BY_TEMPLATE], {}, [PodClaim(template="single-gpu")]),
    (
        "a template whose claim is made",
        [BY_TEMPLATE],
        {"resourceClaimStatuses": [{"name": "nic", "resourceClaimName": "p-nic"}, MADE]},
        [PodClaim("p-gpu-x7k2p", "single-gpu")],
    ),
    ("a template of which no claim is needed", [BY_TEMPLATE], {"resourceClaimStatuses": [{"name": "gpu"}]}, []),
    (
        "no claim is needed, said by null",
        [BY_TEMPLATE],
        {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": None}]},
        [],
    ),
    ("nulls", [{"name": "gpu", "resourceClaimName": "a", "resourceClaimTemplateName": None}], None, [PodClaim("a")]),
    ("an entry of a later Kubernetes", [{"name": "gpu", "podGroupClaim": "x"}], None, [PodClaim()]),
    ("null as status", [BY_TEMPLATE], {"resourceClaimStatuses": None}, [PodClaim(template="single-gpu")]),
    (
        "the claim of an extended resource that DRA serves",
        [],
        {"extendedResourceClaimStatus": {"requestMappings": [], "resourceClaimName": "p-extended-resources-9x"}},
        [PodClaim("p-extended-resources-9x")],
    ),
)
def test_the_claims_of_a_pod(claims, status, expected):
    """Of an API of 1.34 to 1.37, core/v1 PodResourceClaim and its status."""
    found = read(pod_with(resourceClaims=claims) | ({} if status is None else {"status": status}), whole=True)
    assert expected == list(found.claims)


def test_a_pod_without_metadata_or_spec():
    assert [PodSeen(), PodSeen()] == [read(pod, whole=True) for pod in ({}, {"metadata": None, "spec": None})]
