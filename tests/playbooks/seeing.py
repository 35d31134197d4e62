"""What the scheduler role sees on a host, as its module tells it, and the filters that work on that."""

import json
from functools import cache
from typing import Any

import yaml

from kube import contract
from tests.playbooks.rendering import filters, plain, render

FOLDER = "/etc/kubernetes/readygate"
FILE = f"{FOLDER}/kube-scheduler-0123456789ab.yaml"
THEIRS = "/etc/kubernetes/own.yaml"
VOLUME = {
    "name": "readygate",
    "hostPath": FOLDER,
    "mountPath": FOLDER,
    "readOnly": True,
    "pathType": "Directory",
}
KUBEADM_V1, V1BETA4, V1BETA3 = (f"kubeadm.k8s.io/{version}" for version in ("v1", "v1beta4", "v1beta3"))
URL, BEFORE_URL = (f"http://127.0.0.1:{port}" for port in (contract.PORT_DAEMON_SET, contract.PORT_UNPRIVILEGED))
EXTENDER = {
    "urlPrefix": URL,
    "filterVerb": "filter",
    "preemptVerb": "preempt",
    "nodeCacheCapable": True,
    "httpTimeout": "1s",
    "ignorable": True,
}
FIRST = {"urlPrefix": "http://127.0.0.1:1", "filterVerb": "first"}
LAST = {"urlPrefix": "http://127.0.0.1:2", "filterVerb": "last"}
PROFILES = [{"schedulerName": "default-scheduler", "plugins": {"score": {"disabled": [{"name": "ImageLocality"}]}}}]
KIND = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
CLIENT = {"clientConnection": {"kubeconfig": "/etc/kubernetes/scheduler.conf"}}
plan, kubeadm, edits, job, findings, asks, stays, differing, unread = (
    filters("readygate_scheduler_config")[f"readygate_scheduler_{name}"]
    for name in ("plan", "kubeadm", "edits", "job", "findings", "asks", "stays", "differing", "unread")
)


def given(**inventory: Any) -> dict[str, Any]:
    """The role's settings, of an inventory's variables without their prefix."""
    return _given(json.dumps(inventory))


@cache
def _given(inventory: str) -> dict[str, Any]:
    named = {f"readygate_scheduler_config_{name}": value for name, value in json.loads(inventory).items()}
    return plain(render("readygate_scheduler_config", named)("__readygate_scheduler_config_given"))


def manifest(*arguments: str, volumes: bool = False) -> str:
    ours = [{"name": "readygate", "mountPath": FOLDER, "readOnly": True}] if volumes else []
    command = ["kube-scheduler", "--kubeconfig=/etc/kubernetes/scheduler.conf", *arguments]
    mounts = [{"name": "kubeconfig", "mountPath": "/etc/kubernetes/scheduler.conf"}, *ours]
    paths = [{"name": each["name"], "hostPath": {"path": each["mountPath"]}} for each in mounts]
    container = {"name": "kube-scheduler", "image": "x", "command": command, "volumeMounts": mounts}
    return yaml.safe_dump({"kind": "Pod", "spec": {"containers": [container], "volumes": paths}})


def cluster(scheduler: dict[str, Any] | None = None, version: str = V1BETA4) -> dict[str, Any]:
    document = {"apiVersion": version, "kind": "ClusterConfiguration", "kubernetesVersion": "v1.36.3"}
    document |= {} if scheduler is None else {"scheduler": scheduler}
    return {"data": {"ClusterConfiguration": yaml.safe_dump(document)}}


def seen(text: str | None, **more: Any) -> dict[str, Any]:
    """As the module on the host tells it; the process runs with the manifest's arguments."""
    command = yaml.safe_load(text)["spec"]["containers"][0]["command"] if text else []
    return {
        "target": text,
        "process": command,
        "configs": {},
        "noted": None,
        "healthy": True,
        "healthz": "https://127.0.0.1:10259/healthz",
        "configz": {"extenders": [EXTENDER]},
        "kubectl": ["kubectl"],
        "configz_command": ["kubectl", "get", "--raw=/configz"],
        "open": False,
        "original": None,
        "without": None,
        "files": [FILE],
        "apiserver": None,
        "unit_text": "",
        "cluster": cluster({"extraArgs": [{"name": "config", "value": FILE}]}),
        "node": "control-1",
        **more,
    }
