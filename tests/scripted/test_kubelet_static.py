"""Mode `kubelet` over the CRI as a whole, with static pods, beside an API server that comes late or not at all."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent import settings
from agent.modes import kubelet as kubelet_mode
from component import lifecycle
from component.lifecycle import Service
from kube.auth import Connection, NoToken
from tests.agent.wire.manifests import as_bytes, manifest
from tools.fakes.api_server import FakeApiServer
from tools.fakes.cri import Runtime
from tools.kit.ports import free_port
from tools.kit.waiting import wait_until

READY = {"conditions": [{"type": kind, "status": True} for kind in ("RuntimeReady", "NetworkReady")]}
PATIENT_S = 60.0
CONTAINERS = [{"name": "c", "image": "i", "imagePullPolicy": "Never", "command": ["x"]}]


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    made = Runtime(tmp_path)
    made.store.write({**made.store.read(), "images": ["i"]})
    made.says(**{"*": "do"}, Status={"status": READY}, ListImages={}, GetContainerEvents=[])
    made.start()
    yield made
    made.process.kill()


Start = Callable[[Connection], list[Service]]


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    folder = tmp_path / "manifests"
    folder.mkdir()
    return folder


@pytest.fixture
def start(runtime: Runtime, manifests: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts an agent, and stops what still runs."""
    cri = f"{{address: 192.0.2.7, socket: {runtime.socket}, kubeletHealthz: null, requestTimeoutSeconds: 1}}"
    started: list[list[Service]] = []

    def begin(connection: Connection) -> list[Service]:
        text = f"""
mode: kubelet
listen: {{address: 127.0.0.1, port: {free_port()}}}
kubelet: {{nodeName: node-1, rootDir: {tmp_path / "run"}, cri: {cri}, staticPodPath: {manifests}}}
"""
        services = kubelet_mode.assemble(settings.parse(text.encode(), {}), connection)
        lifecycle.start_all(services)
        started.append(services)
        return services

    yield begin
    for services in started:
        lifecycle.stop_all(services)


def containers(runtime: Runtime) -> list[str]:
    """Ids of those that run, and of those that ran."""
    return sorted(runtime.store.read()["containers"])


def phase(api: FakeApiServer) -> str:
    mirror: dict[str, Any] = api.get("Pod", "web-node-1") or {}
    return str(mirror.get("status", {}).get("phase", ""))


def test_sp30_a_static_pod_runs_without_an_api_server(runtime: Runtime, manifests: Path, start: Start) -> None:
    (manifests / "web.json").write_bytes(as_bytes(manifest(containers=CONTAINERS)))
    start(Connection(f"http://127.0.0.1:{free_port()}", None, NoToken()))
    wait_until(lambda: len(containers(runtime)) == 1, "it runs", timeout_s=PATIENT_S)
    (manifests / "web.json").unlink()
    wait_until(lambda: not containers(runtime), "its file is gone, so it ends", timeout_s=PATIENT_S)


def test_sp36_a_restart_of_the_agent_keeps_it(runtime: Runtime, manifests: Path, start: Start) -> None:
    (manifests / "web.json").write_bytes(as_bytes(manifest(containers=CONTAINERS)))
    with FakeApiServer() as api:
        services = start(api.connection())
        wait_until(
            lambda: phase(api) == "Running", lambda: json.dumps(api.get("Pod", "web-node-1")), timeout_s=PATIENT_S
        )
        before, mirror = containers(runtime), api.get("Pod", "web-node-1")
        assert mirror is not None
        lifecycle.stop_all(services)
        api.delete("Pod", "web-node-1")
        start(api.connection())
        wait_until(
            lambda: phase(api) == "Running", lambda: json.dumps(api.get("Pod", "web-node-1")), timeout_s=PATIENT_S
        )
        again = api.get("Pod", "web-node-1")
        assert again is not None
        hashes = [one["metadata"]["annotations"]["kubernetes.io/config.mirror"] for one in (mirror, again)]
        assert hashes[0] == hashes[1]
        assert before == containers(runtime)
