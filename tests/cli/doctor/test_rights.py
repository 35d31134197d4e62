"""The rights that the extender needs with a configuration: all of them, and no others."""

import pytest

from cli.doctor.rights import LEASES, Need, needed
from extender import settings

NAMESPACE = "readygate-system"
NAME = "readygate-extender"
CONDITION = Need("patch", "", "nodes", sub="status")
EVENTS = Need("create", "", "events")
LEADER = {
    Need("create", LEASES, "leases", NAMESPACE),
    Need("get", LEASES, "leases", NAMESPACE, NAME),
    Need("update", LEASES, "leases", NAMESPACE, NAME),
}
ORDERS = {Need(verb, "", "configmaps", NAMESPACE, "readygate-orders") for verb in ("list", "watch")}
ELSEWHERE = {Need(verb, "", "pods", "kube-system") for verb in ("list", "watch")}
VOLUMES = {Need(verb, "", "persistentvolumeclaims") for verb in ("list", "watch")}
DEVICES = {
    Need(verb, "resource.k8s.io", what)
    for verb in ("list", "watch")
    for what in ("resourceclaims", "resourceclaimtemplates", "deviceclasses")
}
QUIET = "outlets: {nodeCondition: {enabled: false}, events: {enabled: false}}"
DNS = "gates: [{name: dns, healthPods: {namespace: kube-system, labelSelector: k8s-app=dns}}]"
CSI = "gates: [{name: disk, for: {csiDrivers: [ebs.csi.aws.com]}}]"

STARTS = "gates: [{}, {name: starts, podStarts: {}}]"
ALL_PODS = {Need(verb, "", "pods") for verb in ("list", "watch")}


@pytest.mark.parametrize(
    ("configuration", "among", "not_among"),
    [
        pytest.param("", {CONDITION, EVENTS, *LEADER, *ORDERS, Need("patch", "", "nodes")}, VOLUMES, id="as it comes"),
        pytest.param(QUIET, ORDERS, {CONDITION, EVENTS, *LEADER}, id="without conditions and events"),
        pytest.param("orders: {configMap: null}", {CONDITION}, ORDERS, id="without orders"),
        pytest.param("kick: {enabled: false}", {CONDITION}, {Need("patch", "", "nodes")}, id="no kick"),
        pytest.param(
            DNS, ELSEWHERE, {Need("list", "apps", "daemonsets", "kube-system")}, id="pods of another namespace"
        ),
        pytest.param(STARTS, ALL_PODS, VOLUMES, id="a gate by how pods start"),
        pytest.param(CSI, VOLUMES, ELSEWHERE | DEVICES, id="a gate by volume"),
        pytest.param(
            "gates: [{for: {deviceClasses: [gpu.nvidia.com]}}]", DEVICES, VOLUMES, id="a gate by class of devices"
        ),
        pytest.param("gates: [{for: {resources: [nvidia.com/gpu]}}]", DEVICES, VOLUMES, id="a gate by a device's name"),
        pytest.param("gates: [{for: {resources: [cpu]}}]", set(), DEVICES, id="processors are no devices"),
    ],
)
def test_the_needed_rights_follow_from_the_configuration(configuration, among, not_among):
    found = set(needed(settings.parse(configuration), NAMESPACE))
    assert (set(), set()) == (among - found, not_among & found)
