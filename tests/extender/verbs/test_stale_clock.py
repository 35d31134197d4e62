"""The API server falls silent and the clock walks on, 0 to 30 minutes: what becomes of each kind of pod, in both modes.

A row of docs/reliability.md (ages): each cell of the table in docs/failure.md that time alone reaches.
"""

import pytest

from extender.verbs.source import Sync
from tests.extender.builders import AGENT_LABELS, node, owner, pod
from tests.extender.verbs.test_filter import PODS, World

LIMIT_S = 120.0
MINUTES = range(31)
NODES = ["good", "bad", "never"]
ORDINARY = {"metadata": {"name": "p", "namespace": "default"}}
EXEMPT = {
    "health pod": {
        "metadata": {"namespace": "readygate-system", "labels": AGENT_LABELS, "ownerReferences": [owner()]},
    },
    "of a DaemonSet": {"metadata": {"namespace": "default", "ownerReferences": [owner(name="cni")]}},
    "of kube-system": {"metadata": {"namespace": "kube-system"}},
    "system-critical": {"metadata": {"namespace": "default"}, "spec": {"priorityClassName": "system-node-critical"}},
}


@pytest.fixture
def world():
    """Synced, and from now on nothing is heard any more."""
    world = World()
    world.services.index.replace_nodes([node(name) for name in NODES])
    world.services.index.replace_pods(PODS, [pod("good"), pod("bad", Ready="False")])
    world.see()
    return world


def walk(world, seconds):
    world.clock.time += seconds
    for cache in world.caches.values():
        cache.age += seconds
    world.services.decider.turn()


def placed_on(world, asked, *, ignorable):
    """What kube-scheduler makes of our answer: None = the pod waits."""
    answer = world.filter(NODES, pod=asked)
    if answer.Error:
        return NODES if ignorable else None
    return answer.NodeNames


@pytest.mark.parametrize(
    ("ignorable", "blind"),
    [pytest.param(True, NODES, id="protect: unfiltered"), pytest.param(False, None, id="enforce: it waits")],
)
def test_an_ordinary_pod(world, ignorable, blind):
    found = []
    for _ in MINUTES:
        found.append(placed_on(world, ORDINARY, ignorable=ignorable))
        walk(world, 60.0)
    assert [["good"]] * 3 + [blind] * 28 == found, "last known verdicts up to the limit, then none"


@pytest.mark.parametrize("ignorable", [True, False], ids=["protect", "enforce"])
@pytest.mark.parametrize("asked", EXEMPT.values(), ids=EXEMPT)
def test_an_exempt_pod_passes_all_the_time(world, asked, ignorable):
    found = []
    for _ in MINUTES:
        found.append(placed_on(world, asked, ignorable=ignorable))
        walk(world, 60.0)
    assert [NODES] * 31 == found


@pytest.mark.parametrize("ignorable", [True, False], ids=["protect", "enforce"])
def test_before_the_first_lists(ignorable):
    world, found = World(), []
    for _ in MINUTES:
        found.append([placed_on(world, one, ignorable=ignorable) for one in (ORDINARY, EXEMPT["of kube-system"])])
        walk(world, 60.0)
    assert [[NODES if ignorable else None, NODES]] * 31 == found


def test_the_moment_of_the_limit_and_the_return(world):
    walk(world, LIMIT_S)
    assert "" == world.filter(NODES).Error
    walk(world, 0.1)
    assert Sync.STALE.value == world.filter(NODES).Error
    for cache in world.caches.values():
        cache.age = 0.0
    assert ["good"] == world.filter(NODES).NodeNames


def test_who_probes_and_the_other_verbs_are_told_the_same_in_each_minute(world):
    ready, preempt, scores, bind = [], [], [], []
    for _ in MINUTES:
        ready.append(world.client.get("/readyz").status_code)
        victims = {"NodeNameToMetaVictims": {name: {"Pods": [], "NumPDBViolations": 0} for name in NODES}}
        preempt.append(world.client.post("/preempt", json={"Pod": ORDINARY, **victims}).status_code)
        told = world.client.post("/prioritize", json={"Pod": ORDINARY, "NodeNames": NODES}).json
        scores.append(len({one["Score"] for one in told}))
        bind.append("Error" in world.client.post("/bind", json={"PodName": "p", "Node": "good"}).json)
        walk(world, 60.0)
    assert [200] * 3 + [503] * 28 == ready == preempt
    assert [True] * 31 == bind
    assert [1] * 3 + [0] * 28 == scores, "who is blind scores no node"


def test_a_health_pod_that_vanished_as_the_last_news(world):
    """Its grace runs on although nothing more is heard."""
    world.services.index.remove_pod(PODS, pod("good"))
    found = []
    for _ in range(5):
        world.services.decider.turn()
        found.append(world.filter(NODES).NodeNames)
        walk(world, 10.0)
    assert [["good"]] * 3 + [[]] * 2 == found
