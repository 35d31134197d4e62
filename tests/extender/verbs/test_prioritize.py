"""The verbs `prioritize` and `bind`, bytes to bytes: an array whatever is asked, and no binding."""

import json

import pytest

from extender.policy.decision import GateState
from extender.policy.pods import EVERY_POD, Classes
from extender.policy.reasons import CLOSED_NOT_READY
from extender.verbs.prioritize import answer_prioritize
from extender.verbs.table import NOT_A_BINDER, VERBS
from tests.contract.bad_bodies import BAD_BODIES
from tests.contract.go_types import read_binding_result, read_priorities
from tests.extender.builders import node, pod
from tests.extender.verbs.test_filter import World
from tests.extender.world import PODS

POD = {"metadata": {"name": "p", "namespace": "default"}}


@pytest.fixture
def world():
    world = World()
    world.services.index.replace_nodes([node(name) for name in ("h1", "u1")])
    world.services.index.replace_pods(PODS, [pod("h1"), pod("u1", Ready="False")])
    world.see()
    return world


def scores(world, names, pod=POD):
    reply = answer_prioritize(world.services, json.dumps({"Pod": pod, "Nodes": None, "NodeNames": names}).encode())
    assert 200 == reply.status
    return read_priorities(reply.body)


@pytest.mark.parametrize("names", [["h1", "u1", "x1"], ["h1", "h1"], []], ids=["each", "asked twice", "none"])
def test_x42_one_score_for_each_name(world, names):
    """A gate of severity `gate` has no say here: what it closes, `filter` has refused."""
    assert dict.fromkeys(names, 10) == scores(world, names)


def prefers_not(world, **options):
    """The snapshot gets a gate of severity preferNot that is closed on u1."""
    board = world.services.board
    closed = {"u1": CLOSED_NOT_READY}
    gate = GateState("soft", severity="preferNot", closed=closed, **options)
    world.services.classes = Classes([EVERY_POD, EVERY_POD])
    board.swap(board.snapshot.after({**board.snapshot.gates, "soft": gate}, board.snapshot.nodes))


@pytest.mark.parametrize(
    ("expected", "options"),
    [pytest.param(0, {"armed": True}, id="armed"), pytest.param(10, {"armed": False}, id="in shadow")],
)
def test_x42_where_a_gate_would_rather_have_no_pod_the_score_is_low(world, expected, options):
    prefers_not(world, **options)
    assert {"h1": 10, "u1": expected, "x1": 10} == scores(world, ["h1", "u1", "x1"])


def test_an_exempt_pod_has_no_preference():
    assert {"u1": 10} == scores(World(), ["u1"], pod={"metadata": {"namespace": "kube-system"}})


def test_without_verdicts_there_are_no_scores():
    assert {} == scores(World(), ["h1"])


@pytest.mark.parametrize(
    "body",
    [
        *BAD_BODIES,
        pytest.param(b'{"Pod":null,"NodeNames":["h1"]}', id="no pod"),
        pytest.param(b'{"Pod":{},"Nodes":{"items":[]},"NodeNames":null}', id="whole nodes"),
        pytest.param(b'{"Pod":{},"NodeNames":["h1",""]}', id="an empty name"),
    ],
)
def test_x43_a_bad_body_is_a_bad_request_and_never_a_200_object(world, body):
    reply = answer_prioritize(world.services, body)
    assert (400, True) == (reply.status, json.loads(reply.body)["Error"].startswith("readygate: "))


@pytest.mark.parametrize("body", [b"", b'{"PodName":"p","PodNamespace":"d","PodUID":"u","Node":"h1"}'])
def test_x49_we_do_not_bind(world, body):
    reply = VERBS["bind"](world.services, body)
    assert (200, NOT_A_BINDER) == (reply.status, read_binding_result(reply.body))
