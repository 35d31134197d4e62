"""The roles and the chart make the same objects of the same wishes: for each supported form, object by object."""

import copy
import json
from functools import cache
from typing import Any

import msgspec
import pytest
import yaml

from agent.checks.profiles import PROFILES
from extender.config import settings as extender_settings
from kube import contract
from tests.charts.rendering import SUPPORTED, Object, Objects, keyed, objects, sha256
from tests.playbooks import rendering as roles

CONFIGURATION = "readygate.dev/configuration"
# What an inventory says for the same.
INVENTORIES: dict[str, dict[str, Any]] = {
    "default": {},
    "fast": {
        "readygate_image_architectures": ["amd64"],
        "readygate_agent_node_selector": {"pool": "gpu"},
        "readygate_agent_cni_check": False,
        "readygate_agent_check_profile": "",
        "readygate_agent_checks": [{"name": "gpu", "exec": {"command": ["/bin/true"]}}],
        "readygate_image": "registry.example/readygate@sha256:" + "0123456789abcdef" * 4,
        "readygate_agent_profile": "fast",
        "readygate_agent_form": "both",
        "__readygate_extender_admin_server": None,
    },
    "silent": {
        "readygate_agent_publish_condition": False,
        "readygate_extender_admission_policy": False,
        "__readygate_extender_admin_server": None,
        "readygate_extender_configuration": {
            "orders": {"configMap": None},
            "outlets": {"nodeCondition": {"enabled": False}, "events": {"enabled": False}},
        },
    },
    "tls": {
        "readygate_enforcement": "armed",
        "readygate_extender_tls_secret": "extender-tls",
        "readygate_extender_configuration": {"listen": {"tls": {"clientNames": ["system:kube-scheduler"]}}},
        "__readygate_extender_admin_server": None,
    },
    "checks": {
        "readygate_kubernetes_server": "https://192.0.2.1:6443",
        "readygate_agent_cni_conf_dir": "/etc/kube/cni/net.d",
        "readygate_agent_cni_bin_dirs": ["/usr/lib/cni", "/opt/cni/bin"],
        "readygate_agent_checks": [
            {"name": "dns", "tcpSocket": {"host": "10.96.0.10", "port": 53}, "periodSeconds": 7, "severity": "warn"},
            {"name": "log", "exec": {"command": ["test", "-d", "/host/var/log/pods"]}},
            {"name": "data", "filesystem": {"mounts": ["/host/var/lib/data"]}},
            {
                "name": "runtime",
                "runtime": {"socket": ["/host/run/crio/crio.sock", "/run/elsewhere.sock"]},
                "severity": "warn",
            },
        ],
        "readygate_agent_host_paths": ["/var/log"],
        "readygate_agent_run_as_user": 0,
        "readygate_agent_log_level": "debug",
        "readygate_agent_check_period_seconds": 5,
        "readygate_agent_max_unavailable": "2",
        "readygate_agent_min_ready_seconds": 90,
        "readygate_extender_configuration": {"gates": [{"missingGraceSeconds": 60}], "log": {"level": "debug"}},
    },
    **{
        f"profile-{name}": {"readygate_agent_check_profile": name, "__readygate_extender_admin_server": None}
        for name in PROFILES
    },
    "unprivileged": {
        "readygate_extender_port": contract.PORT_UNPRIVILEGED,
        "readygate_extender_tls_secret": "extender-tls",
        "readygate_agent_cni_check": False,
        "readygate_agent_check_profile": "",
        "readygate_agent_checks": [
            {"name": "dns", "tcpSocket": {"host": "10.96.0.10", "port": 53}, "severity": "warn"}
        ],
        "__readygate_extender_admin_server": None,
    },
    "monitoring": {  # the roles install no monitors
        "readygate_extender_metrics_address": "$(HOST_IP)",
        "__readygate_extender_admin_server": None,
    },
    "gates": {
        "readygate_enforcement": "armed",
        "readygate_node_heartbeat": True,  # the extender follows
        "readygate_extender_node_selector": {"example.com/scheduler": "true"},
        "__readygate_extender_admin_server": None,
        "readygate_extender_configuration": {
            "gates": [
                {"name": "health"},
                {
                    "name": "cni",
                    "enforcement": "shadow",
                    "healthPods": {"namespace": "kube-system", "labelSelector": "", "daemonSet": "cilium"},
                },
                {
                    "name": "disk",
                    "healthPods": {"namespace": "storage", "labelSelector": "app=probe"},
                    "for": {"csiDrivers": ["ebs.csi.aws.com"], "priority": {"from": 1000000000}},
                },
                {
                    "name": "kernel",
                    "healthPods": None,
                    "conditions": {"allOf": [{"of": "node", "type": "Deadlock", "status": "False"}]},
                    "damping": False,
                },
                {"name": "starts", "podStarts": {"namespaces": 4}},
            ],
            "cap": {"cluster": "25%", "leaveInPool": 0},
        },
    },
}


# What only the chart has: beside pods the roles have the service of the node plugin, with the same facts.
OF_THE_CHART = {"reader"}


def role_objects(inventory: dict[str, Any]) -> Objects:
    """The objects that both roles send. They are rendered once for the same inventory."""
    return copy.deepcopy(_role_objects(json.dumps(inventory)))


@cache
def _role_objects(text: str) -> Objects:
    inventory = json.loads(text)
    given = {"readygate_image": "localhost/readygate:dev"} | roles.ADMIN_SERVER | inventory
    sent = roles.objects("readygate_agent", given) | roles.objects("readygate_extender", given)
    return {key: roles.plain(each) for key, each in sent.items()}


def named_alike(sent: Objects) -> Objects:
    """With the names of both configurations, which follow from their texts, as their pods refer to them."""
    found = list(sent.values())
    for name in (contract.NAME_AGENT, contract.NAME_EXTENDER):
        (key,) = [key for key in sent if key[0] == "ConfigMap" and key[2].startswith(f"{name}-")]
        (text,) = sent[key]["data"].values()
        assert key[2] == f"{name}-{sha256(text)[:10]}"
        found = json.loads(json.dumps(found).replace(key[2], name))
    return keyed(found)


def meaning(key: tuple[str, str, str], sent: Objects) -> Object:
    """An object as its readers take it: configuration files as their settings, what is told of one by its content."""
    read = copy.deepcopy(sent[key])
    if read["kind"] == "ConfigMap":
        read["data"] = {name: settings_of(name, text) for name, text in read["data"].items()}
    if read["kind"] == "DaemonSet":
        annotations = read["spec"]["template"]["metadata"]["annotations"]
        (told,) = sent["ConfigMap", key[1], key[2]]["data"].values()
        assert sha256(told) == annotations.pop(CONFIGURATION)
    return read


def settings_of(name: str, text: str) -> Any:
    if name == "extender.yaml":
        return msgspec.to_builtins(extender_settings.parse(text))
    return yaml.safe_load(text)


def of_monitoring(key: tuple[str, str, str]) -> bool:
    return key[0] in ("PodMonitor", "PrometheusRule") or key[2] == "readygate-dashboard"


def test_each_supported_form_has_an_inventory():
    assert sorted(SUPPORTED) == sorted([*INVENTORIES, *OF_THE_CHART])


@pytest.mark.parametrize("form", INVENTORIES)
def test_the_roles_send_the_objects_of_the_chart(form):
    by_role, by_chart = named_alike(role_objects(INVENTORIES[form])), named_alike(objects(SUPPORTED[form]))
    by_chart = {key: each for key, each in by_chart.items() if not of_monitoring(key)}
    assert sorted(by_role) == sorted(by_chart)
    for key in by_role:
        assert meaning(key, by_role) == meaning(key, by_chart), key


def test_names_of_the_chart_are_those_of_the_code():
    sent = objects(SUPPORTED["default"])
    assert ("DaemonSet", contract.NAMESPACE, contract.NAME_AGENT) in sent
    assert ("DaemonSet", contract.NAMESPACE, contract.NAME_EXTENDER) in sent
    assert ("Role", contract.NAMESPACE_NODE_LEASE, contract.NAME_EXTENDER) in sent
