"""`readygate why node`: its first sentence, and the page."""

import pytest

from cli.shared.explain import words_of
from cli.shared.layout import text_of
from cli.why import node_page
from extender.policy.reasons import CLOSED_STARTS_FAIL as STARTS
from extender.policy.reasons import CLOSED_UNHEALTHY
from extender.web.report import Change, DecisionTold, GatesTold, GateTold, NodeTold, NodeVerdict, RefusedPod
from tools.kit.cases import cases

BAD = DecisionTold(
    "gpu",
    reason=CLOSED_UNHEALTHY,
    open=False,
    verdict=CLOSED_UNHEALTHY,
    since_seconds=271.0,
    pod="readygate-system/agent-x",
    evidence='CheckFailed: gpu-count: "7 of 8 devices"',
)
GOOD = DecisionTold("base", since_seconds=90_000.0, pod="readygate-system/agent-x")
SHADOW = DecisionTold("dns", armed=False, open=False, reason="r", verdict="r", evidence="timed out", since_seconds=5.0)
CAPPED = DecisionTold("base", verdict=CLOSED_UNHEALTHY, held_by="cap", evidence="x", since_seconds=5.0)
GATES = GatesTold(
    not_answering="", gates=(GateTold(gate="gpu", for_="pods that request nvidia.com/gpu"), GateTold(gate="base"))
)


def told(*gates, why="", **others):
    closed = [one for one in gates if one.armed and not one.open]
    node = NodeVerdict("gpu-03", not closed, closed[0].reason if closed else "", 1.0, "", "", 1.5, gates)
    return NodeTold(not_answering=why, node=node, **others)


def shown(one, gates=GATES, **answers):
    return node_page.Shown("gpu-03", one, gates, answers or {"e-1": one})


@cases(
    "one, expected",
    ("open", told(GOOD), "gpu-03 is open."),
    ("closed", told(BAD, GOOD), "gpu-03 is closed for pods that request nvidia.com/gpu, since 4m31s."),
    ("a gate in shadow closes nothing", told(SHADOW), "gpu-03 is open."),
    ("held open by the cap", told(CAPPED), "gpu-03 is open, although not healthy: held open by cap."),
    (
        "without verdicts",
        told(BAD, why="no word for 130 s"),
        "The extender gives no verdicts: no word for 130 s. Last known state of gpu-03:",
    ),
)
def test_the_first_sentence_is_the_answer(one, expected):
    assert expected + "\n" == text_of(node_page.first(shown(one), 120))


FULL = told(
    BAD,
    GOOD,
    SHADOW,
    transitions=(
        Change(271.0, kind="closed", gate="gpu", reason=CLOSED_UNHEALTHY, evidence="7 of 8 devices"),
        Change(9000.0, kind="opened", gate="gpu"),
    ),
    refused_pods=(RefusedPod("team-a", "train-7", "gpu", 9, 8.0), RefusedPod("team-a", "train-9", "gpu", 2, 61.0)),
)
AT_60 = """\
gpu-03 is closed for pods that request nvidia.com/gpu, since
4m31s.

GATE          STATE        FOR
gpu           closed       4m31s
  gpu-count: "7 of 8 devices"
  opens when check gpu-count passes
  health pod readygate-system/agent-x
base          open         1d1h
  health pod readygate-system/agent-x
dns (shadow)  would close  5s
  timed out
  opens when its health is known and good again

Its kubelet renewed its Lease 1s ago.

  AGO  CHANGE  GATE  CAUSE
4m31s  closed  gpu   7 of 8 devices
2h30m  opened  gpu   -

Pods refused here: 2
POD             GATE  TIMES  LAST
team-a/train-7  gpu       9    8s
team-a/train-9  gpu       2  1m1s
"""


def test_the_page_shows_gates_changes_and_refused_pods():
    assert AT_60 == text_of(node_page.render(shown(FULL), 60))


@pytest.mark.parametrize("width", [40, 60, 80, 120, 160])
def test_no_line_is_wider_than_the_terminal(width):
    assert [line for line in text_of(node_page.render(shown(FULL), width)).splitlines() if len(line) > width] == []


def test_disagreeing_extenders_are_shown():
    text = text_of(node_page.render(shown(FULL, **{"e-1": FULL, "e-2": told(GOOD)}), 120))
    assert f"! The extenders disagree: {CLOSED_UNHEALTHY} at e-1; open at e-2\n" in text


def test_a_node_on_which_pods_fail_to_start_shows_what_opens_it():
    """Without evidence the reason is rewritten for one node."""
    said = "pods of 3 namespaces fail to start here and start elsewhere: default/api (without a sandbox)"
    words = [
        words_of(DecisionTold("starts", reason=STARTS, open=False, verdict=STARTS, evidence=evidence))
        for evidence in (said, "")
    ]
    assert [said, "pods fail to start on it"] == [one.cause for one in words]
    assert {"a pod of these owners starts there, or none has failed there for a while"} == {
        one.opens_when for one in words
    }
