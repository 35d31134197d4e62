"""The verb `preempt`, bytes to bytes, by the cases X of the contract: kube-scheduler's own requests and bad ones."""

import json

import pytest

from extender.policy.reasons import CLOSED_NO_HEALTH_POD, CLOSED_NOT_READY
from extender.verbs import wire
from extender.verbs.preempt import NEITHER, answer_preempt
from extender.verbs.source import Sync
from tests.contract.bad_bodies import BAD_BODIES
from tests.contract.go_types import read_preemption_result
from tests.extender.builders import node, pod
from tests.extender.verbs.test_filter import World
from tests.extender.world import PODS
from tools.kit.cases import cases

POD = {"metadata": {"name": "p", "namespace": "default"}}
META = {"Pods": [{"UID": "a"}, {"UID": "b"}], "NumPDBViolations": 1}
WHOLE = {
    "Pods": [{"metadata": {"uid": uid, "name": uid, "labels": None}, "spec": {"x": None}} for uid in "ab"],
    "NumPDBViolations": 1,
}


@pytest.fixture
def world():
    world = World()
    world.services.index.replace_nodes([node(name) for name in ("h1", "h2", "u1")])
    world.services.index.replace_pods(PODS, [pod("h1"), pod("h2"), pod("u1", Ready="False")])
    world.see()
    return world


def asked(world, *, meta=None, whole=None, pod=POD):
    """The reply to a request as kube-scheduler words it: every key is there."""
    request = {"Pod": pod, "NodeNameToVictims": whole, "NodeNameToMetaVictims": meta}
    return answer_preempt(world.services, json.dumps(request, separators=(",", ":")).encode())


def kept(reply):
    assert 200 == reply.status
    return list(read_preemption_result(reply.body))


@pytest.mark.parametrize(
    ("expected", "names"),
    [
        pytest.param(["h1"], ["h1", "u1"], id="X44: an open and a closed one"),
        pytest.param([], ["u1", "x1"], id="X47: none is open: an empty map"),
        pytest.param(["h2"], ["x1", "h2"], id="one that nobody knows goes, as filter would refuse it"),
        pytest.param([], [], id="no candidate"),
    ],
)
@pytest.mark.parametrize("form", ["meta", "whole"])
def test_candidates_on_closed_nodes_are_taken_out(world, form, expected, names):
    entry = META if form == "meta" else WHOLE
    assert expected == kept(asked(world, **{form: dict.fromkeys(names, entry)}))


def test_x44_the_victims_of_the_others_are_the_same_bytes(world):
    entry = b'{ "Pods":[{"UID":"a","Later":1.50}],"NumPDBViolations":0 , "Later":{"b":[]}}'
    body = b'{"Pod":{},"NodeNameToVictims":null,"NodeNameToMetaVictims":{"u1":{},"h1":%b}}' % entry
    assert b'{"NodeNameToMetaVictims":{"h1":%b}}' % entry == answer_preempt(world.services, body).body


def test_x45_whole_pods_are_reduced_to_their_uids(world):
    answer = asked(world, whole={"h1": WHOLE, "u1": WHOLE}).body
    assert b'{"NodeNameToMetaVictims":{"h1":{"Pods":[{"UID":"a"},{"UID":"b"}],"NumPDBViolations":1}}}' == answer


@cases(
    "request_, expected",
    ("names", {"meta": {"h1": {"Pods": [], "NumPDBViolations": 0}}}, b'{"Pods":[],"NumPDBViolations":0}'),
    ("null", {"meta": {"h1": {"Pods": None, "NumPDBViolations": 2}}}, b'{"Pods":[],"NumPDBViolations":2}'),
    ("null for pods", {"whole": {"h1": {"Pods": None, "NumPDBViolations": 2}}}, b'{"Pods":[],"NumPDBViolations":2}'),
)
def test_x46_an_entry_without_victims_is_kept_on_an_open_node_and_never_holds_a_null(world, request_, expected):
    assert b'{"NodeNameToMetaVictims":{"h1":%b}}' % expected == asked(world, **request_).body


@pytest.mark.parametrize("namespace", ["kube-system", "readygate-system"])
def test_x48_an_exempt_pod_keeps_all(namespace):
    unsynced = World()
    reply = asked(unsynced, meta={"u1": META, "x1": META}, pod={"metadata": {"namespace": namespace}})
    assert (["u1", "x1"], "exempt") == (kept(reply), reply.result)


@pytest.mark.parametrize("sync", [Sync.NOT_SYNCED, Sync.STALE])
def test_without_verdicts_the_status_tells_and_ignorable_decides(world, monkeypatch, sync):
    monkeypatch.setattr(world.services, "sync", lambda: sync)
    reply = asked(world, meta={"h1": META})
    assert (503, {"Error": sync.value}) == (reply.status, json.loads(reply.body))


BAD_ENTRIES = [
    pytest.param("null", id="null, which would end kube-scheduler"),
    pytest.param('{"Pods":[null],"NumPDBViolations":0}', id="a victim that is null"),
    pytest.param('{"Pods":[{"UID":null}],"NumPDBViolations":0}', id="a UID that is null"),
    pytest.param('{"pods":[null],"NumPDBViolations":0}', id="a null under a key that Go takes for the same"),
    pytest.param('{"Pods":[{"UID":"a","uid":null}]}', id="a null beside it under such a key"),
    pytest.param('{"Pods":{},"NumPDBViolations":0}', id="victims that are no list"),
    pytest.param('{"Pods":[],"NumPDBViolations":9223372036854775808}', id="more than Go's integers hold"),
    pytest.param('{"Pods":[],"NumPDBViolations":"1"}', id="a number as text"),
    pytest.param('{"Pods":[],"Later":"\\ud800","x":[1 2]}', id="no JSON under a key that we do not know"),
    pytest.param("[]", id="a list"),
    pytest.param("7", id="a number"),
]


@pytest.mark.parametrize("entry", BAD_ENTRIES)
@pytest.mark.parametrize("name", ["h1", "u1"])
def test_an_entry_that_cannot_be_given_back_is_a_bad_request(world, name, entry):
    body = f'{{"Pod":{{}},"NodeNameToMetaVictims":{{"{name}":{entry}}}}}'.encode()
    reply = answer_preempt(world.services, body)
    assert (400, "malformed") == (reply.status, reply.result)


@pytest.mark.parametrize(
    "body",
    [
        *BAD_BODIES,
        pytest.param(b'{"Pod":{},"NodeNameToMetaVictims":[]}', id="candidates are a list"),
        pytest.param(b'{"Pod":{},"NodeNameToVictims":{"h1":{"Pods":[null]}}}', id="a whole victim is null"),
        pytest.param(b'{"Pod":{},"NodeNameToVictims":{"h1":{"Pods":[{}]}}}', id="a whole victim without a UID"),
    ],
)
def test_a_bad_body_is_a_bad_request_in_one_line(world, body):
    reply = answer_preempt(world.services, body)
    text = json.loads(reply.body)["Error"]
    assert (400, True, False) == (reply.status, text.startswith("readygate: ") and len(text) < 200, "%" in text)


@pytest.mark.parametrize(
    ("expected", "request_"),
    [
        pytest.param(wire.NO_POD, {"Pod": None, "NodeNameToMetaVictims": {}}, id="no pod"),
        pytest.param(NEITHER, {"Pod": POD}, id="neither form"),
        pytest.param(NEITHER, {"Pod": POD, "NodeNameToMetaVictims": None, "nodenametovictims": None}, id="both null"),
        pytest.param(wire.NAMELESS_NODE, {"Pod": POD, "NodeNameToMetaVictims": {"": META}}, id="a node without a name"),
    ],
)
def test_what_cannot_be_answered(world, expected, request_):
    reply = answer_preempt(world.services, json.dumps(request_).encode())
    assert (400, expected) == (reply.status, json.loads(reply.body)["Error"])


@pytest.mark.parametrize("keys", [("pod", "nodenametometavictims"), ("POD", "NodeNametoMetaVictims")])
def test_top_keys_in_any_case(world, keys):
    body = json.dumps({keys[0]: POD, keys[1]: {"h1": META, "u1": META}}).encode()
    assert ["h1"] == kept(answer_preempt(world.services, body))


def test_a_large_body_comes_as_a_bytearray(world):
    body = bytearray(json.dumps({"Pod": POD, "NodeNameToMetaVictims": {"h1": META, "u1": META}}).encode())
    assert ["h1"] == kept(answer_preempt(world.services, body))


def test_what_is_taken_out_is_counted_apart_from_what_is_filtered_out_and_kicked_when_it_opens(world):
    asked(world, meta=dict.fromkeys(("h1", "u1", "x1"), META))
    counts = world.services.counts
    assert ({CLOSED_NOT_READY: 1, CLOSED_NO_HEALTH_POD: 1}, {}) == (counts.removed, counts.refused)
    world.client.post("/preempt", json={"Pod": POD, "NodeNameToMetaVictims": {"u1": META}})
    text = world.client.get("/metrics").text
    assert 'readygate_requests_total{result="answered",verb="preempt"} 1.0' in text
    assert f'readygate_preemption_removed_nodes_total{{reason="{CLOSED_NOT_READY}"}} 2.0' in text


def test_bad_utf_8_under_a_key_that_we_do_not_know_is_not_given_back(world):
    body = b'{"Pod":{},"NodeNameToMetaVictims":{"h1":{"Pods":[{"UID":"a","Later\x84":"x"}]}}}'
    assert 400 == answer_preempt(world.services, body).status
