"""What operators write into the ConfigMap, and what of it holds for a node: rubbish in one entry changes no other."""

import json
import math
import random

import pytest

from extender.policy.orders import Kind, Order, Orders, parse_orders
from kube.times import parse_time

NOON = parse_time("2026-11-22T12:00:00Z")
HOUR = 3600.0


def entry(order="hold", **keys):
    return json.dumps({"order": order, **keys})


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        pytest.param(Order("a", Kind.HOLD), "order: hold", id="the least there can be, for the cluster and for ever"),
        pytest.param(Order("a", Kind.HOLD), '{"order": "hold", "expires": null}', id="JSON, with null for never"),
        pytest.param(
            Order("a", Kind.HOLD, node="n-007", author="anna", reason="its disk", created=NOON, expires=NOON + HOUR),
            "{order: hold, scope: {node: n-007}, author: anna, reason: its disk,"
            " created: 2026-11-22T12:00:00Z, expires: 2026-11-22T13:00:00Z}",
            id="YAML, with times that YAML reads itself",
        ),
        pytest.param(
            Order("a", Kind.PAUSE, gate="gpu", pool="Pool_1", expires=NOON),
            entry("pause", scope={"gate": "gpu", "pool": "Pool_1"}, expires="2026-11-22T13:00:00+01:00"),
            id="a gate in a pool, until a time of another zone",
        ),
        pytest.param(
            Order("a", Kind.EXEMPT, author="x" * 64, reason="two lines"),
            entry("exempt", author="x" * 500, reason="two\n\tlines\x1b"),
            id="free text is made one line and cut",
        ),
        pytest.param(Order("a", Kind.ARM, gate="health"), entry("arm", scope={"gate": "health"}), id="arm a gate"),
        pytest.param(Order("a", Kind.HOLD), entry(expires="9999-12-31T23:59:59Z"), id="the last time of all is never"),
        pytest.param(
            Order("a", Kind.HOLD, expires=0.0),
            entry(expires="0001-01-01T00:00:00+14:00"),
            id="before all time has been over for long",
        ),
    ],
)
def test_an_entry_is_read(expected, value):
    assert Orders((expected,)) == parse_orders({"a": value})


ORDER_KEYS = "order, scope, author, reason, created, expires"


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        pytest.param("order: missing, allowed: hold, exempt, pause, disarm, arm", "", id="empty"),
        pytest.param(
            'order: is the text "holt", allowed: hold, exempt, pause, disarm, arm', "order: holt", id="an unknown order"
        ),
        pytest.param(
            f"until: unknown key, allowed: {ORDER_KEYS}", "{order: hold, until: never}", id="a key nobody knows"
        ),
        pytest.param(f"is an empty list, allowed: a mapping with the keys {ORDER_KEYS}", "[]", id="a list"),
        pytest.param(f"is nan, allowed: a mapping with the keys {ORDER_KEYS}", "NaN", id="no number"),
        pytest.param("is no text of at most 2048 characters", 7, id="no text at all"),
        pytest.param("is no text of at most 2048 characters", None, id="null"),
        pytest.param("is no text of at most 2048 characters", "x" * 2049, id="too long"),
        pytest.param(
            "line 1, column 17: the key order is given twice, allowed: once",
            '{"order":"hold","order":"exempt"}',
            id="a key twice, in JSON",
        ),
        pytest.param("line 1, column 5: an alias, allowed: the value itself", "&a [*a]", id="an alias"),
        pytest.param("not YAML: nested too deeply", "[" * 2000, id="nested too deeply"),
        pytest.param(
            "line 1, column 1: could not determine a constructor for the tag"
            " 'tag:yaml.org,2002:python/object/apply:os.system'",
            "!!python/object/apply:os.system [true]",
            id="a tag that would run something",
        ),
        pytest.param(
            'expires: is the text "tomorrow", allowed: an RFC 3339 time, as "2026-11-23T08:00:00Z" or null',
            entry(expires="tomorrow"),
            id="a time that is none",
        ),
        pytest.param(
            'expires: is 2026-11-23 08:00:00, allowed: an RFC 3339 time, as "2026-11-23T08:00:00Z" or null',
            "{order: hold, expires: 2026-11-23 08:00:00}",
            id="a time without a zone",
        ),
        pytest.param(
            "scope.pool: stands beside a node, allowed: one of the two",
            entry(scope={"pool": "a", "node": "b"}),
            id="a pool and a node",
        ),
        pytest.param(
            'scope.node: is the text "", allowed: the name of a node or null',
            entry(scope={"node": ""}),
            id="an empty name, which is not the cluster",
        ),
        pytest.param(
            "scope: is empty, allowed: a mapping with the keys gate, pool, node",
            entry(scope=None),
            id="a scope of null, which is not the cluster",
        ),
        pytest.param(
            "scope: names nodes, allowed with arm: a gate, or {} for all gates",
            entry("arm", scope={"node": "a"}),
            id="a gate armed on one node",
        ),
        pytest.param("author: is 7, allowed: text", entry(author=7), id="a number for an author"),
    ],
)
def test_an_entry_that_cannot_be_used_is_one_clear_line_and_no_order(expected, value):
    assert Orders((Order("b", Kind.HOLD),), (f"a: {expected}",)) == parse_orders({"a": value, "b": entry()})


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


HOLD = Order("hold", Kind.HOLD, node="n")
NODES = {"gate": "health", "node": "n", "pool": "p", "wall": NOON}


@pytest.mark.parametrize(
    ("expected", "entries"),
    [
        pytest.param(None, [], id="no order"),
        pytest.param("a", [Order("a", Kind.PAUSE)], id="one for the cluster"),
        pytest.param(None, [Order("a", Kind.HOLD, node="m")], id="one for another node"),
        pytest.param(None, [Order("a", Kind.HOLD, gate="gpu", node="n")], id="one for the node at another gate"),
        pytest.param(None, [Order("a", Kind.HOLD, pool="q")], id="one for another pool"),
        pytest.param(None, [Order("a", Kind.ARM)], id="an order about gates"),
        pytest.param("b", [Order("a", Kind.HOLD), Order("b", Kind.PAUSE, gate="health")], id="gate before cluster"),
        pytest.param(
            "b", [Order("a", Kind.HOLD, gate="health"), Order("b", Kind.PAUSE, pool="p")], id="pool before gate"
        ),
        pytest.param(
            "b", [Order("a", Kind.HOLD, gate="health", pool="p"), Order("b", Kind.PAUSE, node="n")], id="node first"
        ),
        pytest.param(
            "b",
            [Order("a", Kind.HOLD, node="n"), Order("b", Kind.PAUSE, gate="health", node="n")],
            id="a node at a gate before the node at all of them",
        ),
        pytest.param(
            "c",
            [Order("a", Kind.PAUSE), Order("b", Kind.EXEMPT), Order("c", Kind.HOLD)],
            id="of one scope: hold first",
        ),
        pytest.param("b", [Order("a", Kind.PAUSE), Order("b", Kind.EXEMPT)], id="of one scope: exempt before pause"),
        pytest.param(
            "b",
            [Order("a", Kind.HOLD, expires=NOON + 1), Order("b", Kind.HOLD, expires=NOON + 2)],
            id="of one kind: the one that lasts longer",
        ),
        pytest.param(
            "a",
            [Order("a", Kind.PAUSE), Order("b", Kind.HOLD, node="n", expires=NOON)],
            id="one that has expired gives way to a wider one",
        ),
    ],
)
def test_of_several_orders_the_narrowest_scope_holds_for_a_node(expected, entries):
    found = orders_of(*entries).for_node(**NODES)
    assert expected == (found and found.id)


@pytest.mark.parametrize(
    ("expected", "entries"),
    [
        pytest.param(None, [], id="no order: as configured"),
        pytest.param(None, [Order("a", Kind.HOLD)], id="an order about nodes"),
        pytest.param("arm", [Order("a", Kind.ARM)], id="all gates"),
        pytest.param(
            "disarm", [Order("a", Kind.ARM, created=NOON), Order("b", Kind.DISARM, gate="health")], id="its own first"
        ),
        pytest.param(
            "arm", [Order("a", Kind.ARM, created=NOON), Order("b", Kind.DISARM, created=NOON - 1)], id="then the newest"
        ),
        pytest.param("disarm", [Order("a", Kind.ARM), Order("b", Kind.DISARM)], id="then the one that refuses nothing"),
        pytest.param(
            "disarm",
            [Order("a", Kind.ARM, gate="health", created=NOON), Order("b", Kind.DISARM, created=NOON + 1)],
            id="a later word that no gate refuses counts for one that was armed by name",
        ),
        pytest.param(
            "disarm",
            [Order("a", Kind.ARM, gate="health", created=NOON), Order("b", Kind.DISARM)],
            id="so does one that does not say when",
        ),
        pytest.param(
            "arm",
            [Order("a", Kind.ARM, gate="health", created=NOON + 1), Order("b", Kind.DISARM, created=NOON)],
            id="an earlier one does not",
        ),
        pytest.param(
            "disarm",
            [Order("a", Kind.DISARM, gate="health", created=NOON), Order("b", Kind.ARM, created=NOON + 1)],
            id="a gate disarmed by name is not armed with all others",
        ),
        pytest.param(None, [Order("a", Kind.ARM, expires=NOON)], id="one that has expired"),
    ],
)
def test_whether_a_gate_is_armed_by_order(expected, entries):
    found = orders_of(*entries).arming("health", NOON)
    assert expected == (found and found.kind)


def test_an_order_ends_at_its_time_and_is_shown_as_expired():
    orders = orders_of(HOLD, Order("b", Kind.PAUSE, expires=NOON), Order("c", Kind.PAUSE, expires=NOON + HOUR))
    shown = [
        ([order.id for order in orders.in_force(wall)], [order.id for order in orders.expired(wall)])
        for wall in (NOON - 1, NOON, NOON + HOUR)
    ]
    assert [(["hold", "b", "c"], []), (["hold", "c"], ["b"]), (["hold"], ["b", "c"])] == shown
    assert [NOON, NOON + HOUR, math.inf] == [orders.next_expiry(wall) for wall in (NOON - 1, NOON, NOON + HOUR)]


@pytest.mark.parametrize(
    ("expected", "order"),
    [
        ("the cluster", Order("a", Kind.HOLD)),
        ("gate gpu", Order("a", Kind.HOLD, gate="gpu")),
        ("gate gpu on node n", Order("a", Kind.HOLD, gate="gpu", node="n")),
        ("pool p", Order("a", Kind.HOLD, pool="p")),
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
    for _ in range(2000):
        data = {f"e{i}": "".join(chance.choices(alphabet, k=chance.randrange(40))) for i in range(3)}
        orders = parse_orders(data | {"good": entry()})
        assert len(data) + 1 == len(orders.entries) + len(orders.faults)
        assert "good" in {order.id for order in orders.entries}
        assert all(len(fault) < 400 and "\n" not in fault for fault in orders.faults)
