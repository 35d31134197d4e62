"""Orders in force: the clock that counts, orders that take precedence, and entries that no command wrote."""

import json
import time

import pytest

from cli.orders import entries
from kube.times import format_time, parse_time
from tests.cli.orders.ordering import NAME, NAMESPACE, ordered, put, run
from tests.cli.served import Extender


def reviewed(api, at):
    """Answers the next SelfSubjectReview with a user name and a time."""
    body = json.dumps(
        {"metadata": {"creationTimestamp": at}, "status": {"userInfo": {"username": "ann@corp"}}}
    ).encode()
    head = f"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    api.drip_next(head.encode() + body, 0.0, path="selfsubjectreviews")


@pytest.mark.parametrize(
    ("at", "ends"),
    [
        pytest.param("2026-11-22T12:30:00Z", "2026-11-22T12:40:00Z", id="this machine is half an hour behind"),
        pytest.param("2026-11-22T11:30:00Z", "2026-11-22T11:40:00Z", id="this machine is half an hour ahead"),
    ],
)
def test_an_orders_times_are_by_the_clock_of_the_api_server(api, capsys, at, ends):
    reviewed(api, at)
    run(capsys, "pause", "--for", "10m")
    expected = {"order": "pause", "scope": {}, "author": "ann@corp", "reason": "", "created": at, "expires": ends}
    assert {"pause": expected} == ordered(api)


HOLDS = '{"order":"hold","scope":{"node":"n-1"},"expires":"2026-11-22T12:10:00Z"}'
OVER = '{"order":"hold","scope":{"node":"n-2"},"expires":"2026-11-22T10:00:00Z"}'


def test_an_order_expires_by_the_clock_of_the_api_server(api, capsys):
    """This machine is half an hour ahead. By its clock the order would be lifted ten minutes early."""
    put(api, holds=HOLDS.replace("12:10", "11:40"), over=OVER)
    reviewed(api, "2026-11-22T11:30:00Z")
    assert (0, "lifted over\n", "") == run(capsys, "lift", "--expired")
    assert ["holds"] == list(ordered(api))


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        pytest.param("2026-11-22T12:00:00Z", {"early": True, "late": True}, id="the same clock"),
        pytest.param("2026-11-22T12:30:00Z", {"early": False, "late": True}, id="this machine is half an hour behind"),
    ],
)
def test_orders_are_in_force_by_the_clock_of_the_api_server(api, capsys, at, expected):
    put(api, early=HOLDS, late='{"order":"pause"}')
    reviewed(api, at)
    told = json.loads(run(capsys, "orders", "-o", "json")[1])["orders"]
    assert expected == {one["id"]: one["inForce"] for one in told}


BEN = '"author":"ben","created":"2026-11-22T12:00:00Z"'


@pytest.mark.parametrize(
    ("argv", "there", "expected"),
    [
        pytest.param(
            ["exempt", "--node", "n-1"],
            {"disk": '{"order":"hold","scope":{"node":"n-1"},%s}'},
            ["but disk takes precedence: hold of node n-1 by ben"],
            id="a hold of the same node",
        ),
        pytest.param(
            ["hold", "--yes", "--gate", "gpu"],
            {"disk": '{"order":"exempt","scope":{"node":"n-1"},%s}', "far": '{"order":"pause","scope":{"gate":"x"}}'},
            ["but disk takes precedence: exempt of node n-1 by ben"],
            id="a node of the gate, not another gate",
        ),
        pytest.param(
            ["arm"],
            {"arming-gpu": '{"order":"disarm","scope":{"gate":"gpu"},%s}'},
            ["but arming-gpu takes precedence: disarm of gate gpu by ben"],
            id="a gate that stays disarmed",
        ),
        pytest.param(
            ["arm", "--gate", "gpu"],
            {"all": '{"order":"disarm",%s}'},
            ["but all takes precedence: disarm of the cluster by ben"],
            id="all gates disarmed in the same second",
        ),
        pytest.param(["disarm"], {"arming-gpu": '{"order":"arm","scope":{"gate":"gpu"},%s}'}, [], id="none is left"),
        pytest.param(
            ["pause"], {"disk": '{"order":"hold","scope":{"node":"n-1"},%s}'}, [], id="a pause, which closes nothing"
        ),
        pytest.param(["hold", "--node", "n-1"], {"all": '{"order":"exempt",%s}'}, [], id="a wider one gives way"),
        pytest.param(
            ["exempt"],
            {f"h-{number}": f'{{"order":"hold","scope":{{"node":"m-{number}"}},%s}}' for number in range(7)},
            [
                *(f"but h-{number} takes precedence: hold of node m-{number} by ben" for number in range(5)),
                "and 2 more: readygate orders",
            ],
            id="many",
        ),
        pytest.param(
            ["exempt", "--node", "n-1"],
            {"disk": '{"order":"hold","scope":{"node":"n-1"},"expires":"2026-11-22T12:00:00Z",%s}', "bad": "x"},
            [],
            id="an expired order and an invalid entry",
        ),
    ],
)
def test_orders_that_take_precedence_are_named(api, capsys, argv, there, expected):
    put(api, **{id_: value.replace("%s", BEN) for id_, value in there.items()})
    _, out, _ = run(capsys, *argv)
    assert expected == [line.strip() for line in out.splitlines()[1:-1]]


def test_a_hold_at_a_gate_in_shadow_warns_that_nothing_is_refused(cluster, capsys, in_utc):  # noqa: ARG001
    cluster.objects["/api/v1/namespaces/readygate-system/configmaps/readygate-orders"] = {"metadata": {}, "data": {}}
    cluster.objects["/api/v1/nodes/n-1"] = {}
    gates = {"gates": [{"gate": "base", "armed": False}, {"gate": "gpu"}]}
    cluster.extenders = [Extender("readygate-extender-1", gates=gates)]
    _, out, _ = run(capsys, "hold", "--node", "n-1")
    assert "  but gate base is in shadow: nothing is refused until it is armed" == out.splitlines()[1]
    _, out, _ = run(capsys, "hold", "--node", "n-1", "-o", "json")
    assert [["base"]] == [one["inShadow"] for one in json.loads(out)["written"]]


def test_json_names_orders_that_take_precedence(api, capsys):
    put(api, disk='{"order":"hold","scope":{"node":"n-1"}}')
    _, out, _ = run(capsys, "exempt", "--node", "n-1", "-o", "json")
    assert [["disk"]] == [one["overruledBy"] for one in json.loads(out)["written"]]


def test_times_out_of_range_are_listed(api, capsys):
    last, first = "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"
    put(api, a=f'{{"order":"hold","expires":"{last}"}}', b=f'{{"order":"hold","expires":"{first}"}}')
    for output in ("table", "json"):
        assert (0, "") == run(capsys, "orders", "-o", output)[::2]


def test_a_binary_entry_is_shown_left_alone_and_lifted(api, capsys):
    metadata = {"name": NAME, "namespace": NAMESPACE}
    api.put({"kind": "ConfigMap", "metadata": metadata, "binaryData": {"pause": "/w==", "other": "/w=="}})
    code, out, _ = run(capsys, "orders")
    assert (1, True) == (code, "ignored by the extenders: pause: is no text of at most 2048 characters" in out)
    assert (0, True) == ((ran := run(capsys, "pause"))[0], "readygate lift pause-2" in ran[1])
    assert 0 == run(capsys, "lift", "pause")[0]
    found = api.get("ConfigMap", NAME, NAMESPACE)
    assert (["pause-2"], ["other"]) == (sorted(found["data"]), sorted(found["binaryData"]))


def test_eight_oclock_tomorrow_follows_daylight_saving_time(monkeypatch):
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "Europe/Berlin")
        time.tzset()
        found = entries.moment_s("08:00", parse_time("2026-10-24T18:00:00Z"))
    time.tzset()
    assert "2026-10-25T07:00:00Z" == format_time(found)
