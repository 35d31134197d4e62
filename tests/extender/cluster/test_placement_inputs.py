"""What is decided with beside nodes: placements and orders, from lists and events to one value."""

import json
from collections.abc import Mapping

import pytest

from extender.cluster import objects
from extender.cluster.placement_inputs import PlacementInputs
from extender.policy.evidence import Surroundings
from extender.policy.orders import Orders, parse_orders
from tests.extender.builders import seen

HOLD = {"anna": '{"order": "hold", "scope": {"node": "n1"}, "author": "anna", "reason": "disk"}'}
PAUSE = {"ben": '{"order": "pause"}'}


def daemon_set(name: str = "agent", namespace: str = "readygate-system", **selector: str) -> objects.DaemonSet:
    value = {"metadata": {"name": name, "namespace": namespace}, "spec": {"template": {"spec": {}}}}
    if selector:
        value["spec"] = {"template": {"spec": {"nodeSelector": selector}}}
    return seen(objects.DaemonSet, value)  # type: ignore[no-any-return]


def orders(data: Mapping[str, str] | None, name: str = "readygate-orders") -> objects.ConfigMap:
    return seen(objects.ConfigMap, {"metadata": {"name": name}, "data": data})  # type: ignore[no-any-return]


class Kept(PlacementInputs):
    """Gates `health` and `cni`, each with a DaemonSet that is named, in two namespaces; and how often it called."""

    def __init__(self, config_map: str | None = "readygate-orders") -> None:
        self.calls = 0
        sets = {"health": ("readygate-system", "agent"), "cni": ("kube-system", "cilium")}
        super().__init__(daemon_sets=sets, config_map=config_map, on_change=self.called)

    def called(self) -> None:
        self.calls += 1


@pytest.fixture
def around() -> Kept:
    kept = Kept()
    kept.replace_daemon_sets("readygate-system", [daemon_set()])
    kept.replace_daemon_sets("kube-system", [daemon_set("cilium", "kube-system", os="linux")])
    kept.replace_orders([])
    kept.calls = 0
    return kept


def test_before_anything_is_listed_nothing_is_known_and_all_is_missing() -> None:
    kept = Kept()
    assert Surroundings({"health": None, "cni": None}) == kept.surroundings
    assert {"daemonsets/readygate-system", "daemonsets/kube-system", "orders"} == kept.missing


def test_each_first_list_calls_even_if_it_is_empty_as_it_may_be_what_was_waited_for() -> None:
    kept = Kept()
    kept.replace_daemon_sets("kube-system", [])
    kept.replace_daemon_sets("readygate-system", [])
    kept.replace_orders([])
    assert (3, frozenset()) == (kept.calls, kept.missing)
    kept.replace_orders([])
    assert 3 == kept.calls


def test_without_a_name_for_them_there_are_no_orders() -> None:
    assert "orders" not in Kept(config_map=None).missing


def test_a_change_makes_another_value_and_no_change_keeps_it(around: Kept) -> None:
    before = around.surroundings
    around.upsert_daemon_set(daemon_set())
    around.upsert_orders(orders({}))
    around.replace_orders([orders(None)])
    assert (before, 0) == (around.surroundings, around.calls)
    assert around.surroundings is before
    around.upsert_daemon_set(daemon_set(disk="ssd"))
    placements = around.surroundings.placements
    assert (objects.placement(daemon_set(disk="ssd")), 1) == (placements["health"], around.calls)
    assert before.placements["cni"] == placements["cni"]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(daemon_set("other", disk="ssd"), id="another name"),
        pytest.param(daemon_set("cilium", "readygate-system", disk="ssd"), id="the name of another gate's"),
    ],
)
def test_a_daemonset_that_nobody_named_is_ignored(around: Kept, other: objects.DaemonSet) -> None:
    before = around.surroundings
    around.upsert_daemon_set(other)
    around.remove_daemon_set(other)
    around.replace_daemon_sets("readygate-system", [other, daemon_set()])
    assert before == around.surroundings


@pytest.mark.parametrize("listed", [True, False], ids=["by a list", "by an event"])
def test_a_daemonset_that_is_gone_says_nothing_and_leaves_those_of_other_namespaces(around: Kept, listed: bool) -> None:
    if listed:
        around.replace_daemon_sets("kube-system", [])
    else:
        around.remove_daemon_set(daemon_set("cilium", "kube-system"))
    assert [None, objects.placement(daemon_set())] == [
        around.surroundings.placements[gate] for gate in ("cni", "health")
    ]


def test_orders_follow_the_config_map(around: Kept) -> None:
    steps = [
        (lambda: around.replace_orders([orders(HOLD)]), parse_orders(HOLD)),
        (lambda: around.upsert_orders(orders(HOLD | PAUSE)), parse_orders(HOLD | PAUSE)),
        (lambda: around.upsert_orders(orders(PAUSE)), parse_orders(PAUSE)),
        (lambda: around.remove_orders(orders(PAUSE)), Orders()),
    ]
    for act, expected in steps:
        act()
        assert expected == around.surroundings.orders
    assert len(steps) == around.calls


def test_an_entry_that_is_no_text_is_reported(around: Kept) -> None:
    binary = {"metadata": {"name": "readygate-orders"}, "data": HOLD, "binaryData": {"latin-1": "b3JkZXI6IGjkbHQ="}}
    around.upsert_orders(seen(objects.ConfigMap, binary))
    fault = "latin-1: is no text of at most 2048 characters"
    assert (parse_orders(HOLD).entries, (fault,)) == (
        around.surroundings.orders.entries,
        around.surroundings.orders.faults,
    )


@pytest.mark.parametrize("method", ["upsert_orders", "remove_orders"])
def test_another_config_map_orders_nothing(around: Kept, method: str) -> None:
    around.upsert_orders(orders(HOLD))
    getattr(around, method)(orders(PAUSE, name="other"))
    around_now = around.surroundings.orders
    assert parse_orders(HOLD) == around_now


def test_an_order_that_is_ignored_is_said_once(around: Kept, caplog: pytest.LogCaptureFixture) -> None:
    rubbish = {"x": json.dumps({"order": "explode"})}
    around.upsert_orders(orders(rubbish))
    around.upsert_orders(orders(rubbish | HOLD))
    around.upsert_orders(orders(rubbish | PAUSE))
    assert ["order ignored"] == [record.message for record in caplog.records]
    assert "x: " in vars(caplog.records[0])["error"]
