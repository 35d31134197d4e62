"""What operators write into the ConfigMap, and what of it holds for a node: rubbish in one entry changes no other."""

import json
import math
import random
from functools import partial

import pytest

from extender.policy.orders import Kind, Order, Orders, parse_orders
from kube.times import parse_time
from tools.kit.cases import cases
from tools.kit.scope import draws

NOON = parse_time("2026-11-22T12:00:00Z")
HOUR = 3600.0

hold, exempt, pause = (partial(Order, kind=kind) for kind in (Kind.HOLD, Kind.EXEMPT, Kind.PAUSE))
arm, disarm = partial(Order, kind=Kind.ARM), partial(Order, kind=Kind.DISARM)


def entry(order="hold", **keys):
    return json.dumps({"order": order, **keys})


WHOLE = hold("a", node="n-007", author="anna", reason="its disk", created=NOON, expires=NOON + HOUR)
WHOLE_YAML = """\
order: hold
scope: {node: n-007}
author: anna
reason: its disk
created: 2026-11-22T12:00:00Z
expires: 2026-11-22T13:00:00Z
"""
GATE_IN_POOL = entry("pause", scope={"gate": "gpu", "pool": "Pool_1"}, expires="2026-11-22T13:00:00+01:00")
LONG = entry("exempt", author="x" * 500, reason="two\n\tlines\x1b")


@cases(
    "expected, value",
    ("the shortest: for the cluster, for ever", hold("a"), "order: hold"),
    ("JSON, with null for never", hold("a"), '{"order": "hold", "expires": null}'),
    ("YAML, with times that YAML reads itself", WHOLE, WHOLE_YAML),
    ("a gate in a pool, a time of another zone", pause("a", gate="gpu", pool="Pool_1", expires=NOON), GATE_IN_POOL),
    ("free text is made one line and cut", exempt("a", author="x" * 64, reason="two lines"), LONG),
    ("arm a gate", arm("a", gate="health"), entry("arm", scope={"gate": "health"})),
    ("the last time of all is never", hold("a"), entry(expires="9999-12-31T23:59:59Z")),
    ("before all time has been over for long", hold("a", expires=0.0), entry(expires="0001-01-01T00:00:00+14:00")),
)
def test_an_entry_is_read(expected, value):
    assert Orders((expected,)) == parse_orders({"a": value})


ORDER_KEYS = "order, scope, author, reason, created, expires"
A_NODE = {"node": "a"}
A_TIME = 'allowed: an RFC 3339 time, as "2026-11-23T08:00:00Z" or null'


@cases(
    "expected, value",
    ("empty", "order: missing, allowed: hold, exempt, pause, disarm, arm", ""),
    ("an unknown order", 'order: is the text "holt", allowed: hold, exempt, pause, disarm, arm', "order: holt"),
    ("an unknown key", f"until: unknown key, allowed: {ORDER_KEYS}", "{order: hold, until: never}"),
    ("a list", f"is an empty list, allowed: a mapping with the keys {ORDER_KEYS}", "[]"),
    ("NaN", f"is nan, allowed: a mapping with the keys {ORDER_KEYS}", "NaN"),
    ("a number", "is no text of at most 2048 characters", 7),
    ("null", "is no text of at most 2048 characters", None),
    ("too long", "is no text of at most 2048 characters", "x" * 2049),
    ("a key twice", "line 1, column 17: the key order is given twice, allowed: once", '{"order":"hold","order":"arm"}'),
    ("an alias", "line 1, column 5: an alias, allowed: the value itself", "&a [*a]"),
    ("nested too deeply", "not YAML: nested too deeply", "[" * 2000),
    (
        "a tag that would run something",
        (
            "line 1, column 1: could not determine a constructor for the tag"
            " 'tag:yaml.org,2002:python/object/apply:os.system'"
        ),
        "!!python/object/apply:os.system [true]",
    ),
    ("a word for a time", f'expires: is the text "tomorrow", {A_TIME}', entry(expires="tomorrow")),
    ("no time zone", f"expires: is 2026-11-23 08:00:00, {A_TIME}", "{order: hold, expires: 2026-11-23 08:00:00}"),
    ("both", "scope.pool: is given with a node, allowed: one of the two", entry(scope={"pool": "a", "node": "b"})),
    ("an empty name", 'scope.node: is the text "", allowed: the name of a node or null', entry(scope={"node": ""})),
    ("a null scope", "scope: is empty, allowed: a mapping with the keys gate, pool, node", entry(scope=None)),
    ("a node to arm", "scope: names nodes, allowed with arm: a gate, or {} for all gates", entry("arm", scope=A_NODE)),
    ("a number for an author", "author: is 7, allowed: text", entry(author=7)),
)
def test_an_entry_that_cannot_be_used_is_one_clear_line_and_no_order(expected, value):
    assert Orders((hold("b"),), (f"a: {expected}",)) == parse_orders({"a": value, "b": entry()})


@pytest.mark.parametrize("id_", ["", "UPPER", "-a", "a-", "a.b", "a_b", "x" * 64, "two\nlines"])
def test_an_id_that_is_none_is_one_line_too(id_):
    [fault] = parse_orders({id_: entry()}).faults
    shown = id_.replace("\n", " ")[:63]
    assert f"{shown}: is no id, allowed: a-z, 0-9 and -, at most 63" == fault


def test_no_config_map_and_an_empty_one_are_no_orders():
    assert [Orders(), Orders()] == [parse_orders(None), parse_orders({})]


def test_a_thousand_orders_at_most_and_few_lines_about_the_others():
    orders = parse_orders({f"o-{i:04}": entry() for i in range(1002)} | {f"bad-{i:02}": "x" for i in range(30)})
    assert 970 == len(orders.entries)
    assert "1032 orders, allowed: 1000; ignored from o-0970 on" == orders.faults[0]
    assert (21, "and 11 more that cannot be used") == (len(orders.faults), orders.faults[-1])


def test_rubbish_that_was_there_before_is_not_read_again(monkeypatch):
    data = {f"bad-{i}": f"order: [{i}" for i in range(10)}
    expected = parse_orders(data)
    monkeypatch.setattr("component.settings.document", None)
    assert expected == parse_orders(data)


def orders_of(*entries):
    return Orders(tuple(entries))


HOLD = hold("hold", node="n")
NODES = {"gate": "health", "node": "n", "pool": "p", "wall": NOON}


@cases(
    "expected, entries",
    ("no order", None, []),
    ("one for the cluster", "a", [pause("a")]),
    ("one for another node", None, [hold("a", node="m")]),
    ("one for the node at another gate", None, [hold("a", gate="gpu", node="n")]),
    ("one for another pool", None, [hold("a", pool="q")]),
    ("an order about gates", None, [arm("a")]),
    ("gate before cluster", "b", [hold("a"), pause("b", gate="health")]),
    ("pool before gate", "b", [hold("a", gate="health"), pause("b", pool="p")]),
    ("node first", "b", [hold("a", gate="health", pool="p"), pause("b", node="n")]),
    ("a node at one gate before a node at all gates", "b", [hold("a", node="n"), pause("b", gate="health", node="n")]),
    ("of one scope: hold first", "c", [pause("a"), exempt("b"), hold("c")]),
    ("of one scope: exempt before pause", "b", [pause("a"), exempt("b")]),
    ("of one kind: the longer one", "b", [hold("a", expires=NOON + 1), hold("b", expires=NOON + 2)]),
    ("an expired order gives way to a wider one", "a", [pause("a"), hold("b", node="n", expires=NOON)]),
)
def test_of_several_orders_the_narrowest_scope_holds_for_a_node(expected, entries):
    found = orders_of(*entries).for_node(**NODES)
    assert expected == (found and found.id)


@cases(
    "expected, entries",
    ("no order: as configured", None, []),
    ("an order about nodes", None, [hold("a")]),
    ("an order for all gates", "arm", [arm("a")]),
    ("the gate's own order first", "disarm", [arm("a", created=NOON), disarm("b", gate="health")]),
    ("then the newest order", "arm", [arm("a", created=NOON), disarm("b", created=NOON - 1)]),
    ("then disarm before arm", "disarm", [arm("a"), disarm("b")]),
    ("a later disarm of all wins", "disarm", [arm("a", gate="health", created=NOON), disarm("b", created=NOON + 1)]),
    ("a disarm of all without a time wins", "disarm", [arm("a", gate="health", created=NOON), disarm("b")]),
    ("an earlier disarm of all loses", "arm", [arm("a", gate="health", created=NOON + 1), disarm("b", created=NOON)]),
    ("a later arm of all loses", "disarm", [disarm("a", gate="health", created=NOON), arm("b", created=NOON + 1)]),
    ("an expired order", None, [arm("a", expires=NOON)]),
)
def test_whether_a_gate_is_armed_by_order(expected, entries):
    found = orders_of(*entries).arming("health", NOON)
    assert expected == (found and found.kind)


def test_an_order_ends_at_its_time_and_is_shown_as_expired():
    orders = orders_of(HOLD, pause("b", expires=NOON), pause("c", expires=NOON + HOUR))
    shown = [
        ([order.id for order in orders.in_force(wall)], [order.id for order in orders.expired(wall)])
        for wall in (NOON - 1, NOON, NOON + HOUR)
    ]
    assert [(["hold", "b", "c"], []), (["hold", "c"], ["b"]), (["hold"], ["b", "c"])] == shown
    assert [NOON, NOON + HOUR, math.inf] == [orders.next_expiry(wall) for wall in (NOON - 1, NOON, NOON + HOUR)]


@pytest.mark.parametrize(
    ("expected", "order"),
    [
        ("the cluster", hold("a")),
        ("gate gpu", hold("a", gate="gpu")),
        ("gate gpu on node n", hold("a", gate="gpu", node="n")),
        ("pool p", hold("a", pool="p")),
    ],
)
def test_a_scope_in_words(expected, order):
    assert expected == order.scope


@pytest.mark.parametrize(
    ("text", "where"),
    [
        pytest.param('"a\\uD800"', "line 1, column 1:", id="in a text that is no order"),
        pytest.param('order: hold\n"k\\uD800": 1\n', "line 2, column 1:", id="in a key"),
        pytest.param('{"order": "hold", "reason": "a\\ud800"}', "line 1, column 29: reason:", id="in a reason, JSON"),
        pytest.param('order: hold\nreason: "\\uDFFF"\n', "line 2, column 9: reason:", id="in a reason, as YAML"),
    ],
)
def test_half_a_character_is_one_clear_line(text, where):
    expected = (f"e: {where} half a character, allowed: whole ones",)
    orders = parse_orders({"e": text, "good": entry()})
    assert (["good"], expected) == ([order.id for order in orders.entries], orders.faults)


def test_any_bytes_at_all_are_orders_or_lines(seed):
    chance = random.Random(f"{seed} orders")
    alphabet = '{}[]",:&*!|>-%@`#\n\t x0\x00\x85\ud800é' + "order:hold scope node expires null true 1e999"
    for _ in range(draws(300, 2000)):
        data = {f"e{i}": "".join(chance.choices(alphabet, k=chance.randrange(40))) for i in range(3)}
        orders = parse_orders(data | {"good": entry()})
        assert len(data) + 1 == len(orders.entries) + len(orders.faults)
        assert "good" in {order.id for order in orders.entries}
        assert all(len(fault) < 400 and "\n" not in fault for fault in orders.faults)
