"""Where two programs meet, without a network: kube-scheduler's own request, and the agent's own patch."""

import json
from pathlib import Path

import pytest

from agent.wire.condition import REASON_CHECK_FAILED, condition_patch
from extender.config.settings import parse
from extender.policy import reasons
from extender.process.services import Services
from extender.web.app import create_app
from tests.contract.go_types import read_filter_result
from tests.extender.builders import node, pod, pod_json, seen
from tests.extender.world import PODS
from tools.kit.brakes import OFF_YAML

# Recorded from a real kube-scheduler 1.36.3 with nodeCacheCapable true.
REQUEST = Path(__file__).with_name("filter_request.json").read_bytes()


class Fresh:
    synced = True
    counters: dict[str, int] = {}  # noqa: RUF012

    def age_s(self, _now):
        return 0.0


def test_the_schedulers_request_is_answered_byte_for_byte_as_recorded():
    first, second, third = json.loads(REQUEST)["NodeNames"]
    services = Services(parse(OFF_YAML), None)
    services.watch_with({"pods": Fresh(), "nodes": Fresh()}, required=("pods", "nodes"))
    services.index.replace_nodes([node(first), node(second), node(third)])
    services.index.replace_pods(PODS, [pod(first), pod(second, Ready="False"), pod(third)])
    services.decider.turn()
    answer = create_app(services).test_client().post("/filter", data=REQUEST, content_type="application/json").data
    assert (
        answer
        == (
            f'{{"Nodes":null,"NodeNames":["{first}","{third}"],"FailedNodes":{{}},'
            f'"FailedAndUnresolvableNodes":{{"{second}":"{reasons.CLOSED_NOT_READY}"}},"Error":""}}'
        ).encode()
    )
    read_filter_result(answer)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param("True", "", id="healthy opens"),
        pytest.param("False", reasons.CLOSED_UNHEALTHY, id="unhealthy closes though Ready lags"),
        pytest.param("Unknown", reasons.CLOSED_UNKNOWN, id="unknown closes"),
    ],
)
def test_what_the_agent_writes_is_what_the_extender_reads(status, expected):
    said = {"reason": REASON_CHECK_FAILED, "message": "cni: no configuration"}
    patch = json.loads(condition_patch("uid-agent-n1", status=status, since="2026-01-01T00:00:05Z", **said))
    before = pod_json("n1")
    assert patch["metadata"]["uid"] == before["metadata"]["uid"]
    before["status"]["conditions"] += patch["status"]["conditions"]
    services = Services(parse(OFF_YAML), None)
    services.index.replace_nodes([node("n1")])
    services.index.replace_pods(PODS, [seen(type(pod("n1")), before)])
    services.decider.turn()
    decision = services.board.snapshot.gates["health"].decisions["n1"]
    assert expected == decision.reason
    if expected:
        assert "cni: no configuration" in decision.evidence
