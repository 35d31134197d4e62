"""Requests in the form that kube-scheduler gives them are answered from their bytes, and as all others are."""

import json
import random
from collections import Counter

import pytest

from extender.policy.snapshot import Answer
from extender.verbs import wire
from extender.verbs.filter import answer_filter
from tests.contract import mutations
from tests.extender.builders import node, pod
from tests.extender.verbs.test_filter import World
from tests.extender.world import PODS
from tools.kit.scope import draws

POD = {
    "metadata": {"name": "p", "namespace": "default", "uid": "u", "labels": {"a": '],"Nodes":null,"NodeNames":["h1'}}
}
BODIES = draws(3_000, 20_000)
# As kube-scheduler 1.35 sends it (docs/versions.md).
MANAGED = {
    "managedFields": [
        {
            "manager": "kube-controller-manager",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-11-23T20:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:spec": {'k:{"name":["h1"]}': {".": {}}}},
        }
    ]
}


def written(names, pod=POD):
    """As Go's encoder writes it."""
    return json.dumps({"Pod": pod, "Nodes": None, "NodeNames": names}, separators=(",", ":")).encode()


def worlds():
    """Two that know the same."""
    both = World(), World()
    for world in both:
        world.services.index.replace_nodes([node(name) for name in ("h1", "h2", "u1", "m1")])
        world.services.index.replace_pods(PODS, [pod("h1"), pod("h2"), pod("u1", Ready="False")])
        world.see()
    return both


def told(world, body):
    """All that comes of a request but for how it was read."""
    reply = answer_filter(world.services, body)
    answer = json.loads(reply.body)
    (refusals,) = world.services.board._refusals.values()
    noted = [sorted(page) for page in refusals._pages], sorted(refusals._unknown)
    attempts = world.services.attempts.take(9)
    return answer, reply.result, reply.exemption, reply.status, world.services.counts, attempts_told(attempts), noted


def attempts_told(attempts):
    """The snapshots are each world's own, and what is refused is one time a dictionary and one time is not."""
    apart = ("snapshot", "refused")
    return [
        [getattr(one, name) for name in one.__struct_fields__ if name not in apart]
        + [one.snapshot is None, sorted(one.refused), len(one.refused)]
        for one in attempts
    ]


@pytest.fixture
def decoded(monkeypatch):
    """Whether a list of names was decoded."""
    calls = []
    read = wire.read_filter_args
    monkeypatch.setattr(wire, "read_filter_args", lambda *body, **options: calls.append(1) or read(*body, **options))
    return calls


@pytest.mark.parametrize(
    ("names", "pod", "by_bytes"),
    [
        pytest.param(["h2", "h1"], POD, True, id="all open"),
        pytest.param(["h2", "u1", "h1", "m1"], POD, True, id="some closed"),
        pytest.param(["u1", "m1"], POD, True, id="none open"),
        pytest.param(["h2", "x", "u1"], POD, False, id="one that nobody knows"),
        pytest.param(["h1", "u1", "h1", "u1"], POD, False, id="twice each"),
        pytest.param(["u1"], POD, False, id="a single one, which may be the nominated node"),
        pytest.param(["u1"], POD | {"status": {"nominatedNodeName": "u1"}}, False, id="the nominated one"),
        pytest.param(["h1", "u1"], {"metadata": POD["metadata"] | MANAGED}, True, id="of a pod with managed fields"),
        pytest.param([], POD, False, id="none"),
        pytest.param(["h1", ""], POD, False, id="an empty one"),
        pytest.param(["h1", 'h"2'], POD, False, id="one with a quotation mark"),
        pytest.param(["h1", "h1,h2"], POD, False, id="one with a comma"),
        pytest.param(["h1", "u1"], {"metadata": {"namespace": "kube-system"}}, False, id="of an exempt pod"),
        pytest.param(["h1", "u1"], {}, True, id="of a pod that says nothing"),
        pytest.param(["h1", "u1"], None, False, id="of no pod"),
        pytest.param(["h1", 1], POD, False, id="one that is a number"),
        pytest.param(["h1", ["u1"]], POD, False, id="one that is a list"),
    ],
)
def test_the_same_comes_of_a_request_with_blanks(decoded, names, pod, by_bytes):
    one, other = worlds()
    spread = json.dumps({"Pod": pod, "Nodes": None, "NodeNames": names}).encode()
    expected = told(other, spread)
    decoded.clear()
    assert expected == told(one, written(names, pod))
    assert by_bytes == (not decoded)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"Pod":{},"Nodes":null,"NodeNames":["h1","u1"]}}', id="a brace too many"),
        pytest.param(b'{"Pod":{},"Nodes":null,"NodeNames":["h1","u1"]} ', id="a blank at the end"),
        pytest.param(b'{"Pod":{},,"Nodes":null,"NodeNames":["h1","u1"]}', id="a comma too many"),
        pytest.param(b'{,"Nodes":null,"NodeNames":["h1","u1"]}', id="nothing before the comma"),
        pytest.param(b'{"Pod":{"a":1,"Nodes":null,"NodeNames":["h1","u1"]}', id="within an object that does not end"),
        pytest.param(b'{"Pod":{"a":"1,"Nodes":null,"NodeNames":["h1","u1"]}', id="within a text that does not end"),
        pytest.param(b'{"Pod":{},"NodeNames":["x"],"Nodes":null,"NodeNames":["h1","u1"]}', id="names twice"),
        pytest.param(b'{"nodenames":["x"],"pod":{},"Nodes":null,"NodeNames":["h1","u1"]}', id="keys in small letters"),
        pytest.param(b'{"Pod":{"spec":7},"Nodes":null,"NodeNames":["h1","u1"]}', id="a Pod of another type"),
        pytest.param(b'{"Pod":{},"Nodes":null,"NodeNames":["h1"u1"]}', id="a comma left out"),
        pytest.param(b'{"Pod":{},"Nodes":null,"NodeNames":["h1",,"u1"]}', id="a name left out"),
        pytest.param(b'{"Pod":{},"Nodes":null,"NodeNames":["h1", "u1"]}', id="a blank before a name"),
        pytest.param(b'{"Pod":{},"Nodes":null,"NodeNames":["h1","\\u0075\\u0031"]}', id="a name in escapes"),
        pytest.param(b'{"Pod":{},"Nodes":null,"NodeNames":["h1","u\xff"]}', id="a name that is no UTF-8"),
        pytest.param(b'{"Pod":{"x":"\xff"},"Nodes":null,"NodeNames":["h1","u1"]}', id="a Pod that is no UTF-8"),
        pytest.param(b',"Nodes":null,"NodeNames":["h1","u1"]}', id="nothing before"),
    ],
)
def test_what_is_nearly_in_that_form_is_answered_as_ever(monkeypatch, body):
    one, other = worlds()
    result = told(one, body)
    monkeypatch.setattr(wire, "read_as_written", lambda _body, **_: None)
    assert told(other, body) == result


def test_managed_fields_as_large_as_a_pod_may_be_are_read_past():
    """All an API server may keep of a pod, in the smallest fields, and a thousand names."""
    fields = {f"f:{number:x}": {} for number in range(1_572_864 // len('"f:12345":{},'))}
    managed = {"managedFields": [{"manager": "m", "fieldsV1": fields}]}
    body = written(["h1", "u1", *(f"x{number}" for number in range(1_000))], {"metadata": POD["metadata"] | managed})
    assert 1_400_000 < len(body) < wire.BODY_LIMIT_BYTES
    one, _ = worlds()
    answer, *_ = told(one, body)
    assert (["h1"], "") == (answer["NodeNames"], answer["Error"])


def test_bodies_by_chance_are_answered_as_ever(monkeypatch, seed):
    one, other = worlds()
    read = wire.read_as_written
    chance = random.Random(f"{seed} written")
    seeds = [written(["h1", "u1", "m1"]), written(["h2", "h1"]), written(["u1", "x1", "h1"])]
    found = set()
    for number in range(BODIES):
        body = mutations.body(chance, seeds)
        monkeypatch.setattr(wire, "read_as_written", read)
        result = told(one, body)
        monkeypatch.setattr(wire, "read_as_written", lambda _body, **_: None)
        assert told(other, body) == result, f"body {number} of this seed: {body!r}"
        found.add((read(body) is None, result[1]))
    assert len(found) > 4, found


def test_while_a_gate_in_shadow_closes_a_node_the_names_are_kept():
    world, _ = worlds()
    world.services.attempts.keep_names = True
    answer_filter(world.services, written(["h1", "u1"]))
    assert [["h1", "u1"]] == [one.names for one in world.services.attempts.take(9)]


def test_what_changes_is_spelled_anew():
    """Nodes come, go, open and close: what is kept ready for requests is what would be made of the snapshot afresh."""
    world, _ = worlds()
    board = world.services.board
    for change in (
        lambda: world.see(pod("u1")),
        lambda: world.see(pod("h1", Ready="False")),
        lambda: world.services.index.upsert_node(node("n9")),
        lambda: world.services.index.remove_node(node("h2")),
        lambda: world.see(pod("n9")),
    ):
        answer_filter(world.services, written(["h1", "m1"]))
        change()
        world.see()
        names = sorted(board.snapshot.nodes)
        answer: Answer = board.look_up(names)
        (survivors, closed, refused), _ = board.look_up_spelled([json.dumps(name).encode() for name in names])
        assert ([json.loads(name) for name in survivors], json.loads(refused.told)) == (
            answer.survivors,
            answer.refused,
        )
        assert sorted(map(json.loads, closed)) == sorted(refused) == sorted(answer.refused)
        assert refused.reasons == Counter(answer.refused.values())
    assert names == ["h1", "m1", "n9", "u1"]
