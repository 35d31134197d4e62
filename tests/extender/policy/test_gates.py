"""The gates of the configuration as policy sees them."""

from dataclasses import replace

import pytest

from extender.config.settings import parse
from extender.policy.caps import Caps, Limit
from extender.policy.conditions import ConditionRule, ConditionRules
from extender.policy.damping import Damping
from extender.policy.gates import Gate, caps_of, gates_of, not_gated, storm_of
from extender.policy.placement import Placement, Taint, Toleration
from extender.policy.pods import PodClass
from extender.policy.storm import StormRule
from kube.selector import parse as selector
from tests.extender.builders import observed_node
from tools.kit.cases import cases


def test_without_a_word_there_is_one_gate_with_a_cap_and_damping():
    settings = parse("")
    assert gates_of(settings) == (Gate("health", damping=Damping(10, 300, 3600), cap=Limit(percent=30)),)
    assert caps_of(settings) == Caps(cluster=Limit(percent=30), leave_in_pool=1)
    assert storm_of(settings) == StormRule(20, 3, 60, 60)


def test_a_gate_of_which_all_is_said():
    (gate,) = gates_of(
        parse("""
gates:
- name: gpu
  enforcement: shadow
  severity: preferNot
  for: {resources: [nvidia.com/gpu]}
  nodes: pool in (gpu)
  conditions: {allOf: [{of: node, type: Gpu}]}
  healthPods: null
  missingGraceSeconds: 1
  replaceGraceSeconds: 2
  damping: off
  cap: 3
""")
    )
    assert gate == Gate(
        name="gpu",
        armed=False,
        severity="preferNot",
        pods_for=PodClass(resources=frozenset({"nvidia.com/gpu"})),
        nodes=selector("pool=gpu"),
        conditions=ConditionRules((ConditionRule(True, "Gpu"),)),
        missing_grace_s=1,
        replace_grace_s=2,
        damping=None,
        cap=Limit(absolute=3),
    )
    assert not gate.needs_pod


@pytest.mark.parametrize(
    ("text", "cap", "caps"),
    [
        pytest.param("cap: {gate: 5}", Limit(absolute=5), Limit(percent=30), id="that of all gates"),
        pytest.param("{cap: {gate: 5}, gates: [{cap: 7%}]}", Limit(percent=7), Limit(percent=30), id="its own"),
        pytest.param("{cap: {gate: 5}, gates: [{cap: off}]}", None, Limit(percent=30), id="none of its own"),
        pytest.param("cap: {gate: null}", None, Limit(percent=30), id="none for any gate"),
        pytest.param("cap: off", None, None, id="none at all"),
        pytest.param("{cap: off, gates: [{cap: 7%}]}", Limit(percent=7), None, id="none but its own"),
    ],
)
def test_which_limit_holds_for_a_gate(text, cap, caps):
    settings = parse(text)
    assert (cap, caps) == (gates_of(settings)[0].cap, caps_of(settings).cluster)


def test_off_is_no_cap_and_no_storm():
    settings = parse("{cap: off, storm: off}")
    assert (True, None) == (caps_of(settings).off, storm_of(settings))


LINUX = replace(observed_node("n1"), labels={"kubernetes.io/os": "linux", "pool": "web"})
NODE_ONLY = ConditionRules((ConditionRule(True, "Gpu"),))
ON_WINDOWS = Placement({"kubernetes.io/os": "windows"})
TOLERANT = Placement(tolerations=(Toleration("dedicated", "Exists"),))
WRONG_OS = "the DaemonSet's nodeSelector wants kubernetes.io/os=windows, the node has kubernetes.io/os=linux"
NOT_TOLERATED = "the DaemonSet does not tolerate node-role.kubernetes.io/control-plane:NoSchedule"
OTHERS = "the gate's `nodes` selects others: pool in (db,gpu)"


@cases(
    "gate, placement, expected",
    ("nothing is known of the DaemonSet", Gate("g"), None, ""),
    ("its DaemonSet runs there", Gate("g"), Placement({"kubernetes.io/os": "linux"}), ""),
    ("its DaemonSet cannot run there", Gate("g"), ON_WINDOWS, WRONG_OS),
    ("the node's own conditions need no DaemonSet", Gate("g", conditions=NODE_ONLY), ON_WINDOWS, ""),
    ("its DaemonSet does not tolerate the role", Gate("g"), TOLERANT, NOT_TOLERATED),
    ("one of its nodes", Gate("g", nodes=selector("pool in (web,db)")), None, ""),
    ("none of its nodes", Gate("g", nodes=selector("pool in (gpu,db)")), None, OTHERS),
)
def test_why_a_gate_does_not_speak_of_a_node(gate, placement, expected):
    role = Taint("node-role.kubernetes.io/control-plane")
    bare = placement is None or not placement.tolerations
    assert expected == not_gated(gate, placement, LINUX if bare else replace(LINUX, roles=(role,)))
