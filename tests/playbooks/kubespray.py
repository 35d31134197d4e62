"""kube-scheduler as kubespray sets it up, with its defaults: what its role kubernetes/control-plane renders.

After its templates kubescheduler-config.yaml.j2 and kubeadm-config.v1beta4.yaml.j2 and its defaults in
main/kube-scheduler.yml (kubernetes-sigs/kubespray at 0128a2cf, 0676adf8, 4e78b83a), and what kubeadm makes of that.
"""

from typing import Any

import yaml

FILE = "/etc/kubernetes/kubescheduler-config.yaml"
# The scheduler's part of the ClusterConfiguration. kube_profiling is written as Python writes it.
SECTION = {
    "extraArgs": [
        {"name": "bind-address", "value": "::"},
        {"name": "config", "value": FILE},
        {"name": "profiling", "value": "False"},
    ],
    "extraVolumes": [{"name": "kubescheduler-config", "hostPath": FILE, "mountPath": FILE, "readOnly": True}],
}
COMMAND = [
    "kube-scheduler",
    "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
    "--authorization-kubeconfig=/etc/kubernetes/scheduler.conf",
    "--bind-address=::",
    f"--config={FILE}",
    "--kubeconfig=/etc/kubernetes/scheduler.conf",
    "--leader-elect=true",
    "--profiling=False",
]


def manifest() -> str:
    """kubeadm's, of that section."""
    mounts = [
        {"name": "kubeconfig", "mountPath": "/etc/kubernetes/scheduler.conf", "readOnly": True},
        {"name": "kubescheduler-config", "mountPath": FILE, "readOnly": True},
    ]
    volumes = [{"name": each["name"], "hostPath": {"path": each["mountPath"]}} for each in mounts]
    container = {"name": "kube-scheduler", "image": "x", "command": COMMAND, "volumeMounts": mounts}
    return yaml.safe_dump({"kind": "Pod", "spec": {"containers": [container], "volumes": volumes}})


def configuration(extenders: list[dict[str, Any]]) -> str:
    """The file, with `kube_scheduler_extenders` as the inventory has them: Ansible's to_nice_yaml at the margin."""
    lines = [
        "apiVersion: kubescheduler.config.k8s.io/v1",
        "kind: KubeSchedulerConfiguration",
        "clientConnection:",
        '  kubeconfig: "/etc/kubernetes/scheduler.conf"',
    ]
    if extenders:
        lines += ["extenders:", yaml.safe_dump(extenders, indent=2, width=256, default_flow_style=False), ""]
    return "\n".join([*lines, "leaderElection:", "  leaseDuration: 15s", "  renewDeadline: 10s", ""])
