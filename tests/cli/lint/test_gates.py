"""Gates that are always open or closed, parts without effect, and what the file leaves open.

Selectors that match nothing were reported of other tools: openshift/managed-cluster-config#345 (two values of one key),
kubernetes-sigs/node-readiness-controller#356 (`!key` with `key!=value`), aws/karpenter-provider-aws#1155 (DoesNotExist
beside In), kubernetes/kubernetes#15509 (several terms about one key).
"""

import itertools

import pytest

from cli.lint.gates import contradiction, examine
from extender.settings import parse
from kube.selector import parse as parse_selector
from tools.kit.cases import cases


def found(text):
    return [f"{one.level} {one.where}" for one in examine(parse(text))]


PODS = "{namespace: gpu-operator, labelSelector: app=validator}"


@cases(
    "text, expected",
    ("no file", "", []),
    ("two gates", f"gates: [{{name: health}}, {{name: gpu, healthPods: {PODS}}}]", []),
    ("a gate in shadow and the same one armed", "gates: [{name: a, enforcement: shadow}, {name: b}]", []),
    ("the same gate twice", "gates: [{name: a}, {name: b}, {name: c, severity: warn}]", ["warning gates[1]"]),
    (
        "two values of one label of nodes (managed-cluster-config#345)",
        "gates: [{nodes: 'role=worker,role=infra'}]",
        ["error gates[0].nodes"],
    ),
    ("no pod has the labels", "gates: [{for: {podSelector: 'app,!app'}}]", ["error gates[0].for.podSelector"]),
    (
        "no health pod has the labels: every node is closed",
        "gates: [{healthPods: {namespace: a, labelSelector: 'app=a,app!=a'}}]",
        ["error gates[0].healthPods.labelSelector"],
    ),
    ("only pods of kube-system", "gates: [{for: {namespaces: [kube-system]}}]", ["error gates[0].for.namespaces"]),
    (
        "only pods that the file exempts",
        "gates: [{for: {namespaces: [ci, readygate-system]}}]\nexempt: {namespaces: [ci]}",
        ["error gates[0].for.namespaces"],
    ),
    ("some of them", "gates: [{for: {namespaces: [ci, web]}}]\nexempt: {namespaces: [ci]}", []),
    (
        "only pods of system-critical priority",
        "gates: [{for: {priority: {from: 2000000000}}}]",
        ["error gates[0].for.priority.from"],
    ),
    ("the highest priority of users", "gates: [{for: {priority: {from: 1000000000}}}]", []),
    (
        "a resource and a namespace twice",
        "gates: [{for: {resources: [nvidia.com/gpu, nvidia.com/gpu], namespaces: [a, b, a]}}]",
        ["warning gates[0].for.namespaces[2]", "warning gates[0].for.resources[1]"],
    ),
    (
        "health pods beside conditions of nodes alone",
        f"gates: [{{healthPods: {PODS}, conditions: {{allOf: [{{of: node, type: A}}]}}}}]",
        ["warning gates[0].healthPods"],
    ),
    (
        "health pods with podStarts",
        f"gates: [{{healthPods: {PODS}, podStarts: {{}}}}]",
        ["warning gates[0].healthPods"],
    ),
    (
        "conditions",
        "gates: [{name: a}, {name: b, conditions: {allOf: [{of: pod, type: A}, {of: pod, type: A, status: 'False'}]}}]",
        ["error gates[1].conditions.allOf"],
    ),
    ("a resource whose DRA driver is known", "gates: [{for: {resources: [nvidia.com/gpu, amd.com/gpu, cpu]}}]", []),
    (
        "one whose DRA driver is not known",
        "gates: [{for: {resources: [nvidia.com/gpu, habana.ai/gaudi]}}]",
        ["note gates[0].for.resources[1]"],
    ),
    ("its class is named", "gates: [{for: {resources: [habana.ai/gaudi], deviceClasses: [gaudi.intel.com]}}]", []),
    ("a resource that is a class", "gates: [{for: {resources: [deviceclass.resource.kubernetes.io/gpu]}}]", []),
)
def test_gates_lead_to_their_findings(text, expected):
    assert expected == found(text)


def test_the_note_on_a_driver_names_what_is_matched_and_what_to_do():
    (told,) = examine(parse("gates: [{for: {resources: [example.com/fpga]}}]"))
    assert told.remedy == "name their classes in gates[0].for.deviceClasses"
    assert told.text == (
        "it is unknown which DRA driver serves example.com/fpga: pods that claim it through a ResourceClaim count only"
        " if a DeviceClass has extendedResourceName example.com/fpga, or the driver is fpga.example.com or example.com"
    )


@cases(
    "selector, expected",
    ("none", None, None),
    ("everything", "", None),
    ("terms about different keys", "a=b,c!=d,e,!f,g>1", None),
    ("two values", "a=b,a=c", "`a=b,a=c`"),
    ("the key and its absence", "c,a,!a", "`a,!a`"),
    ("a value and its absence (karpenter-provider-aws#1155)", "a=b,!a", "`a=b,!a`"),
    ("absent, and another value (node-readiness-controller#356)", "!tier,tier!=frontend", None),
    ("all values are excluded", "a in (b,c),a notin (c,b)", "`a in (b,c),a notin (b,c)`"),
    ("one value is left", "a in (b,c),a notin (c,d)", None),
    ("there, and none of some values", "a,a notin (x,xx,xxx)", None),
    ("a number above and below", "a>1,a<2", "`a>1,a<2`"),
    ("one number is left", "a>1,a<3", None),
    ("that number is excluded", "a>1,a<3,a!=2", "`a>1,a<3,a!=2`"),
    ("numbers enough are left", "a>1,a<7,a notin (2,3,4,5)", None),
    ("a number below, and none of the next", "a<7,a notin (6,5,4)", None),
    ("a number that no label can be", "a>9223372036854775807", "`a>9223372036854775807`"),
    ("a text and a number", "a=b,a>1", "`a=b,a>1`"),
)
def test_a_contradiction_in_a_selector_is_found(selector, expected):
    assert expected == contradiction(selector)


TERMS = ("a", "!a", "a=1", "a!=1", "a in (1,2)", "a notin (1,2,3)", "a>1", "a>2", "a<3", "a<2", "a=x")


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_contradictions_agree_with_trying_all_labels(count):
    """Against all labels that could matter."""
    tried = [{}, *({"a": value} for value in ("x", "other", *map(str, range(-3, 8))))]
    for terms in itertools.combinations(TERMS, count):
        selector = parse_selector(text := ",".join(terms))
        assert any(selector.matches(labels) for labels in tried) == (contradiction(text) is None), text
