"""Settings of mode kubelet for what its node has, keeps for itself, and is tainted with."""

import pytest

from agent import settings
from agent.settings import Kubelet
from component.settings import SettingsError
from tools.kit.cases import cases


def parse(more: str) -> Kubelet:
    text = f"mode: kubelet\nkubelet: {{nodeName: n, podCIDR: 127.20.1.0/24, rootDir: /r, {more}}}"
    found = settings.parse(text.encode(), {}).kubelet
    assert found is not None
    return found


def test_whole_numbers_are_quantities_too() -> None:
    found = parse("capacity: {cpu: 4}, systemReserved: {cpu: 1, memory: 1Gi}, kubeReserved: {cpu: 500m}")
    assert ({"cpu": "4"}, {"cpu": "1", "memory": "1Gi"}, {"cpu": "500m"}) == (
        found.capacity,
        found.system_reserved,
        found.kube_reserved,
    )


def test_nothing_is_reserved_and_the_node_has_no_taints_by_default() -> None:
    found = parse("labels: {}")
    assert ({}, {}, {}, ()) == (found.capacity, found.system_reserved, found.kube_reserved, found.register_with_taints)


def test_taints_of_a_new_node() -> None:
    (taint,) = parse("registerWithTaints: [{key: example.com/gpu, effect: NoExecute}]").register_with_taints
    assert ("example.com/gpu", "", "NoExecute") == (taint.key, taint.value, taint.effect)


@cases(
    "more, expected",
    (
        "what cannot be reserved",
        "kubeReserved: {pods: 5}",
        "kubeReserved.pods: cannot be reserved, allowed: cpu, memory, ephemeral-storage",
    ),
    ("a reserve below 0", "systemReserved: {cpu: '-1'}", 'systemReserved.cpu: is the text "-1", allowed: a quantity'),
    ("no mapping", "systemReserved: [1]", "systemReserved: is a list, allowed: a mapping"),
    (
        "a taint's effect",
        "registerWithTaints: [{key: a, effect: Evict}]",
        'registerWithTaints[0].effect: is the text "Evict", allowed: NoSchedule, PreferNoSchedule, NoExecute',
    ),
    (
        "a taint's key",
        "registerWithTaints: [{key: 'a b', effect: NoSchedule}]",
        "registerWithTaints[0]: 'a b' is not a valid label key, allowed: key and value as of a label",
    ),
    (
        "one taint twice",
        "registerWithTaints: [{key: a, effect: NoExecute}, {key: a, effect: NoExecute, value: b}]",
        "registerWithTaints[1]: is there twice, allowed: each key once with each effect",
    ),
)
def test_one_line_names_the_key_and_the_cause(more: str, expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(more)
    assert str(caught.value).startswith(f"kubelet.{expected}")
