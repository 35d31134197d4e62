"""What is wrong with a gate, a cap, a storm is one clear line; and what is taken can be used."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from component import settings as dialect
from component.settings import SettingsError
from extender.policy import exempt
from extender.policy.gates import caps_of, gates_of, storm_of
from extender.settings import Settings, parse
from tests.extender.test_settings import EVERY_KEY

CAP = '"1%" to "100%", or a number of nodes, 1 to 15000'
CAP_KEYS = "a mapping with the keys cluster, gate, zone, pool, leaveInPool, poolLabel, zoneLabel, newNodeSeconds"
SELECTOR = "a label selector, as `a=b,c in (d,e),!f`"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "gates: [{name: a}, {name: a}]",
            'gates[1].name: is the text "a", allowed: a name of its own, gates[0] has it',
            id="two gates of one name",
        ),
        pytest.param("cap: {gate: 0}", f"cap.gate: is 0, allowed: {CAP}, or null for none", id="a cap of nothing"),
        pytest.param(
            "cap: {zone: 0%}", f'cap.zone: is the text "0%", allowed: {CAP}, or null for none', id="of no percent"
        ),
        pytest.param(
            "cap: {cluster: 101%}",
            f'cap.cluster: is the text "101%", allowed: {CAP}, or null for none',
            id="of more than all",
        ),
        pytest.param(
            'cap: {pool: "30"}',
            f'cap.pool: is the text "30", allowed: {CAP}, or null for none',
            id="a number of nodes in quotes",
        ),
        pytest.param("cap: {gate: true}", f"cap.gate: is true, allowed: {CAP}, or null for none", id="neither"),
        pytest.param(
            "gates: [{cap: 0}]",
            f"gates[0].cap: is 0, allowed: {CAP}, off without quotes, or null for that of cap.gate",
            id="a gate's own cap of nothing",
        ),
        pytest.param(
            "gates: [{cap: on}]",
            f"gates[0].cap: is true, allowed: {CAP}, off without quotes, or null for that of cap.gate",
            id="a gate's own cap that is only on",
        ),
        pytest.param("cap: on", f"cap: is true, allowed: off or {CAP_KEYS}", id="a cap that is only on"),
        pytest.param(
            'cap: "off"', f'cap: is the text "off", allowed: {CAP_KEYS} or off without quotes', id="off in quotes"
        ),
        pytest.param(
            "cap: {poolLabel: a b}", 'cap.poolLabel: is the text "a b", allowed: the key of a label', id="key"
        ),
        pytest.param("storm: {percent: 0}", "storm.percent: is 0, allowed: 1 to 100", id="a storm of no percent"),
        pytest.param(
            "storm: {atLeast: 1}",
            "storm.atLeast: is 1, allowed: a number of nodes, 2 to 15000",
            id="a storm of one node",
        ),
        pytest.param(
            "storm: on",
            "storm: is true, allowed: off or a mapping with the keys percent, atLeast, withinSeconds, calmSeconds",
            id="a storm that is only on",
        ),
        pytest.param(
            "gates: [{severity: fatal}]",
            'gates[0].severity: is the text "fatal", allowed: gate, preferNot, warn',
            id="an unknown severity",
        ),
        pytest.param(
            "gates: [{enforcement: off}]",
            "gates[0].enforcement: is false, allowed: shadow, armed",
            id="an unknown enforcement",
        ),
        pytest.param(
            "gates: [{for: {namespaces: []}}]",
            "gates[0].for.namespaces: is an empty list, allowed: a list of at least one DNS label or null",
            id="for no namespace",
        ),
        pytest.param(
            "gates: [{for: {resources: []}}]",
            "gates[0].for.resources: is an empty list, allowed: a list of at least one resource or null",
            id="for no resource",
        ),
        pytest.param(
            "gates: [{for: {csiDrivers: []}}]",
            "gates[0].for.csiDrivers: is an empty list, allowed: a list of at least one CSI driver or null",
            id="for no driver",
        ),
        pytest.param(
            "gates: [{for: {schedulerNames: []}}]",
            "gates[0].for.schedulerNames: is an empty list, allowed: a list of at least one scheduler's name or null",
            id="for no scheduler",
        ),
        pytest.param(
            "gates: [{for: {resources: [nvidia.com/]}}]",
            'gates[0].for.resources[0]: is the text "nvidia.com/", allowed: the name of a resource, as nvidia.com/gpu',
            id="half a resource",
        ),
        pytest.param(
            "gates: [{for: {podSelector: ''}}]",
            "gates[0].for.podSelector: is empty, allowed: a label selector, or null for every pod",
            id="an empty selector of pods",
        ),
        pytest.param(
            "gates: [{for: {podSelector: a in b}}]",
            f"gates[0].for.podSelector: is the text \"a in b\" ('b' where '(' was to be), allowed: {SELECTOR}",
            id="a selector of pods that cannot be read",
        ),
        pytest.param(
            "gates: [{for: {priority: {from: 5, to: 1}}}]",
            "gates[0].for.priority.from: is 5, allowed: not more than to, 1",
            id="a priority from above to below",
        ),
        pytest.param(
            "gates: [{for: {priority: {}}}]",
            "gates[0].for.priority.from: missing, allowed: from, to, or both",
            id="a priority without ends",
        ),
        pytest.param(
            "gates: [{nodes: 'pool=a=b'}]",
            f"gates[0].nodes: is the text \"pool=a=b\" ('=' where ',' was to be), allowed: {SELECTOR}",
            id="a selector of nodes that cannot be read",
        ),
        pytest.param(
            "gates: [{healthPods: {labelSelector: app=a}}]",
            "gates[0].healthPods.namespace: missing, allowed: a DNS label",
            id="health pods of no namespace",
        ),
        pytest.param(
            "gates: [{healthPods: {namespace: cni, daemonSet: cni}}]",
            "gates[0].healthPods.labelSelector: missing, allowed: text",
            id="health pods without a selector",
        ),
        pytest.param(
            "gates: [{healthPods: {namespace: cni, labelSelector: '=a'}}]",
            "gates[0].healthPods.labelSelector: is the text \"=a\" ('=' where a key or '!' was to be), allowed: "
            + SELECTOR,
            id="health pods by a selector that cannot be read",
        ),
        pytest.param(
            "gates: [{healthPods: {namespace: cni, labelSelector: ''}}]",
            "gates[0].healthPods.labelSelector: is empty, allowed: a label selector, or none beside a daemonSet",
            id="every pod of a namespace",
        ),
        pytest.param(
            "gates: [{healthPods: null}]",
            "gates[0].healthPods: is empty, allowed: that only where all conditions are of the node",
            id="no health pods",
        ),
        pytest.param(
            "gates: [{healthPods: null, conditions: {allOf: [{of: node, type: A}, {of: pod, type: B}]}}]",
            "gates[0].healthPods: is empty, allowed: that only where all conditions are of the node",
            id="no health pods, and a condition of them",
        ),
        pytest.param(
            "gates: [{conditions: {allOf: []}}]",
            "gates[0].conditions.allOf: is empty, allowed: entries here or in anyOf",
            id="conditions that are none",
        ),
        pytest.param(
            "gates: [{conditions: {anyOf: [{of: nodes, type: A}]}}]",
            'gates[0].conditions.anyOf[0].of: is the text "nodes", allowed: pod, node',
            id="a condition of something else",
        ),
        pytest.param(
            "gates: [{conditions: {allOf: [{of: node}]}}]",
            "gates[0].conditions.allOf[0].type: missing, allowed: the type of a condition",
            id="a condition without a type",
        ),
        pytest.param(
            "gates: [{conditions: {allOf: [{of: node, type: A, status: False}]}}]",
            'gates[0].conditions.allOf[0].status: is false, allowed: "True" or "False", in quotes',
            id="a status without quotes",
        ),
        pytest.param(
            "gates: [{conditions: {allOf: [{of: pod, type: A, staleAfterSeconds: 60}]}}]",
            "gates[0].conditions.allOf[0].staleAfterSeconds: is 60, allowed: null for a condition of a pod: nobody "
            "writes when it was last looked at",
            id="a condition of a pod that gets stale",
        ),
        pytest.param(
            "gates: [{conditions: {allOf: [{of: node, type: readygate.dev/NodeHealthy}]}}]",
            'gates[0].conditions.allOf[0].type: is the text "readygate.dev/NodeHealthy" of the node, allowed: any but '
            "that, which we write ourselves",
            id="our own word taken for evidence",
        ),
        pytest.param(
            "gates: [{damping: {minHealthySeconds: 30, ceilingSeconds: 20}}]",
            "gates[0].damping.minHealthySeconds: is 30, allowed: not more than ceilingSeconds, 20",
            id="damping that begins above its ceiling",
        ),
        pytest.param(
            "gates: [{podStarts: {namespaces: 1}}]",
            "gates[0].podStarts.namespaces: is 1, allowed: a number of namespaces, 2 to 100",
            id="one owner is no second word",
        ),
        pytest.param(
            "gates: [{podStarts: {}, conditions: {allOf: [{of: node, type: A}]}}]",
            "gates[0].podStarts: stands beside conditions, allowed: one of the two",
            id="starts of pods and conditions",
        ),
        pytest.param(
            "gates: [{name: a, podStarts: {}}, {name: b, podStarts: {}}]",
            "gates[1].podStarts: is a second one, allowed: one gate with it",
            id="two gates by starts of pods",
        ),
        pytest.param(
            "gates: [{damping: on}]",
            "gates[0].damping: is true, allowed: off or a mapping with the keys minHealthySeconds, ceilingSeconds, "
            "windowSeconds",
            id="damping that is only on",
        ),
        pytest.param(
            "exempt: {labelNamespaces: '*'}",
            'exempt.labelNamespaces: is the text "*", allowed: a list, each a DNS label, or "*" for all',
            id="all namespaces, without a list",
        ),
        pytest.param(
            "orders: {configMap: A_B}", 'orders.configMap: is the text "A_B", allowed: a DNS name', id="no ConfigMap"
        ),
        pytest.param(
            "orders: {configMap: readygate-extender-orders}",
            'orders.configMap: is the text "readygate-extender-orders", allowed: a name that does not begin with '
            "readygate-extender",
            id="a ConfigMap that operators may not write",
        ),
        pytest.param(
            "orders: {configMap: readygate-agent}",
            'orders.configMap: is the text "readygate-agent", allowed: a name that does not begin with readygate-agent',
            id="nor this one",
        ),
    ],
)
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
