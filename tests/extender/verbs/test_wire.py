import json

import msgspec
import pytest

from extender.verbs import wire
from tests.contract.bad_bodies import BAD_BODIES

POD = {"metadata": {"name": "p", "namespace": "default"}}
GO_NODE = b'{"metadata":{"name":"h1","uid":"u"},"spec":{"x":[1, 2.50]},"status":{}}'


def read(value):
    return wire.read_filter_args(value if isinstance(value, bytes) else json.dumps(value).encode())


def test_names_mode():
    args = read({"Pod": POD, "Nodes": None, "NodeNames": ["a", "b"]})
    assert (args.nodes, args.node_names) == (None, ["a", "b"])


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
        pytest.param({}, wire.NO_POD, id="an empty object"),
    ],
)
def test_unanswerable(value, text):
    with pytest.raises(wire.UnanswerableError, match=text):
        read(value)


def test_the_last_of_doubled_keys_counts():
    assert read(b'{"Pod":{},"NodeNames":["a"],"NodeNames":["b"]}').node_names == ["b"]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(GO_NODE, "h1", id="as Go writes it"),
        pytest.param(b'{"kind":"Node", "metadata": {"uid":"u", "name": "h1"}}', "h1", id="in another order"),
        pytest.param(b'{"metadata":{"name":"h\\u0031"}}', "h1", id="with an escape"),
        pytest.param(b'{"metadata":{"name":"' + b"h" * 300 + b'"}}', "h" * 300, id="longer than a name may be"),
        pytest.param('{"metadata":{"name":"h\u00e9"}}'.encode(), "h\u00e9", id="beyond ASCII"),
    ],
)
def test_names_of_nodes(item, expected):
    assert [expected] == wire.names_of([msgspec.Raw(item)])


@pytest.mark.parametrize(
    "item",
    [b'{"metadata":{"name":""}}', b'{"metadata":{}}', b"{}", b'{"metadata":null}'],
    ids=lambda item: item.decode(),
)
def test_x14_a_node_without_a_name(item):
    with pytest.raises(wire.UnanswerableError):
        wire.names_of([msgspec.Raw(item)])


def test_replies_are_one_line_with_gos_keys():
    assert wire.write_names(["a"], {"b": "why"}) == (
        b'{"Nodes":null,"NodeNames":["a"],"FailedNodes":{},"FailedAndUnresolvableNodes":{"b":"why"},"Error":""}'
    )
    assert wire.write_error("100% bad") == (
        b'{"Nodes":null,"NodeNames":null,"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":"100 bad"}'
    )


def test_x10_nodes_go_back_byte_for_byte():
    reply = wire.write_nodes(msgspec.Raw(b'{"x": 1}'), [msgspec.Raw(GO_NODE)], None, {})
    assert reply.startswith(b'{"Nodes":{"metadata":{"x": 1},"items":[' + GO_NODE + b']},"NodeNames":null,')


@pytest.mark.parametrize("metadata", [b"null", b"5", b'"x"', b"[]", b" null "])
def test_list_metadata_that_is_no_object_is_not_given_back(metadata):
    args = wire.read_filter_args(b'{"Pod":{},"Nodes":{"metadata":' + metadata + b',"items":[]}}')
    reply = wire.write_nodes(args.nodes.metadata, [], None, {})
    assert reply.startswith(b'{"Nodes":{"metadata":{},"items":[]},')
