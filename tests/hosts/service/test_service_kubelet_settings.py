"""What the play reads of a real kubelet that has a folder of files over its configuration is what that kubelet says of
itself; and where kube-proxy is, also while it stands still."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.hosts.service.conftest import Service
from tests.hosts.service.node_mode import Node
from tests.hosts.waiting import wait_until
from tests.playbooks.test_node_plugin_look import LOOK
from tools.faults.registry import FAULTS
from tools.testbed.shared.api import ApiError

FOLDER, FLAGS = "/etc/kubernetes/readygate-test.d", "/etc/default/kubelet"
KIND = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
FILES: dict[str, dict[str, Any]] = {
    "10-lists.conf": {"clusterDNS": ["169.254.20.10", "10.96.0.10"], "clusterDomain": "ten.example"},
    "20/a.conf": {"clusterDomain": "folder.example", "healthzPort": 10348},
    "20.conf": {"clusterDomain": "twenty.example", "healthzBindAddress": "0.0.0.0"},
    "30-domain.conf": {"clusterDomain": None},
    "90-no-part-of-it.yaml": {"clusterDomain": "never.example"},
}
HEALTH = "http://127.0.0.1:10348/healthz"
WORDS = "sh -s /opt/readygate/node readygate-node.service /etc/kubernetes/kubelet.conf '' '' none"


def look(node: Node) -> dict[str, str]:
    told = node.hosts.ssh(node.name, WORDS, stdin=LOOK).stdout
    return dict(line.split("=", 1) for line in told.splitlines())


def configured(node: Node) -> dict[str, Any]:
    """What the kubelet says, or nothing yet."""
    try:
        return dict(node.api.get(f"/api/v1/nodes/{node.name}/proxy/configz")["kubeletconfig"])
    except (ApiError, OSError, KeyError, ValueError):
        return {}


@contextmanager
def files_over_its_own(node: Node) -> Iterator[None]:
    lines = [f"mkdir -p {FOLDER}/20", f"[ ! -e {FLAGS} ] || cp {FLAGS} {FLAGS}.before"]
    lines += [f"echo {shlex.quote(json.dumps(KIND | given))} > {FOLDER}/{name}" for name, given in FILES.items()]
    lines += [f"echo 'KUBELET_EXTRA_ARGS=--config-dir={FOLDER}' > {FLAGS}", "systemctl restart kubelet"]
    try:
        node.ssh("; ".join(lines))
        yield
    finally:
        back = f"rm -rf {FOLDER} {FLAGS}; [ ! -e {FLAGS}.before ] || mv {FLAGS}.before {FLAGS}"
        node.ssh(f"{back}; systemctl restart kubelet")
        wait_until(lambda: configured(node).get("healthzPort") == 10248, "it is as it was")


def test_the_kubelets_settings_are_read_as_the_kubelet_merges_them(service: Service) -> None:
    node = service.nodes[0]
    with files_over_its_own(node):
        wait_until(lambda: configured(node).get("healthzPort") == 10348, "it has read them")
        said, seen = configured(node), look(node)
        well = node.ssh(f"curl --silent {seen['health']}")
    assert (",".join(said["clusterDNS"]), said.get("clusterDomain", "")) == (seen["dns"], seen["domain"])
    assert (HEALTH, "ok", "10348") == (seen["health"], well, str(said["healthzPort"]))
    assert said["containerRuntimeEndpoint"].removeprefix("unix://") == seen["runtime"]


def test_kube_proxy_is_found_also_while_it_stands_still(service: Service) -> None:
    node, fault = service.nodes[0], FAULTS["proxy-hangs"]
    try:
        node.ssh("\n".join(fault.inject))
        seen = look(node)
    finally:
        node.ssh("\n".join(fault.heal))
    assert "127.0.0.1" == seen["proxy"]
