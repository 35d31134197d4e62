"""Virtual nodes, full and light, before a fake API server."""

import time
from pathlib import Path
from typing import Any

from agent.modes.kubelet import semantics_of
from agent.modes.node_facts import node_facts
from kube.client import Client
from tools.fakes.api_server import FakeApiServer
from tools.fleet.full import FullNode, settings_of
from tools.fleet.light import Acting, LightNodes
from tools.kit.waiting import wait_until

PATIENT_S = 60.0
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default", "uid": "u", "generation": 1},
    "spec": {
        "nodeName": "virtual-1",
        "restartPolicy": "Always",
        "containers": [{"name": "a", "image": "i", "readinessProbe": {"exec": {"command": ["x"]}, "periodSeconds": 1}}],
    },
    "status": {"phase": "Pending"},
}


def conditions(thing: Any) -> dict[str, str]:
    found = ((thing or {}).get("status") or {}).get("conditions") or []
    return {one["type"]: one["status"] for one in found}


def test_a_full_node_runs_a_pod_and_stops(tmp_path: Path) -> None:
    given = settings_of("virtual-1", 1, tmp_path, duration_s=40, update_s=10)
    with FakeApiServer() as api:
        node = FullNode(given, 1, api.connection())
        node.start()
        try:
            wait_until(lambda: node.ready, "it registers", timeout_s=PATIENT_S)
            api.put(POD)
            wait_until(
                lambda: conditions(api.get("Pod", "web")).get("Ready") == "True",
                lambda: api.get("Pod", "web"),
                timeout_s=PATIENT_S,
            )
            pod, registered = api.get("Pod", "web"), api.get("Node", "virtual-1")
            assert pod is not None
            assert registered is not None
            assert pod["status"]["podIP"] == "10.64.1.2"
            assert registered["spec"]["podCIDR"] == "10.64.1.0/24"
            api.delete("Pod", "web")
            wait_until(lambda: node.services and not _running(node), "its container ends", timeout_s=PATIENT_S)
        finally:
            node.stop()


def _running(node: FullNode) -> list[object]:
    (runtime,) = [one for one in node.services if one.name == "virtual runtime"]
    return [one for pod in runtime.list_pods() for one in pod.running]  # type: ignore[attr-defined]


def test_light_nodes_register_and_renew_their_leases_each_with_its_token(tmp_path: Path) -> None:
    given = settings_of("facts", 0, tmp_path, duration_s=4, update_s=1).kubelet
    assert given is not None
    acting = Acting()
    with FakeApiServer() as api:
        connection = api.connection()
        client = Client(type(connection)(connection.server, connection.ssl_context, acting), user_agent="test")
        facts = node_facts(given, "", semantics_of(given))
        nodes = LightNodes(client, acting, facts, duration_s=4, update_s=1.0)
        for number in range(3):
            nodes.add(f"virtual-{number}", f"token-{number}", f"10.64.{number}.1", time.monotonic())
        nodes.start()
        try:
            wait_until(lambda: nodes.ready == 3, "they register", timeout_s=PATIENT_S)
            wait_until(lambda: nodes.snapshot().lease.total() > 6, "they renew", timeout_s=PATIENT_S)
        finally:
            nodes.stop()
        counts = nodes.snapshot()
        for number in range(3):
            assert conditions(api.get("Node", f"virtual-{number}"))["Ready"] == "True"
        used = {(r.path.rpartition("/")[2], r.headers.get("Authorization")) for r in api.requests if r.method == "PUT"}
    assert used == {(f"virtual-{number}", f"Bearer token-{number}") for number in range(3)}
    assert counts.requests["POST node"] == 3
    assert not [cause for cause in counts.failures if cause.startswith("turn")]
