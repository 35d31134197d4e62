"""What each kube-scheduler of several runs with, asked of itself, and what kubeadm would give it."""

import json
import re
from collections.abc import Sequence
from typing import Any

import yaml

from tests.hosts.deployment.api import AdminApi
from tests.hosts.deployment.conftest import KUBEADM_CONFIG
from tests.hosts.waiting import wait_for
from tests.playbooks.host.configz import configuration_of
from tools.testbed.hosts.hosts import Hosts

THREE = ("control-1", "control-2", "control-3")
MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"
# On the host: /configz by the admin's certificate, which every scheduler takes.
_ASK = """
import base64, re, ssl, tempfile, urllib.request
text = open("/etc/kubernetes/admin.conf").read()
with tempfile.NamedTemporaryFile() as file:
    for key in ("client-certificate-data", "client-key-data"):
        file.write(base64.b64decode(re.search(key + ": (.*)", text).group(1)))
    file.flush()
    context = ssl._create_unverified_context()
    context.load_cert_chain(file.name)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
print(opener.open("https://127.0.0.1:10259/configz", timeout=5).read().decode())
"""


class Schedulers:
    def __init__(self, hosts: Hosts, api: AdminApi) -> None:
        self._hosts = hosts
        self._api = api

    def manifest(self, host: str) -> str:
        return self._hosts.ssh(host, f"cat {MANIFEST}").stdout

    def extenders(self, host: str, key: str = "urlPrefix") -> list[str] | None:
        """The addresses of the extenders that this host's scheduler has loaded, or another of their fields; None while
        it does not answer."""
        loaded = self.loaded(host)
        return None if loaded is None else [extender[key] for extender in loaded.get("extenders") or []]

    def loaded(self, host: str) -> dict[str, Any] | None:
        """The configuration of this host's scheduler as it says itself; None while it does not answer."""
        done = self._hosts.ssh(host, "python3 -", stdin=_ASK, check=False)
        return dict(configuration_of(done.stdout)) if done.returncode == 0 else None

    def timeouts(self) -> dict[str, str | None]:
        """The time limit of the one extender that each of the three asks; None where it does not answer, or asks more
        or none."""
        said = {host: self.extenders(host, "httpTimeout") for host in THREE}
        return {host: found[0] if found and len(found) == 1 else None for host, found in said.items()}

    def all_ask(self, expected: list[str], timeout_s: float = 120.0) -> bool:
        """Whether each of the three comes to ask these, and nobody else."""

        def look() -> bool:
            return all(self.extenders(host) == expected for host in THREE)

        return bool(wait_for(look, timeout_s=timeout_s))

    def missing_files(self, host: str) -> list[str]:
        """Of ours that the manifest in place, or kubeadm's ClusterConfiguration, names and this host has not."""
        named = set(re.findall(r"/etc/kubernetes/readygate/[^\s\"']+\.yaml", self.manifest(host) + self.cluster()))
        return [path for path in sorted(named) if self._hosts.ssh(host, ["test", "-e", path], check=False).returncode]

    def cluster(self) -> str:
        """kubeadm's ClusterConfiguration."""
        return str(self._api.get(KUBEADM_CONFIG)["data"]["ClusterConfiguration"])

    def change_cluster(self, **arguments: str) -> None:
        """Gives kube-scheduler more arguments in kubeadm's ClusterConfiguration, as by `kubectl edit`."""
        cluster: dict[str, Any] = yaml.safe_load(self.cluster())
        scheduler = cluster.setdefault("scheduler", {}) or {}
        more = [{"name": name, "value": value} for name, value in arguments.items()]
        scheduler["extraArgs"] = [*(scheduler.get("extraArgs") or []), *more]
        patch = {"data": {"ClusterConfiguration": yaml.safe_dump({**cluster, "scheduler": scheduler})}}
        self._hosts.kubectl(
            "patch",
            "configmap",
            "kubeadm-config",
            "--namespace=kube-system",
            "--type=merge",
            f"--patch={json.dumps(patch)}",
        )

    def give(self, section: dict[str, Any], hosts: Sequence[str] = THREE) -> None:
        """What kubeadm's ClusterConfiguration has for the scheduler, and the manifests that kubeadm makes of it."""
        text = yaml.safe_dump({**yaml.safe_load(self.cluster()), "scheduler": section})
        self._api.patch(KUBEADM_CONFIG, {"data": {"ClusterConfiguration": text}})
        for host in hosts:
            self._hosts.ssh(host, "kubeadm init phase control-plane scheduler --config=/dev/stdin", stdin=text)

    def leader(self) -> str:
        """The host whose scheduler schedules."""
        lease = self._api.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler")
        return str(lease["spec"]["holderIdentity"]).rpartition("_")[0]
