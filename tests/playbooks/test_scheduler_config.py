"""What the scheduler role makes of kubeadm's ClusterConfiguration and of the user's KubeSchedulerConfiguration."""

import base64
import json
from typing import Any

import pytest
import yaml

from tests.playbooks.rendering import plain, render

FILE = "/etc/kubernetes/readygate/kube-scheduler-0123456789ab.yaml"
EARLIER = "/etc/kubernetes/readygate/kube-scheduler-ffffffffffff.yaml"
OURS_LISTED = {"name": "config", "value": FILE}
VOLUME = {
    "name": "readygate",
    "hostPath": "/etc/kubernetes/readygate",
    "mountPath": "/etc/kubernetes/readygate",
    "readOnly": True,
    "pathType": "Directory",
}
V1BETA4, V1BETA3 = "kubeadm.k8s.io/v1beta4", "kubeadm.k8s.io/v1beta3"


def slurped(document: Any) -> dict[str, str]:
    return {"content": base64.b64encode(yaml.safe_dump(document).encode()).decode()}


def expression(given: dict[str, Any]) -> Any:
    return render("readygate_scheduler_config", {"__readygate_scheduler_config_node": "control-1", **given})


def clustered(scheduler: dict[str, Any] | None, version: str, wanted: str) -> dict[str, Any]:
    cluster = {"apiVersion": version, "kind": "ClusterConfiguration", "kubernetesVersion": "v1.36.3"}
    if scheduler is not None:
        cluster["scheduler"] = scheduler
    stored = json.dumps({"data": {"ClusterConfiguration": yaml.safe_dump(cluster)}})
    value = expression(
        {"__readygate_scheduler_config_configmap": {"stdout": stored}, "readygate_scheduler_config_wanted": wanted}
    )("__readygate_scheduler_config_wanted_cluster")
    changed = plain(value)
    section = changed.pop("scheduler")
    assert changed == {k: v for k, v in cluster.items() if k != "scheduler"}, "nothing else is touched"
    return section


@pytest.mark.parametrize(
    ("scheduler", "version", "expected"),
    [
        pytest.param({}, V1BETA4, {"extraArgs": [OURS_LISTED], "extraVolumes": [VOLUME]}, id="as kubeadm made it"),
        pytest.param(None, V1BETA4, {"extraArgs": [OURS_LISTED], "extraVolumes": [VOLUME]}, id="without a section"),
        pytest.param(
            {"extraArgs": [{"name": "v", "value": "2"}, {"name": "v", "value": "3"}], "extraEnvs": [{"name": "A"}]},
            V1BETA4,
            {
                "extraArgs": [{"name": "v", "value": "2"}, {"name": "v", "value": "3"}, OURS_LISTED],
                "extraEnvs": [{"name": "A"}],
                "extraVolumes": [VOLUME],
            },
            id="arguments of others stay, also twice the same",
        ),
        pytest.param(
            {"extraArgs": [{"name": "config", "value": EARLIER}], "extraVolumes": [VOLUME]},
            V1BETA4,
            {"extraArgs": [OURS_LISTED], "extraVolumes": [VOLUME]},
            id="an earlier configuration of ours gives way",
        ),
        pytest.param(
            {"extraArgs": {"v": "2", "config": EARLIER}},
            V1BETA3,
            {"extraArgs": {"v": "2", "config": FILE}, "extraVolumes": [VOLUME]},
            id="v1beta3 keeps arguments as a mapping",
        ),
    ],
)
def test_registration(scheduler, version, expected):
    assert clustered(scheduler, version, FILE) == expected


@pytest.mark.parametrize(
    ("scheduler", "version"),
    [
        pytest.param({}, V1BETA4, id="as kubeadm made it"),
        pytest.param({"extraArgs": [{"name": "v", "value": "2"}]}, V1BETA4, id="with an argument"),
        pytest.param({"extraArgs": {"v": "2"}}, V1BETA3, id="with an argument, v1beta3"),
        pytest.param({"extraVolumes": [{**VOLUME, "name": "other"}]}, V1BETA4, id="with a volume"),
        pytest.param(
            {"extraArgs": [{"name": "config", "value": "/etc/own.yaml"}]}, V1BETA4, id="with a file of their own"
        ),
    ],
)
def test_taking_it_out_again_leaves_what_was_there(scheduler, version):
    registered = clustered(scheduler, version, FILE)
    assert clustered(registered, version, "") == scheduler


def manifest(*arguments: str) -> dict[str, str]:
    return slurped({"spec": {"containers": [{"command": ["kube-scheduler", *arguments]}]}})


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["--leader-elect=true"], "", id="none"),
        pytest.param(["--v=2", f"--config={FILE}"], FILE, id="ours"),
        pytest.param(["--config=/etc/kubernetes/own.yaml"], "", id="that of somebody else"),
    ],
)
def test_which_configuration_the_manifest_names(arguments, expected):
    value = expression({"__readygate_scheduler_config_on_disk": manifest(*arguments)})
    assert value("__readygate_scheduler_config_named") == expected


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [pytest.param("10.99.0.11:6443", "10.99.0.11", id="IPv4"), pytest.param("[fd00::1]:6443", "fd00::1", id="IPv6")],
)
def test_kubeadm_is_told_the_address_of_the_host_and_its_name(endpoint, expected):
    annotation = "kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint"
    value = expression(
        {
            "__readygate_scheduler_config_configmap": {
                "stdout": json.dumps({"data": {"ClusterConfiguration": f"apiVersion: {V1BETA4}"}})
            },
            "__readygate_scheduler_config_apiserver": slurped({"metadata": {"annotations": {annotation: endpoint}}}),
        }
    )
    assert plain(value("__readygate_scheduler_config_wanted_init")) == {
        "apiVersion": V1BETA4,
        "kind": "InitConfiguration",
        "nodeRegistration": {"name": "control-1"},
        "localAPIEndpoint": {"advertiseAddress": expected},
    }


def content(given: dict[str, Any]) -> dict[str, Any]:
    return yaml.safe_load(expression(given)("__readygate_scheduler_config_content"))


EXTENDER = {
    "urlPrefix": "http://127.0.0.1:9376",
    "filterVerb": "filter",
    "preemptVerb": "preempt",
    "nodeCacheCapable": True,
    "httpTimeout": "1s",
}


@pytest.mark.parametrize(
    ("mode", "ignorable", "port"),
    [
        pytest.param("protect", True, 9376, id="protect: a dead extender is passed over"),
        pytest.param("enforce", False, 337, id="enforce: pods wait for a dead extender, which is a static pod"),
    ],
)
def test_the_schedulers_configuration(mode, ignorable, port):
    assert content({"readygate_scheduler_config_mode": mode}) == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": "/etc/kubernetes/scheduler.conf"},
        "extenders": [{**EXTENDER, "ignorable": ignorable, "urlPrefix": f"http://127.0.0.1:{port}"}],
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"weight": 5}, {"prioritizeVerb": "prioritize", "weight": 5}, id="scores, with a weight"),
        pytest.param({"weight": "5"}, {"prioritizeVerb": "prioritize", "weight": 5}, id="a weight of the command line"),
        pytest.param(
            {"managed_resources": ["nvidia.com/gpu", "example.com/fpga"]},
            {"managedResources": [{"name": "nvidia.com/gpu"}, {"name": "example.com/fpga"}]},
            id="only pods that ask for these",
        ),
    ],
)
def test_what_is_registered_only_where_a_variable_says_so(given, expected):
    named = {f"readygate_scheduler_config_{name}": value for name, value in given.items()}
    assert {**EXTENDER, "ignorable": True, **expected} == content(named)["extenders"][0]


def test_over_tls_the_scheduler_shows_a_certificate_and_checks_the_extenders():
    tls = {"caFile": "/etc/kubernetes/readygate/ca.crt", "certFile": "/c", "keyFile": "/k"}
    (extender,) = content({"readygate_scheduler_config_tls": tls})["extenders"]
    url = {"urlPrefix": "https://127.0.0.1:9376"}
    assert {**EXTENDER, **url, "ignorable": True, "enableHTTPS": True, "tlsConfig": tls} == extender


def test_the_users_configuration_is_kept_and_added_to():
    base = {
        "clientConnection": {"qps": 100},
        "percentageOfNodesToScore": 100,
        "extenders": [{"urlPrefix": "http://127.0.0.1:1"}],
    }
    merged = content({"readygate_scheduler_config_base": base})
    assert merged["clientConnection"] == {"kubeconfig": "/etc/kubernetes/scheduler.conf", "qps": 100}
    assert merged["extenders"] == [{"urlPrefix": "http://127.0.0.1:1"}, {**EXTENDER, "ignorable": True}]
    assert merged["percentageOfNodesToScore"] == 100


def test_the_file_is_named_after_its_content_so_that_a_change_restarts_the_scheduler():
    def name(given: dict[str, Any]) -> str:
        return expression(given)("__readygate_scheduler_config_file")

    assert name({}) == name({"readygate_scheduler_config_mode": "protect"})
    assert name({}) != name({"readygate_scheduler_config_mode": "enforce"})
    assert name({}).startswith("/etc/kubernetes/readygate/kube-scheduler-")
