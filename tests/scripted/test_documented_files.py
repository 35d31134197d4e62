"""Each file of docs/configuration.md for the agent starts it, with nothing changed but what is of a machine."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.scripted.test_kubelet_cri import READY, pod
from tests.scripted.tls import make_authority
from tests.test_docs import YAML_FILES
from tools.fakes.api_server import FakeApiServer
from tools.fakes.cri import Runtime
from tools.fakes.kubelet_healthz import answering
from tools.kit.ports import free_port
from tools.kit.programs import Program
from tools.kit.waiting import wait_until

PATIENT_S = 60.0
NODE_1: dict[str, Any] = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "worker-1", "uid": "node-uid"}}
READY_POD: dict[str, Any] = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {
        "name": "readygate-agent-x",
        "namespace": "readygate-system",
        "uid": "uid-1",
        "labels": {"app.kubernetes.io/name": "readygate-agent"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "readygate-agent", "uid": "d"}],
    },
    "spec": {"nodeName": "worker-1", "containers": [{"name": "agent"}]},
    "status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {"name": "agent", "ready": True, "started": True, "containerID": "containerd://1"}
            | {"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
        ],
    },
}


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Any]:
    """Starts a documented file, with these texts in the place of others, each of which must be there."""
    programs: list[Program] = []

    def start(name: str, of_a_machine: Mapping[str, object]) -> Program:
        text = YAML_FILES[name]
        for documented, here in of_a_machine.items():
            assert documented in text
            text = text.replace(documented, str(here))
        settings = yaml.safe_load(text)
        settings.setdefault("listen", {"address": "127.0.0.1", "port": free_port()})
        programs.append(Program("agent", settings, tmp_path))
        programs[-1].start()
        return programs[-1]

    yield start
    for program in programs:
        program.process.kill()


@pytest.fixture
def kubelet_healthz() -> Iterator[str]:
    with answering() as url:
        yield url


def ends_well(program: Program) -> bool:
    return (0, False) == (program.process.stop(grace_s=30), "Traceback" in program.process.text())


def test_mode_pod(started: Any, tmp_path: Path) -> None:
    (tmp_path / "net.d").mkdir()
    (tmp_path / "bin").mkdir()
    for name in ("bridge", "loopback"):
        (tmp_path / "bin" / name).touch(0o755)
    network = '{"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "bridge"}]}'
    (tmp_path / "net.d" / "10.conflist").write_text(network)
    here = {"/etc/cni/net.d": tmp_path / "net.d", "/opt/cni/bin": tmp_path / "bin", "9375": free_port()}
    program = started("agent.yaml", here)
    assert "ok\n" == program.wait_page("/readyz", 200)
    assert ends_well(program)


def test_mode_node(started: Any, tmp_path: Path, kubelet_healthz: str) -> None:
    (tmp_path / "tls").mkdir()
    authority = make_authority(tmp_path / "tls")
    own = tmp_path / "kubelet-client-current.pem"
    own.write_text("".join((authority.folder / f"client.{part}").read_text() for part in ("crt", "key")))
    with FakeApiServer(tls=authority.server_context(ask_for_client=True)) as api:
        api.put(NODE_1)
        api.put(READY_POD)
        here = {"https://192.0.2.10:6443": api.url, "/etc/kubernetes/pki/ca.crt": authority.folder / "ca.crt"}
        here |= {"/var/lib/kubelet/pki/kubelet-client-current.pem": own, "9374": free_port()}
        here |= {"http://127.0.0.1:10248/healthz": kubelet_healthz}
        program = started("node.yaml", here)
        program.wait_page("/readyz", 200)
        assert ends_well(program)


def wait_for_a_pod(program: Program, api: FakeApiServer) -> None:
    """Until it runs, and its node is there."""

    def phase() -> str:
        return str((api.get("Pod", "p") or {}).get("status", {}).get("phase", ""))

    wait_until(lambda: phase() == "Running", program.process.text, timeout_s=PATIENT_S)
    wait_until(lambda: bool(api.objects("Node")), program.process.text, timeout_s=PATIENT_S)


def test_mode_kubelet(started: Any, tmp_path: Path) -> None:
    with FakeApiServer() as api:
        here = {"/etc/kubernetes/node-1.conf": api.write_kubeconfig(tmp_path / "kubeconfig")}
        here |= {"/run/readygate/node-1": tmp_path / "run", "127.20.1.0/24": "127.22.5.0/24"}
        program = started("kubelet.yaml", here)
        api.put({**pod("p"), "spec": {"nodeName": "node-1", "containers": [{"name": "c"}]}})
        wait_for_a_pod(program, api)
        assert ends_well(program)


def test_mode_kubelet_over_the_cri(started: Any, tmp_path: Path) -> None:
    runtime = Runtime(tmp_path)
    runtime.store.write({**runtime.store.read(), "images": ["i"]})
    runtime.says(**{"*": "do"}, Status={"status": READY}, ListImages={}, GetContainerEvents=[])
    runtime.start()
    try:
        with FakeApiServer() as api:
            here = {"/etc/kubernetes/node-1.conf": api.write_kubeconfig(tmp_path / "kubeconfig")}
            here |= {"/var/lib/readygate": tmp_path / "run", "/run/containerd/containerd.sock": runtime.socket}
            here |= {"http://127.0.0.1:10248/healthz": f"http://127.0.0.1:{free_port()}/healthz"}
            program = started("kubelet-cri.yaml", here)
            api.put(pod("p"))
            wait_for_a_pod(program, api)
            assert ends_well(program)
    finally:
        runtime.process.kill()
