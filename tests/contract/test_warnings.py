"""From an agent's checks that only warn to the operator's screen: what is said beside, of a node that stays open."""

import json
import time
from typing import Any

import msgspec
import pytest

from agent.checks.health import condition_message, node_health
from agent.wire.condition import condition_patch
from cli.shared.layout import text_of
from cli.status.page import Status, render
from extender.cluster.objects import ConfigMap
from extender.outlets.standing import standing_of
from extender.services import Services
from extender.settings import parse
from extender.web.decided import merged, node_told
from extender.web.report import NodeVerdicts
from tests.agent.checks.builders import check
from tests.extender.builders import node, pod, pod_json, seen
from tests.extender.world import PODS
from tools.kit.brakes import OFF_YAML

SINCE = "since 1970-01-12T13:46:40Z"


def services() -> Services:
    made = Services(parse(OFF_YAML), None)
    made.index.replace_nodes([node("n1")])
    return made


def tell(made: Services, checks: list[Any]) -> None:
    """What mode pod writes of these, as the API server then has it."""
    health = node_health(checks)
    said = {"reason": health.reason, "message": condition_message(health), "since": "2026-01-01T00:00:05Z"}
    patch = json.loads(condition_patch("uid-agent-n1", status="True" if health.healthy else "False", **said))
    whole = pod_json("n1")
    whole["status"]["conditions"] += patch["status"]["conditions"]
    made.index.replace_pods(PODS, [seen(type(pod("n1")), whole)])
    made.decider.turn()


def screen(made: Services) -> str:
    """The row of the node, by way of JSON, as `readygate status` shows it on a wide terminal; "" without one."""
    snapshot = made.board.snapshot
    told = [node_told(snapshot, name, one, {}, time.monotonic()) for name, one in merged(snapshot).items()]
    read = msgspec.json.decode(msgspec.json.encode(NodeVerdicts(not_answering="", nodes=told)), type=NodeVerdicts)
    drawn = text_of(render(Status("", read, None, 1, 1), 200))
    return next((" ".join(line.split()) for line in drawn.splitlines() if line.startswith("n1")), "")


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        pytest.param([check("p")], "", id="all pass"),
        pytest.param(
            [check("p"), check("f", "dns", warn=True, output="no such host")],
            f"n1 health warned - dns: failed (warn) {SINCE}: no such host -",
            id="one of severity warn fails",
        ),
        pytest.param(
            [check("p"), check("w", "addresses", output="12 of 254 are free")],
            f"n1 health warned - addresses: warned {SINCE}: 12 of 254 are free -",
            id="one that closes nodes warns",
        ),
    ],
)
def test_what_is_said_beside_is_on_the_screen_and_the_node_is_open(checks, expected):
    made = services()
    tell(made, checks)
    assert ("", expected) == (made.board.snapshot.gates["health"].decisions["n1"].reason, screen(made))


def test_it_comes_goes_and_changes_on_a_node_that_stays_open():
    made, warned = services(), check("f", "dns", warn=True, output="no such host")
    shown = []
    for checks in ([check("p")], [check("p"), warned], [check("p"), warned], [check("p")]):
        tell(made, checks)
        shown.append("warned" in screen(made))
    assert [False, True, True, False] == shown


def test_that_a_node_opens_or_is_held_has_another_cause():
    made = services()
    tell(made, [check("f")])
    tell(made, [check("p"), check("f", "dns", warn=True, output="no such host")])
    gates = made.board.snapshot.gates
    standing = standing_of(gates, "n1")
    assert (standing.message, "") == ("open at gate health", gates["health"].decisions["n1"].against)
    order = '{"order": "hold", "scope": {"node": "n1"}, "author": "ann", "reason": "disk swap"}'
    orders = seen(ConfigMap, {"metadata": {"name": "readygate-orders"}, "data": {"a": order}})
    made.around.replace_orders([orders])
    made.decider.turn()
    assert "no such host" not in standing_of(made.board.snapshot.gates, "n1").message
    assert (True, False) == ("hold of node" in screen(made), "no such host" in screen(made))
