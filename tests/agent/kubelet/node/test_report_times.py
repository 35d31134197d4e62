"""When a report is written, what counts as a change, and what becomes of a registration that fails: the rows N, case by
case, against a fake API server."""

import copy
from dataclasses import replace

import pytest

from agent.kubelet.node.facts import changed, node_status
from agent.kubelet.node.registration import REPORT_S, NodeReporter
from agent.wire.model import NodeStatus
from kube.client import Client
from kube.errors import KubeError
from tests.agent.kubelet.node.test_facts import FACTS, NOW
from tests.agent.kubelet.node.test_reports import verbs
from tools.fakes.api_server import FakeApiServer
from tools.kit.clock import Clock

NOTHING = NodeStatus()


class Chance:
    """What is drawn: 0.5 is no delay, 0 is 150 s sooner, 1 would be 150 s later."""

    def __init__(self, drawn: float) -> None:
        self.drawn = drawn

    def __call__(self) -> float:
        return self.drawn


@pytest.fixture
def monotonic() -> Clock:
    return Clock(100.0)


@pytest.fixture
def wall() -> Clock:
    return Clock(NOW)


@pytest.fixture
def errors() -> list[str]:
    return []


@pytest.fixture
def chance() -> Chance:
    return Chance(0.5)


@pytest.fixture
def reporter(client: Client, errors: list[str], wall: Clock, monotonic: Clock, chance: Chance) -> NodeReporter:
    return NodeReporter(client, FACTS, lambda: errors, update_s=10, wall=wall, monotonic=monotonic, random=chance)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(NOTHING, NOTHING, False, id="N13 nothing, and nothing"),
        pytest.param(NOTHING, node_status(FACTS, NOTHING, [], NOW), True, id="N15 nothing, then a status"),
        pytest.param(node_status(FACTS, NOTHING, [], NOW), NOTHING, True, id="N15 a status, then nothing"),
    ],
)
def test_a_status_that_comes_is_a_change(old: NodeStatus, new: NodeStatus, expected: bool) -> None:
    assert expected == changed(old, new)


@pytest.mark.parametrize("drawn", [pytest.param(0.5, id="N21 never"), pytest.param(0.6, id="N22 never, delay +30 s")])
def test_what_was_never_written_is(reporter: NodeReporter, chance: Chance, drawn: float) -> None:
    chance.drawn = drawn
    reporter.register()
    assert reporter.report() is True


@pytest.mark.parametrize(
    ("drawn", "passed_s", "expected"),
    [
        pytest.param(0.5, 240.0, False, id="N23 240 s ago"),
        pytest.param(0.7, 300.0, False, id="N24 300 s ago, delay +60 s"),
        pytest.param(0.7, 360.0, True, id="N24 360 s ago, delay +60 s"),
        pytest.param(0.1, 179.0, False, id="N25 179 s ago, delay -120 s"),
        pytest.param(0.1, 180.0, True, id="N25 180 s ago, delay -120 s"),
        pytest.param(0.5, 300.0, True, id="N26 300 s ago"),
        pytest.param(0.0, 149.0, False, id="N27 149 s ago, the shortest delay"),
        pytest.param(0.0, 150.0, True, id="N27 150 s ago, the shortest delay"),
        pytest.param(1.0, 449.0, False, id="N27 449 s ago, a delay that is never drawn"),
    ],
)
def test_a_report_without_a_change_is_due(
    reporter: NodeReporter, chance: Chance, monotonic: Clock, drawn: float, passed_s: float, expected: bool
) -> None:
    chance.drawn = drawn
    reporter.register()
    reporter.report()
    monotonic.time += passed_s
    assert expected is reporter.report()


def test_n27_after_a_report_without_a_change_there_is_no_delay(
    reporter: NodeReporter, chance: Chance, monotonic: Clock, errors: list[str]
) -> None:
    chance.drawn = 0.0
    reporter.register()
    reporter.report()
    written = []
    for passed_s in (REPORT_S / 2, REPORT_S / 2, REPORT_S / 2):
        monotonic.time += passed_s
        written.append(reporter.report())
    errors.append("no runtime")
    written.append(reporter.report())
    monotonic.time += REPORT_S / 2
    assert [True, False, True, True, True] == [*written, reporter.report()], "a change draws it anew"


def _times(api: FakeApiServer) -> dict[str, tuple[str, str]]:
    """Of each condition: of its heartbeat, of its transition."""
    conditions = api.get("Node", "node-1")["status"]["conditions"]
    return {c["type"]: (c["lastHeartbeatTime"], c["lastTransitionTime"]) for c in conditions}


def test_n49_what_has_not_changed_is_written_with_its_heartbeats_alone(
    api: FakeApiServer, reporter: NodeReporter, wall: Clock, monotonic: Clock
) -> None:
    reporter.register()
    reporter.report()
    before, asked = _times(api), len(api.requests)
    wall.time += REPORT_S
    monotonic.time += REPORT_S
    reporter.report()
    after = _times(api)
    assert ["GET", "PATCH"] == verbs(api)[asked:]
    assert {kind: transition for kind, (_, transition) in before.items()} == {k: t for k, (_, t) in after.items()}
    assert all(before[kind][0] < after[kind][0] for kind in before)


def test_n51_an_amount_that_changed_is_written_and_transition_times_are_kept(
    api: FakeApiServer, reporter: NodeReporter, wall: Clock, monotonic: Clock
) -> None:
    reporter.register()
    reporter.report()
    before = _times(api)
    node = copy.deepcopy(api.get("Node", "node-1"))
    node["status"]["capacity"]["memory"] = "4Gi"
    api.put(node)
    asked = len(api.requests)
    wall.time += 10
    monotonic.time += 10
    assert reporter.report() is True
    assert ["GET", "PATCH"] == verbs(api)[asked:]
    assert "8Gi" == api.get("Node", "node-1")["status"]["capacity"]["memory"]
    assert [transition for _, transition in before.values()] == [t for _, t in _times(api).values()]


@pytest.mark.parametrize(
    "block", [pytest.param("10.0.0.0/24", id="N52 it has changed"), pytest.param("", id="N53 it is the same")]
)
def test_the_block_of_pod_addresses_is_not_looked_at(
    api: FakeApiServer, reporter: NodeReporter, monotonic: Clock, block: str
) -> None:
    reporter.register()
    reporter.report()
    node = copy.deepcopy(api.get("Node", "node-1"))
    node.setdefault("spec", {})["podCIDR"] = block
    api.put(node)
    asked = len(api.requests)
    monotonic.time += 10
    assert reporter.report() is False
    assert ["GET"] == verbs(api)[asked:]


def test_n55_once_the_node_is_ready_by_a_regular_report_nobody_watches_any_more(
    reporter: NodeReporter, errors: list[str], monotonic: Clock
) -> None:
    errors.append("container runtime is down")
    assert 0.1 == reporter.turn()
    errors.clear()
    monotonic.time += 11  # the regular report comes first
    assert reporter.turn() > 1.0


@pytest.mark.parametrize(
    ("failures", "expected"),
    [
        pytest.param(1, ["PATCH", "GET", "PATCH"], id="N57 the first write fails: it is tried as a report"),
        pytest.param(99, ["PATCH", *["GET", "PATCH"] * 5], id="N58 all writes fail: given up after five tries"),
    ],
)
def test_a_write_that_the_node_is_ready_and_that_fails(
    api: FakeApiServer,
    reporter: NodeReporter,
    errors: list[str],
    monotonic: Clock,
    failures: int,
    expected: list[str],
) -> None:
    errors.append("container runtime is down")
    reporter.turn()
    errors.clear()
    asked = len(api.requests)
    api.answer_next(500, method="PATCH", times=failures)
    monotonic.time += 0.1
    pause_s = reporter.turn()
    assert (expected, True) == (verbs(api)[asked:], pause_s > 1.0), "then the regular report is waited for"


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        pytest.param("POST", ["POST"], id="N65 it cannot be made"),
        pytest.param("GET", ["POST", "GET"], id="N67 it is there and cannot be read"),
        pytest.param("PATCH", ["POST", "GET", "PATCH"], id="N68 it is there and cannot be written"),
    ],
)
def test_a_registration_that_fails_is_none_and_is_tried_again(
    api: FakeApiServer, reporter: NodeReporter, method: str, expected: list[str]
) -> None:
    if method != "POST":
        api.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}})
    api.answer_next(500, method=method)
    with pytest.raises(KubeError):
        reporter.register()
    assert (expected, False) == (verbs(api), reporter.registered)
    reporter.register()
    assert reporter.registered


def test_n65_the_turn_after_it_is_soon(api: FakeApiServer, client: Client) -> None:
    reporter = NodeReporter(client, replace(FACTS), list, update_s=10, random=lambda: 0.5)
    api.answer_next(500, method="POST")
    assert reporter.turn() < 1.0
    assert not reporter.registered
    reporter.turn()
    assert reporter.registered
