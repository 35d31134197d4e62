"""Mode `kubelet` over the CRI as a whole, beside a runtime that is away while a pod is begun."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent import settings
from agent.modes import kubelet as kubelet_mode
from component import lifecycle
from tools.fakes.api_server import FakeApiServer
from tools.fakes.cri import Runtime
from tools.kit.ports import free_port
from tools.kit.waiting import wait_until

READY = {"conditions": [{"type": kind, "status": True} for kind in ("RuntimeReady", "NetworkReady")]}
PATIENT_S = 60.0


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    made = Runtime(tmp_path)
    made.store.write({**made.store.read(), "images": ["i"]})
    made.says(**{"*": "do"}, Status={"status": READY}, ListImages={}, GetContainerEvents=[])
    made.start()
    yield made
    made.process.kill()


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer() as api:
        yield api


@pytest.fixture
def phase(api: FakeApiServer, runtime: Runtime, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Of a pod, by its name. The agent runs."""
    cri = f"{{address: 192.0.2.7, socket: {runtime.socket}, kubeletHealthz: null, requestTimeoutSeconds: 1}}"
    text = f"""
mode: kubelet
listen: {{address: 127.0.0.1, port: {free_port()}}}
kubelet: {{nodeName: node-1, rootDir: {tmp_path / "run"}, cri: {cri}}}
"""
    services = kubelet_mode.assemble(settings.parse(text.encode(), {}), api.connection())
    lifecycle.start_all(services)
    yield lambda name: (api.get("Pod", name) or {}).get("status", {}).get("phase", "")
    lifecycle.stop_all(services)


def pod(name: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "imagePullPolicy": "Never", "command": ["x"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1},
        "spec": {"nodeName": "node-1", "restartPolicy": "Always", "containers": [container]},
        "status": {"phase": "Pending"},
    }


@pytest.mark.parametrize("fault", ["garbage", "hang", "UNKNOWN:no such store"])
def test_pl48_a_pod_that_is_begun_while_the_runtime_is_away_runs_when_it_is_back(
    api: FakeApiServer, runtime: Runtime, phase: Callable[[str], str], fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    api.put(pod("before"))
    wait_until(lambda: phase("before") == "Running", lambda: phase("before"), timeout_s=PATIENT_S)
    runtime.says(ListPodSandbox=fault)
    api.put(pod("meanwhile"))
    said = "pod sandbox not made"
    wait_until(lambda: any(r.message == said for r in caplog.records), "it was tried", timeout_s=PATIENT_S)
    runtime.says(ListPodSandbox="do")
    wait_until(lambda: phase("meanwhile") == "Running", lambda: phase("meanwhile"), timeout_s=PATIENT_S)
    assert [] == [r.message for r in caplog.records if r.exc_info]
    assert "Running" == phase("before")


def test_pw14_a_pod_that_is_deleted_while_its_image_is_pulled_is_gone_at_once(
    api: FakeApiServer, runtime: Runtime, phase: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    runtime.says(PullImage="do, hang")
    made = pod("pulls")
    made["spec"]["containers"][0] |= {"image": "far", "imagePullPolicy": "Always"}
    api.put(made)
    wait_until(lambda: "PullImage far" in runtime.store.read()["calls"], timeout_s=PATIENT_S)
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    api.put({**made, "metadata": {**made["metadata"], **deleted}})
    wait_until(lambda: api.get("Pod", "pulls") is None, lambda: phase("pulls"), timeout_s=30.0)
    assert [] == [r.message for r in caplog.records if r.exc_info]
