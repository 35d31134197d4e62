"""The clock of a machine is set by an hour, forth and back, while its agent runs in mode `pod` or `node`: whole
processes. Checks go on at their pace, what they find is told at once, and nothing that was known is lost."""

import json
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.scripted.test_node_mode import NODE, OFTEN, TOKEN, Node
from tests.scripted.tls import make_authority
from tools.fakes.api_server import FakeApiServer
from tools.fakes.kubelet_healthz import answering
from tools.kit.ports import free_port
from tools.kit.programs import Program
from tools.kit.stepped import Stepped
from tools.kit.waiting import wait_until

HOUR_S = 3600.0
STEPS = (HOUR_S, 0.0, -HOUR_S, 0.0)
PATIENT_S = 60.0
TYPE = "readygate.dev/NodeHealthy"
POD = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "health", "namespace": "ns", "uid": "uid-1"}}


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer() as api:
        yield api


@pytest.fixture
def clock(tmp_path: Path) -> Stepped:
    return Stepped(tmp_path / "clock")


def checks(agent: Program) -> dict[str, dict[str, object]]:
    return {check["name"]: check for check in json.loads(agent.get("/checks")[1])["checks"]}


def condition(api: FakeApiServer, name: str, namespace: str) -> dict[str, str]:
    pod = api.get("Pod", name, namespace) or {}
    return next((c for c in pod.get("status", {}).get("conditions", []) if c["type"] == TYPE), {})


def test_in_mode_pod(api: FakeApiServer, clock: Stepped, tmp_path: Path) -> None:
    fit = tmp_path / "fit"
    fit.touch()
    api.put(POD)
    steady = {"name": "steady", "exec": {"command": ["true"]}, "periodSeconds": 1}
    turns = {"name": "turns", "exec": {"command": ["test", "-e", str(fit)]}, "periodSeconds": 1, "failureThreshold": 1}
    settings = {
        "mode": "pod",
        "listen": {"address": "127.0.0.1", "port": free_port()},
        "kubernetes": {"kubeconfig": str(api.write_kubeconfig(tmp_path / "kubeconfig"))},
        "condition": {"publish": True, "podUID": "uid-1"},
        "stateFile": str(tmp_path / "checks.json"),
        "checks": [steady, turns],
    }
    agent = Program("agent", settings, tmp_path, environ=clock.environ)

    def says(status: str) -> None:
        wait_until(
            lambda: condition(api, "health", "ns").get("status") == status,
            lambda: f"{status}: {condition(api, 'health', 'ns')} {agent.process.text()[-2000:]}",
            timeout_s=PATIENT_S,
        )

    agent.start(POD_NAME="health", POD_NAMESPACE="ns")
    try:
        agent.wait_page("/readyz", 200)
        says("True")
        for ahead_s in STEPS:
            writes = len([r for r in api.requests if r.method == "PATCH"])
            clock.ahead(ahead_s)
            fit.unlink()
            agent.wait_page("/readyz", 503)
            says("False")
            fit.touch()
            agent.wait_page("/readyz", 200)
            says("True")
            assert 200 == agent.get("/livez")[0], ahead_s
            assert "passed" == checks(agent)["steady"]["state"], "what passes is not stale for a clock that was set"
            # A change is a write, or two where it is looked first; the ration makes none of it wait for an hour.
            assert len([r for r in api.requests if r.method == "PATCH"]) - writes <= 8, ahead_s
        begun = time.monotonic()
        code, text = agent.process.stop(grace_s=30), agent.process.text()
        assert (0, False, True) == (code, "Traceback" in text, time.monotonic() - begun < PATIENT_S)
        clock.ahead(-HOUR_S)  # and while nobody is there
        agent.start(POD_NAME="health", POD_NAMESPACE="ns")
        agent.wait_page("/readyz", 200)
    finally:
        agent.process.kill()


class Beating(Node):
    """One that renews a Lease, too."""

    def settings(self, named: Mapping[str, Collection[str]], checks: Collection[str]) -> dict[str, Any]:
        settings = super().settings(named, checks)
        settings["node"]["heartbeat"] = {"periodSeconds": 1}
        return settings


def test_in_mode_node(clock: Stepped, tmp_path: Path) -> None:
    (tmp_path / "tls").mkdir()
    authority = make_authority(tmp_path / "tls")
    with answering() as kubelet, FakeApiServer(tls=authority.server_context()) as api:
        api.put({"kind": "Node", "apiVersion": "v1", "metadata": {"name": NODE, "uid": "node-uid"}})
        api.answer_next(201, body=TOKEN, method="POST", path="/token", times=OFTEN)
        node = Beating(tmp_path, api, authority.folder, kubelet)
        node.agent = Program("agent", {}, tmp_path, environ=clock.environ)

        def renewed() -> object:
            return (api.get("Lease", NODE, "ns") or {}).get("spec", {}).get("renewTime")

        try:
            node.start({"base": ()}, ("disk",))
            node.wait({"base": "True"})
            for ahead_s in STEPS:
                clock.ahead(ahead_s)
                before, beats = len(node.api.requests), renewed()
                (tmp_path / "disk").unlink()
                node.wait({"base": "False"})
                (tmp_path / "disk").touch()
                node.wait({"base": "True"})
                wait_until(lambda was=beats: renewed() != was, "its heartbeat goes on", timeout_s=PATIENT_S)
                assert 200 == node.agent.get("/livez")[0], ahead_s
                asked = [f"{r.method} {r.path}" for r in node.api.requests[before:]]
                assert len([one for one in asked if "leases" not in one]) <= 60, (ahead_s, asked)
            assert (0, False) == (node.agent.process.stop(grace_s=30), "Traceback" in node.agent.process.text())
        finally:
            node.agent.process.kill()
