import json

import pytest

from extender.verbs import wire
from tests.contract.bad_bodies import BAD_BODIES

POD = {"metadata": {"name": "p", "namespace": "default"}}


def read(value):
    return wire.read_filter_args(value if isinstance(value, bytes) else json.dumps(value).encode())


def test_names_mode():
    assert ["a", "b"] == read({"Pod": POD, "Nodes": None, "NodeNames": ["a", "b"]}).node_names


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(("pod", "nodenames"), id="X29: lower case"),
        pytest.param(("POD", "NODENAMES"), id="X29: upper case"),
        pytest.param(("Pod", "nodeNames"), id="X29: only one differs"),
    ],
)
def test_top_keys_in_any_case(keys):
    assert read({keys[0]: POD, keys[1]: ["a"], "nodes": None}).node_names == ["a"]


@pytest.mark.parametrize("body", BAD_BODIES)
def test_malformed(body):
    with pytest.raises(wire.MalformedError) as caught:
        read(body)
    assert len(str(caught.value)) < 200
    assert "%" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param({"Pod": None, "NodeNames": ["a"]}, wire.NO_POD, id="X23: pod null"),
        pytest.param({"NodeNames": ["a"]}, wire.NO_POD, id="X23: pod missing"),
        pytest.param({"Pod": POD, "Nodes": None, "NodeNames": None}, wire.NEITHER, id="X12: neither shape"),
        pytest.param({"Pod": POD, "Nodes": {"items": []}}, wire.NEITHER, id="X9: whole nodes"),
        pytest.param({}, wire.NO_POD, id="an empty object"),
    ],
)
def test_unanswerable(value, text):
    with pytest.raises(wire.UnanswerableError, match=text):
        read(value)


def test_the_last_of_doubled_keys_counts():
    assert read(b'{"Pod":{},"NodeNames":["a"],"NodeNames":["b"]}').node_names == ["b"]


def test_as_many_names_as_we_take():
    assert wire.NAMES_MAX == len(read({"Pod": POD, "NodeNames": ["a"] * wire.NAMES_MAX}).node_names)
    with pytest.raises(wire.TooManyNodesError, match="65536"):
        read({"Pod": POD, "NodeNames": ["a"] * (wire.NAMES_MAX + 1)})


def test_replies_are_one_line_with_gos_keys():
    assert wire.write_names(["a"], {"b": "why"}) == (
        b'{"Nodes":null,"NodeNames":["a"],"FailedNodes":{},"FailedAndUnresolvableNodes":{"b":"why"},"Error":""}'
    )
    assert wire.write_error("100% bad") == (
        b'{"Nodes":null,"NodeNames":null,"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":"100 bad"}'
    )
