"""A node that is closed for new pods and open again, seen from outside: by where kube-scheduler places pods."""

import json
from typing import Any

from tests.hosts.deployment.api import AdminApi
from tests.hosts.deployment.probing import PODS, pod, told
from tests.hosts.waiting import wait_until
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.hosts.images import PAUSE
from tools.testbed.hosts.layers import CNI_BIN_DIR

# A fault that the kubelet of the node does not report: pods could not get a network any more.
INJECT, HEAL = f"chmod -x {CNI_BIN_DIR}/bridge", f"chmod +x {CNI_BIN_DIR}/bridge"


def decision(hosts: Hosts, node: str) -> dict[str, Any]:
    """What the status API of the extender shows of the first gate and the node."""
    shown = hosts.ssh("control-1", f"curl --silent --fail http://127.0.0.1:9377/api/v1/nodes/{node}", check=False)
    return dict(json.loads(shown.stdout)["node"]["gates"][0]) if shown.stdout else {}


def wait_decided(hosts: Hosts, node: str, **wanted: Any) -> dict[str, Any]:
    """Waits until the decision has these values. Returns the decision."""
    seen: dict[str, Any] = {}

    def is_decided() -> bool:
        seen.clear()
        seen.update(decision(hosts, node))
        return wanted.items() <= seen.items()

    wait_until(is_decided, lambda: f"{wanted} on {node}: {seen}")
    return seen


def send(api: AdminApi, name: str, node: str | None) -> None:
    """node: the only one that the pod may go to, None: any worker."""
    api.create(PODS, pod(name, node, PAUSE))


def node_of(api: AdminApi, name: str) -> str:
    return str(api.get(f"{PODS}/{name}")["spec"].get("nodeName", ""))


def wait_placed(api: AdminApi, name: str, node: str) -> None:
    wait_until(lambda: node_of(api, name) == node, lambda: f"{name} on {node}: {told(api, name)}")


def wait_refused(api: AdminApi, name: str, reason: str) -> None:
    """Waits until kube-scheduler has written this reason on the pod."""
    wait_until(lambda: reason in told(api, name), lambda: f"{name}: {told(api, name)}")
    assert node_of(api, name) == ""
