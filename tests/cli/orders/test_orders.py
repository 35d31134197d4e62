"""The order commands, run as by an operator against an API server with one ConfigMap."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from cli.orders import entries
from cli.orders.store import Store
from extender.policy.orders import ENTRIES_MAX, parse_orders
from kube.client import Client
from kube.times import format_time
from tests.cli.orders.ordering import NAME, NAMESPACE, WALL, ordered, put, run
from tests.cli.served import Extender
from tools.kit.cases import cases

CREATED = {"created": "2026-11-22T12:00:00Z"}


def entry(order, scope, *, author="anna", reason="", **expires):
    return {"order": order, "scope": scope, "author": author, "reason": reason, **expires, **CREATED}


SWAP = ["hold", "--node", "n-1", "--for", "2h", "--reason", "swapping\nits disk"]
AT_TWO = {"reason": "swapping its disk", "expires": "2026-11-22T14:00:00Z"}
NEXT_DAY = {"expires": "2026-11-23T07:00:00Z"}
GPU_AND_NODE = {"gate": "gpu", "node": "n-1"}
OF_BEN = ["hold", "--node", "n-1", "--gate", "gpu", "--author", "ben"]


@cases(
    "argv, id_, expected",
    ("hold a node for two hours", SWAP, "hold-n-1", entry("hold", {"node": "n-1"}, **AT_TWO)),
    ("at one gate, by ben, until lifted", OF_BEN, "hold-gpu-n-1", entry("hold", GPU_AND_NODE, author="ben")),
    ("pause until a time", ["pause", "--until", "2026-11-23T08:00:00+01:00"], "pause", entry("pause", {}, **NEXT_DAY)),
    ("exempt a pool", ["exempt", "--pool", "gpu"], "exempt-gpu", entry("exempt", {"pool": "gpu"})),
    ("hold the cluster, after a yes", ["hold", "--yes"], "hold", entry("hold", {})),
    ("arm a gate", ["arm", "--gate", "gpu"], "arming-gpu", entry("arm", {"gate": "gpu"})),
    ("disarm all", ["disarm"], "arming", entry("disarm", {})),
)
def test_an_order_is_written_as_the_extenders_read_it(api, capsys, argv, id_, expected):
    code, out, err = run(capsys, *argv)
    assert (0, "") == (code, err)
    assert {id_: expected} == ordered(api)
    orders = parse_orders(api.get("ConfigMap", NAME, NAMESPACE)["data"])
    assert ((), [id_]) == (orders.faults, [order.id for order in orders.entries])
    assert f"readygate lift {id_}" in out


@pytest.mark.usefixtures("api")
def test_a_written_order_is_shown_with_how_to_lift_it(capsys):
    _, out, _ = run(capsys, "hold", "--node", "n-1", "--for", "2h")
    assert "node n-1: closed, whatever its health, until 14:00\n  lift it: readygate lift hold-n-1\n" == out


@pytest.mark.usefixtures("api")
def test_json_has_written_listed_and_lifted_orders(capsys):
    _, out, _ = run(capsys, "hold", "--node", "n-1", "--for", "2h", "-o", "json")
    written = {"id": "hold-n-1", "order": "hold", "scope": {"node": "n-1"}, "author": "anna"}
    assert {"written": [written | {"expires": "2026-11-22T14:00:00Z"}], "lifted": []} == json.loads(out)
    _, out, _ = run(capsys, "orders", "-o", "json")
    assert [written | {"expires": "2026-11-22T14:00:00Z", "inForce": True}] == json.loads(out)["orders"]
    _, out, _ = run(capsys, "lift", "hold-n-1", "-o", "json")
    assert {"written": [], "lifted": ["hold-n-1"]} == json.loads(out)


PAST = "2026-11-22T11:59:59Z"
ABOVE_CAP = "above any cap; name one with --node, or add --yes"


@cases(
    "command, code, expected",
    ("all nodes", "hold", 1, f"that would keep 3 nodes closed, {ABOVE_CAP}"),
    ("a pool", "hold --pool gpu --gate base", 1, f"that would keep 2 nodes closed at gate base, {ABOVE_CAP}"),
    (
        "a misspelled pool",
        "exempt --pool gpus",
        1,
        "no node has the label readygate.dev/pool=gpus; check --pool-label, or add --yes",
    ),
    ("no such node", "hold --node n-9", 1, "there is no node n-9; see kubectl get nodes, or add --yes"),
    ("no name", "hold --node N_1 --yes", 2, 'scope.node: is the text "N_1", allowed: the name of a node or null'),
    ("no length of time", "pause --for soon", 2, '"soon" is not a duration; write 30m, 2h, 1h30m or 3d'),
    ("a time that is over", f"pause --until {PAST}", 2, f'"{PAST}" is in the past; name a later time'),
    ("no such order", "lift a", 1, f"configmap {NAME} in namespace {NAMESPACE} has no order a: it has none"),
    ("no id of an order", "lift", 2, "name orders by their id (readygate orders shows them), or add --expired"),
)
def test_an_invalid_order_is_one_line_with_a_remedy_and_writes_nothing(api, capsys, command, code, expected):
    argv = command.split()
    assert (code, "", f"readygate {argv[0]}: {expected}\n") == run(capsys, *argv)
    assert {} == ordered(api)


@pytest.mark.parametrize(
    ("argv", "method", "expected"),
    [
        pytest.param(["pause"], "GET", "get", id="get"),
        pytest.param(["pause"], "PATCH", "patch", id="patch"),
        pytest.param(["orders"], "GET", "get", id="list"),
    ],
)
def test_a_missing_right_is_named(api, capsys, argv, method, expected):
    put(api)
    api.answer_next(403, reason="Forbidden", message="no right", method=method, path="configmaps")
    code, out, err = run(capsys, *argv)
    assert (3 if argv == ["orders"] else 1, "") == (code, out)
    tried = f"{expected} configmap {NAME} in namespace {NAMESPACE}"
    role = f"a RoleBinding to the ClusterRole readygate-operator in namespace {NAMESPACE}"
    assert f"readygate {argv[0]}: you may not {tried}: ask for {role}, or another --context: no right\n" == err


def test_an_operator_without_the_right_to_list_nodes_may_go_on_with_yes(api, capsys):
    api.answer_next(403, reason="Forbidden", path="/nodes")
    _, _, err = run(capsys, "hold")
    assert "that would keep an unknown number of nodes (you may not list nodes) closed" in err
    api.answer_next(403, reason="Forbidden", path="/nodes")
    assert 0 == run(capsys, "hold", "--yes")[0]


def test_a_gate_that_no_extender_knows_is_refused(cluster, capsys):
    gates = {"gates": [{"gate": "base"}, {"gate": "gpu"}]}
    cluster.extenders = [Extender("readygate-extender-1", gates=gates)]
    assert (1, "", "readygate arm: there is no gate bass; name one of base, gpu, or add --yes\n") == run(
        capsys, "arm", "--gate", "bass"
    )


def test_entries_of_others_and_invalid_entries_are_left_alone(api, capsys):
    theirs = '{"order":"hold","scope":{"node":"n-1"},"author":"ben"}'
    put(api, **{"hold-n-1": theirs, "hold-n-1-2": "no order at all"})
    assert 0 == run(capsys, "hold", "--node", "n-1")[0]
    data = api.get("ConfigMap", NAME, NAMESPACE)["data"]
    assert (theirs, "no order at all", 3) == (data["hold-n-1"], data["hold-n-1-2"], len(data))
    assert "anna" == json.loads(data["hold-n-1-3"])["author"]


def test_the_same_order_of_the_same_author_is_renewed(api, capsys):
    run(capsys, "hold", "--node", "n-1", "--for", "1h")
    run(capsys, "hold", "--node", "n-1", "--for", "2h")
    run(capsys, "arm")
    run(capsys, "disarm")
    found = ordered(api)
    assert ["arming", "hold-n-1"] == sorted(found)
    assert ("disarm", "2026-11-22T14:00:00Z") == (found["arming"]["order"], found["hold-n-1"]["expires"])


def test_orders_are_listed_with_invalid_entries(api, capsys):
    put(
        api,
        a="{order: hold, scope: {node: n-1}, author: ben, reason: RMA 4711, expires: 2026-11-22T14:00:00Z}",
        b="{order: pause, expires: 2026-11-22T10:00:00Z}",
        c="{order: holt}",
    )
    code, out, _ = run(capsys, "orders")
    lines = [line.split() for line in out.splitlines()]
    assert 1 == code
    assert ["ID", "ORDER", "FOR", "UNTIL", "BY", "REASON"] == lines[0]
    assert ["a", "hold", "node", "n-1", "14:00", "ben", "RMA", "4711"] == lines[1]
    assert ["b", "pause", "the", "cluster", "expired", "10:00"] == lines[2]
    assert "ignored by the extenders: c: order: is the text" in out
    assert all(len(line) <= 60 for line in narrow(capsys).splitlines())


def narrow(capsys):
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("COLUMNS", "60")
        return run(capsys, "orders")[1]


@pytest.mark.usefixtures("api")
def test_an_empty_list_is_shown_as_such(capsys):
    assert (0, "There are no orders.\n", "") == run(capsys, "orders")


def test_expired_orders_are_lifted_together(api, capsys):
    put(
        api,
        a="{order: pause, expires: 2026-11-22T10:00:00Z}",
        b="{order: pause}",
        c="{order: holt}",
        d="{order: hold, expires: 2026-11-22T12:00:00Z}",
    )
    assert (0, "lifted a\nlifted d\n", "") == run(capsys, "lift", "--expired")
    assert ["b", "c"] == sorted(api.get("ConfigMap", NAME, NAMESPACE)["data"])
    assert (0, "no order has expired\n", "") == run(capsys, "lift", "--expired")


def test_text_of_orders_is_printable(api, capsys):
    put(api, a=json.dumps({"order": "hold", "reason": "\x1b[31mred\u202e", "author": "\x07"}))
    _, out, _ = run(capsys, "orders")
    assert [] == [char for char in out if not char.isprintable() and char != "\n"]


def test_ten_operators_at_once_lose_no_order(api):
    """All read before the first writes, so all but one get a conflict and read again."""
    put(api, there="not an order")
    barrier = threading.Barrier(10)

    def order(number):
        first = [True]

        def change(_):
            if first:
                first.clear()
                barrier.wait(10)
            return {f"order-{number}": "{order: pause}"}

        Store(Client(api.connection(), user_agent="test", attempts=1), NAMESPACE, NAME, tries=20).change(change)

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(order, range(10)))
    data = api.get("ConfigMap", NAME, NAMESPACE)["data"]
    assert {"there", *(f"order-{number}" for number in range(10))} == set(data)


def test_repeated_conflicts_end_the_command(api, capsys):
    put(api)
    api.answer_next(409, reason="Conflict", method="PATCH", path="configmaps", times=8)
    expected = f"configmap {NAME} in namespace {NAMESPACE} was changed by others each time; try again"
    assert (1, "", f"readygate pause: {expected}\n") == run(capsys, "pause")


def test_orders_above_the_limit_are_refused(api, capsys):
    put(api, **{f"o-{number}": "{order: pause}" for number in range(ENTRIES_MAX)})
    code, _, err = run(capsys, "pause")
    assert (1, True) == (code, "has 1000 orders, the limit is 1000; lift some" in err)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90s", 90), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("3d", 259_200), ("1d2h3m4s", 93_784)],
)
def test_a_duration_is_parsed(text, expected):
    assert expected == entries.duration_s(text)


@pytest.mark.parametrize("text", ["", "5", "h", "-1h", "0s", "1.5h", "2h1d", "9999d", "1 h", "\u0661h"])
def test_an_invalid_duration_is_refused(text):
    with pytest.raises(ValueError):
        entries.duration_s(text)


@pytest.mark.usefixtures("in_utc")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-22T13:00:00Z", "2026-11-22T13:00:00Z"),
        ("2026-11-22T18:00:00+05:00", "2026-11-22T13:00:00Z"),
        ("2026-11-22T13:00", "2026-11-22T13:00:00Z"),
        ("13:30", "2026-11-22T13:30:00Z"),
        ("11:30", "2026-11-23T11:30:00Z"),
        ("2026-12-24", "2026-12-24T00:00:00Z"),
    ],
)
def test_a_time_is_parsed(text, expected):
    assert expected == format_time(entries.moment_s(text, WALL))


@pytest.mark.parametrize(
    "text",
    ["", "25:00", "tomorrow", "2026-11-22T13:00:00+01:00", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "1\n2"],
)
def test_an_invalid_time_is_refused(text):
    with pytest.raises(ValueError) as caught:
        entries.moment_s(text, WALL)
    assert "\n" not in str(caught.value)
