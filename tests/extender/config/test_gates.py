"""What is wrong with a gate, a cap, a storm is one clear line; and what is taken can be used."""

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from component import settings as dialect
from component.settings import SettingsError
from extender.config.settings import Settings, parse
from extender.policy import exempt
from extender.policy.gates import caps_of, gates_of, storm_of
from tests.extender.config.test_settings import EVERY_KEY
from tools.kit.cases import cases

# A document with a comment that names the case; the lines below it are the start of the error.
WRONG = """\
gates: [{name: a}, {name: a}]  # two gates share a name
    gates[1].name: is the text "a", allowed: a name of its own, gates[0] has it
cap: {gate: 0}  # a cap of no node
    cap.gate: is 0, allowed: "1%" to "100%", or a number of nodes, 1 to 15000, or null for none
cap: {zone: 0%}  # a cap of no percent
    cap.zone: is the text "0%", allowed: "1%" to "100%", or a number of nodes, 1 to 15000, or null for none
cap: {cluster: 101%}  # a cap of more than all nodes
    cap.cluster: is the text "101%", allowed: "1%" to "100%", or a number of nodes, 1 to 15000, or null for none
cap: {pool: "30"}  # a number of nodes in quotes
    cap.pool: is the text "30", allowed: "1%" to "100%", or a number of nodes, 1 to 15000, or null for none
cap: {gate: true}  # a cap that is neither a number nor a percentage
    cap.gate: is true, allowed: "1%" to "100%", or a number of nodes, 1 to 15000, or null for none
gates: [{cap: 0}]  # a gate's own cap of no node
    gates[0].cap: is 0, allowed: "1%" to "100%", or a number of nodes, 1 to 15000, off without quotes, or null for
    that of cap.gate
gates: [{cap: on}]  # a gate's own cap is only on
    gates[0].cap: is true, allowed: "1%" to "100%", or a number of nodes, 1 to 15000, off without quotes, or null
    for that of cap.gate
cap: on  # the cap is only on
    cap: is true, allowed: off or a mapping with the keys cluster, gate, zone, pool, leaveInPool, poolLabel,
    zoneLabel, newNodeSeconds
cap: "off"  # off in quotes
    cap: is the text "off", allowed: a mapping with the keys cluster, gate, zone, pool, leaveInPool, poolLabel,
    zoneLabel, newNodeSeconds or off without quotes
cap: {poolLabel: a b}  # a label's key with a space
    cap.poolLabel: is the text "a b", allowed: the key of a label
storm: {percent: 0}  # a storm of no percent
    storm.percent: is 0, allowed: 1 to 100
storm: {atLeast: 1}  # a storm of one node
    storm.atLeast: is 1, allowed: a number of nodes, 2 to 15000
storm: on  # the storm is only on
    storm: is true, allowed: off or a mapping with the keys percent, atLeast, withinSeconds, calmSeconds
gates: [{severity: fatal}]  # an unknown severity
    gates[0].severity: is the text "fatal", allowed: gate, preferNot, warn
gates: [{enforcement: off}]  # an unknown enforcement
    gates[0].enforcement: is false, allowed: shadow, armed
gates: [{for: {namespaces: []}}]  # a gate for no namespace
    gates[0].for.namespaces: is an empty list, allowed: a list of at least one DNS label or null
gates: [{for: {resources: []}}]  # a gate for no resource
    gates[0].for.resources: is an empty list, allowed: a list of at least one resource or null
gates: [{for: {csiDrivers: []}}]  # a gate for no driver
    gates[0].for.csiDrivers: is an empty list, allowed: a list of at least one CSI driver or null
gates: [{for: {deviceClasses: []}}]  # a gate for no class of devices
    gates[0].for.deviceClasses: is an empty list, allowed: a list of at least one DeviceClass or null
gates: [{for: {deviceClasses: [nvidia.com/gpu]}}]  # a resource as a class of devices
    gates[0].for.deviceClasses[0]: is the text "nvidia.com/gpu", allowed: the name of a DeviceClass
gates: [{for: {schedulerNames: []}}]  # a gate for no scheduler
    gates[0].for.schedulerNames: is an empty list, allowed: a list of at least one scheduler's name or null
gates: [{for: {resources: [nvidia.com/]}}]  # a resource without its name
    gates[0].for.resources[0]: is the text "nvidia.com/", allowed: the name of a resource, as nvidia.com/gpu
gates: [{for: {podSelector: ''}}]  # an empty selector of pods
    gates[0].for.podSelector: is empty, allowed: a label selector, or null for every pod
gates: [{for: {podSelector: a in b}}]  # a selector of pods that cannot be read
    gates[0].for.podSelector: is the text "a in b" ('b', expected: '('), allowed: a label selector, as `a=b,c
    in (d,e),!f`
gates: [{for: {priority: {from: 5, to: 1}}}]  # a range of priorities that is upside down
    gates[0].for.priority.from: is 5, allowed: not more than to, 1
gates: [{for: {priority: {}}}]  # a priority without ends
    gates[0].for.priority.from: missing, allowed: from, to, or both
gates: [{nodes: 'pool=a=b'}]  # a selector of nodes that cannot be read
    gates[0].nodes: is the text "pool=a=b" ('=', expected: ','), allowed: a label selector, as `a=b,c in
    (d,e),!f`
gates: [{healthPods: {labelSelector: app=a}}]  # health pods of no namespace
    gates[0].healthPods.namespace: missing, allowed: a DNS label
gates: [{healthPods: {namespace: cni, daemonSet: cni}}]  # health pods without a selector
    gates[0].healthPods.labelSelector: missing, allowed: text
gates: [{healthPods: {namespace: cni, labelSelector: '=a'}}]  # health pods by a selector that cannot be read
    gates[0].healthPods.labelSelector: is the text "=a" ('=', expected: a key or '!'), allowed: a label
    selector, as `a=b,c in (d,e),!f`
gates: [{healthPods: {namespace: cni, labelSelector: ''}}]  # every pod of a namespace
    gates[0].healthPods.labelSelector: is empty, allowed: a label selector, or none with a daemonSet
gates: [{healthPods: null}]  # no health pods
    gates[0].healthPods: is empty, allowed: that only where all conditions are of the node
gates: [{healthPods: null, conditions: {allOf: [{of: node, type: A}, {of: pod, type: B}]}}]  # a condition of no pods
    gates[0].healthPods: is empty, allowed: that only where all conditions are of the node
gates: [{conditions: {allOf: []}}]  # an empty list of conditions
    gates[0].conditions.allOf: is empty, allowed: entries here or in anyOf
gates: [{conditions: {anyOf: [{of: nodes, type: A}]}}]  # a condition of neither a pod nor a node
    gates[0].conditions.anyOf[0].of: is the text "nodes", allowed: pod, node
gates: [{conditions: {allOf: [{of: node}]}}]  # a condition without a type
    gates[0].conditions.allOf[0].type: missing, allowed: the type of a condition
gates: [{conditions: {allOf: [{of: node, type: A, status: False}]}}]  # a condition's status without quotes
    gates[0].conditions.allOf[0].status: is false, allowed: "True" or "False", in quotes
gates: [{conditions: {allOf: [{of: pod, type: A, staleAfterSeconds: 60}]}}]  # a condition of a pod gets stale
    gates[0].conditions.allOf[0].staleAfterSeconds: is 60, allowed: null for a condition of a pod: it has no
    heartbeat time
gates: [{conditions: {allOf: [{of: node, type: readygate.dev/NodeHealthy}]}}]  # readygate's own condition as evidence
    gates[0].conditions.allOf[0].type: is the text "readygate.dev/NodeHealthy" of the node, allowed: any other:
    readygate itself writes that one
gates: [{damping: {minHealthySeconds: 30, ceilingSeconds: 20}}]  # damping begins above its ceiling
    gates[0].damping.minHealthySeconds: is 30, allowed: not more than ceilingSeconds, 20
gates: [{podStarts: {namespaces: 1}}]  # one namespace confirms nothing
    gates[0].podStarts.namespaces: is 1, allowed: a number of namespaces, 2 to 100
gates: [{podStarts: {}, conditions: {allOf: [{of: node, type: A}]}}]  # both pod starts and conditions
    gates[0].podStarts: is given with conditions, allowed: one of the two
gates: [{name: a, podStarts: {}}, {name: b, podStarts: {}}]  # two gates use pod starts
    gates[1].podStarts: is a second one, allowed: one gate with it
gates: [{damping: on}]  # damping is only on
    gates[0].damping: is true, allowed: off or a mapping with the keys minHealthySeconds, ceilingSeconds,
    windowSeconds
exempt: {labelNamespaces: '*'}  # all namespaces, without a list
    exempt.labelNamespaces: is the text "*", allowed: a list, each a DNS label, or "*" for all
orders: {configMap: A_B}  # no name of a ConfigMap
    orders.configMap: is the text "A_B", allowed: a DNS name
orders: {configMap: readygate-extender-orders}  # the name of the extender's own ConfigMap
    orders.configMap: is the text "readygate-extender-orders", allowed: a name that does not begin with
    readygate-extender
orders: {configMap: readygate-agent}  # the name of the agent's own ConfigMap
    orders.configMap: is the text "readygate-agent", allowed: a name that does not begin with readygate-agent
"""


def wrong() -> Iterator[tuple[str, str, str]]:
    case = r"(\S.*  # (.+))\n((?:    .+\n)+)"
    assert not re.sub(case, "", WRONG), "neither a document nor its error"
    for document, name, error in re.findall(case, WRONG):
        yield name, document, " ".join(error.split())


@cases("text, expected", *wrong())
def test_what_is_wrong_is_one_line(text: str, expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(text)
    assert str(caught.value).startswith(expected)


BROKEN = (
    *(None, True, False, 0, -1, 1, 101, 10**30, 0.5, float("nan"), float("inf"), "", "*", "0%", "30%", "101%", "30"),
    *("off", "a b", "a in (b", "A_B", "True", "x" * 300, "\x00", "ü", [], [[]], [None], ["*"], {}, {"a": 1}),
    {"of": "node", "type": "Ready"},
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _places(item, (*path, key))


def _holds(value: Any, key: Any) -> bool:
    if isinstance(value, list):
        return isinstance(key, int) and key < len(value)
    return isinstance(value, dict) and key in value


WHOLE = yaml.safe_load(EVERY_KEY)
PLACES = [path for path in _places(WHOLE) if path]


@example([(("gates",), [[]]), (("gates", 1), None)])
@given(st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(BROKEN)), min_size=1, max_size=3))
def test_a_file_with_anything_in_any_place_is_refused_with_one_line_or_can_be_used(
    changes: list[tuple[tuple[Any, ...], Any]],
) -> None:
    document = copy.deepcopy(WHOLE)
    for (*path, last), value in changes:
        held = document
        for key in path:
            held = held[key] if _holds(held, key) else {}
        if isinstance(held, dict) or _holds(held, last):
            held[last] = copy.deepcopy(value)
    line = ""
    try:
        settings = dialect.convert(document, Settings)
    except SettingsError as e:
        line = str(e)
    else:
        gates_of(settings), caps_of(settings), storm_of(settings), exempt.rules_of(settings)
    assert (True, True) == (line.isprintable(), len(line) <= 1000)
    assert not line or ", allowed: " in line
