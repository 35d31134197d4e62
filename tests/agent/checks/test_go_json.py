"""JSON is read as Go's encoding/json reads it; the differential's target `cni` plays the same against Go itself."""

from typing import Any

import pytest

from agent.checks.go_json import (
    DEPTH_LIMIT,
    Object,
    as_marshalled,
    as_written,
    decoded,
    flag,
    folded,
    list_of,
    map_of,
    struct,
    text,
)
from tools.kit.cases import cases

NAMED = b'{"name": "M\xfcller"}'


@cases(
    "data, expected",
    ("an object", b' {"a": [1, -2.5e3, true, null, "\xc3\xa4\\u00e4"]}\r\n', {"a": [1.0, -2500.0, True, None, "ää"]}),
    ("no object", b"7", 7.0),
    ("of a key that is there twice the last counts", b'{"a": 1, "a": {}}', {"a": {}}),
    ("one invalid byte, one replacement", NAMED, {"name": "M\ufffdller"}),
    ("half a character: one for each byte", b'"\xe4\xbd"', "\ufffd\ufffd"),
    ("an encoded surrogate: one for each byte", b'"\xed\xa0\x80"', "\ufffd\ufffd\ufffd"),
    ("a lone surrogate", b'"\\ud800x"', "\ufffdx"),
    ("a surrogate before a pair", b'"\\ud800\\ud83d\\ude00"', "\ufffd\U0001f600"),
    ("an escaped solidus", b'"\\/"', "/"),
    ("a number near zero", b"1e-999", 0.0),
    ("minus zero", b"-0.0e-0", -0.0),
    ("DEL in a text", b'"\x7f"', "\x7f"),
)
def test_what_go_reads(data: bytes, expected: object) -> None:
    assert expected == decoded(data)


@cases(
    "data, expected",
    ("a byte order mark", b'\xef\xbb\xbf{"a": 1}', "begins with a byte order mark"),
    ("UTF-16", '{"a": "ä"}'.encode("utf-16"), "begins with a byte order mark"),
    ("UTF-16 without a mark", '{"a": 1}'.encode("utf-16-le"), "line 1, character 2: no key of an object"),
    ("zero bytes, as after a power loss (Azure/azure-container-networking#642)", bytes(9), "character 1: no value"),
    ("nothing", b"", "line 1, character 1: the text ends"),
    ("half of it", b'{"a":\n [1', "line 2, character 4: the text ends"),
    ("a comma too many (projectcalico/cni-plugin#389)", b'{"a": 1,\n}', "line 2, character 1: no key of an object"),
    ("a comment (containers/podman#2909)", b'{"a": 1, #', "line 1, character 10: no key of an object"),
    ("more than one", b'{"a": 1} 2', "character 10: more than one value"),
    ("a line's end in a text", b'{"a": "\n"}', "a control character"),
    ("an escape that JSON lacks", b'"\\x41"', "an invalid escape"),
    ("an apostrophe", b'"\\\'"', "an invalid escape"),
    ("what is no number", b'{"a": NaN}', "no value"),
    ("infinity", b"-Infinity", "a number with no digit"),
    ("a leading zero", b"01", "more than one value"),
    ("a fraction without digits", b"[1.]", "a number with no digit"),
    ("a number that no float64 holds", b"1e999", "too large"),
    ("the same in digits", b"1" * 400, "too large"),
    ("a byte of no encoding outside a text", b"\xff", "no value"),
    ("too many levels", b"[" * (DEPTH_LIMIT + 1), f"character {DEPTH_LIMIT + 1}: too many levels"),
    ("a vertical tab is no white space", b"\v1", "no value"),
)
def test_what_go_refuses(data: bytes, expected: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        decoded(data)
    assert expected in str(raised.value)


def test_ten_thousand_levels_are_read() -> None:
    value = decoded(b"[" * DEPTH_LIMIT + b"]" * DEPTH_LIMIT)
    depth = 0
    while value is not None:
        depth, value = depth + 1, value[0] if value else None
    assert DEPTH_LIMIT == depth


@cases(
    "key, field",
    ("as it is", "type", "type"),
    ("upper case", "TYPE", "type"),
    ("a Kelvin sign", "\u212aey", "key"),
    ("a long s", "cniVer\u017fion", "cniversion"),
    ("a dotted I is no i", "\u0130pam", "i\u0307pam"),
)
def test_keys_fold_as_in_go(key: str, field: str) -> None:
    assert field == folded(key)


FIELDS = struct({"type": text, "on": map_of(flag), "more": struct({"a": text, "b": text}), "all": list_of(text)})


def read(data: bytes, order: Any = as_written) -> Any:
    return FIELDS(None, decoded(data), order)


@cases(
    "data, expected",
    ("keys in any case", b'{"Type": "a", "ON": {"x": true}}', {"type": "a", "on": {"x": True}}),
    ("the last counts", b'{"type": "a", "Type": "b"}', {"type": "b"}),
    ("null leaves a text as it was", b'{"type": "a", "Type": null}', {"type": "a"}),
    ("a struct goes on", b'{"more": {"a": "1"}, "More": {"b": "2"}}', {"more": {"a": "1", "b": "2"}}),
    ("null in a map and a list", b'{"on": {"x": null}, "all": [null, "a"]}', {"on": {"x": None}, "all": [None, "a"]}),
    ("null for a map", b'{"on": {"x": true}, "ON": null}', {"on": None}),
    ("others are not looked at", b'{"other": [[{}]]}', {}),
    ("null for all", b"null", {}),
)
def test_fields(data: bytes, expected: object) -> None:
    assert expected == read(data)


def test_a_map_is_written_in_the_order_of_its_keys() -> None:
    """So what is read of it again may be another value than of the text itself."""
    data = b'{"type": "a", "Type": "b"}'
    assert [{"type": "b"}, {"type": "a"}] == [read(data), read(data, as_marshalled)]


@cases(
    "data, expected",
    ("a number for a text", b'{"type": 1}', "type: a number instead of a text"),
    ("of a key that is there twice the first is checked too", b'{"Type": [], "type": "a"}', "Type: a list instead of"),
    ("a text for true or false", b'{"on": {"x": "true"}}', "on: a text instead of true or false"),
    ("a truth value for a text", b'{"type": true}', "type: a truth value instead of a text"),
    ("a list for an object", b"[]", "a list instead of an object"),
    ("deeper", b'{"more": {"B": {}}}', "more: B: an object instead of a text"),
    ("a text for a list", b'{"all": "a"}', "all: a text instead of a list"),
)
def test_types(data: bytes, expected: str) -> None:
    with pytest.raises(TypeError) as raised:
        read(data)
    assert str(raised.value).startswith(expected)


def test_an_object_keeps_its_pairs() -> None:
    value = decoded(b'{"b": 1, "a": 2, "b": 3}')
    assert isinstance(value, Object)
    assert [("b", 1.0), ("a", 2.0), ("b", 3.0)] == value.pairs
