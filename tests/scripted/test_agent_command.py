"""The agent as a process in mode `pod`: its start, its pages, its condition, its end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.fakes.api_server import FakeApiServer

TYPE = "readygate.dev/NodeHealthy"
POD = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "health", "namespace": "ns", "uid": "uid-1"}}


class Agent:
    """A folder with a CNI that works, and the command on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.conflist = folder / "net.d" / "10.conflist"
        (folder / "net.d").mkdir()
        (folder / "bin").mkdir()
        (folder / "bin" / "bridge").touch(0o755)
        self.heal()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
        cni = {"confDir": str(folder / "net.d"), "binDirs": [str(folder / "bin")]}
        self.settings: dict[str, object] = {
            "mode": "pod",
            "listen": {"address": "127.0.0.1", "port": self.port},
            "checks": [{"name": "cni", "cni": cni, "periodSeconds": 1, "failureThreshold": 1}],
        }
        self.process: subprocess.Popen[str] | None = None

    def heal(self) -> None:
        self.conflist.write_text('{"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "bridge"}]}')

    def write(self) -> str:
        file = self.folder / "agent.yaml"
        file.write_text(yaml.safe_dump(self.settings))
        return str(file)

    def start(self, **environ: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agent", "--config", self.write()],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environ},
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "agent", *arguments], capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stderr or done.stdout

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()
        except OSError as e:
            return 0, str(e)

    def wait(self, path: str, status: int, limit_s: float = 40.0) -> str:
        """The page, once it has that status."""
        deadline = time.monotonic() + limit_s
        while True:
            found, body = self.get(path)
            if found == status:
                return body
            assert time.monotonic() < deadline, f"{path} is {found}: {body}"
            time.sleep(0.03)

    def rss_mib(self) -> float:
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        assert self.process is not None
        self.process.send_signal(number)
        _, text = self.process.communicate(timeout=30)
        return self.process.returncode, text


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.kill()
        made.process.communicate()


def test_from_healthy_to_broken_and_back(agent: Agent) -> None:
    agent.start()
    assert agent.wait("/readyz", 200) == "ok\n"
    assert (200, "ok\n") == agent.get("/livez")
    agent.conflist.rename(agent.conflist.with_suffix(".away"))
    body = agent.wait("/readyz", 503)
    assert body.startswith("cni: failed since ")
    assert body.endswith(f": no network config found in {agent.folder}/net.d\n")
    assert (200, "ok\n") == agent.get("/livez"), "the agent's life does not depend on what it measures"
    agent.heal()
    agent.wait("/readyz", 200)
    metrics = agent.get("/metrics")[1]
    assert 'readygate_check_status{check="cni",state="passed"} 1' in metrics
    assert 'readygate_build_info{version="' in metrics
    assert agent.rss_mib() <= 64
    begun = time.monotonic()
    code, text = agent.end()
    assert (0, True) == (code, time.monotonic() - begun < 5)
    assert "Traceback" not in text


def test_the_condition_of_the_own_pod_follows(agent: Agent, tmp_path: Path) -> None:
    with FakeApiServer() as server:
        server.put(POD)
        kubeconfig = server.write_kubeconfig(tmp_path / "kubeconfig")
        agent.settings["kubernetes"] = {"kubeconfig": str(kubeconfig)}
        agent.settings["condition"] = {"publish": True, "podUID": "uid-1"}

        def condition() -> dict[str, str]:
            pod = server.get("Pod", "health", "ns") or {}
            found = [c for c in pod.get("status", {}).get("conditions", []) if c["type"] == TYPE]
            return found[0] if found else {}

        def wait_for(reason: str) -> dict[str, str]:
            server.wait(lambda: condition().get("reason") == reason, 40, reason)
            return condition()

        agent.start(POD_NAME="health", POD_NAMESPACE="ns")
        assert wait_for("ChecksPassed")["status"] == "True"
        agent.conflist.rename(agent.conflist.with_suffix(".away"))
        broken = wait_for("CheckFailed")
        assert broken["status"] == "False"
        assert "no network config found" in broken["message"]
        rss_mib = agent.rss_mib()
        assert agent.end()[0] == 0
        ended = condition()
        assert ("False", "Terminating") == (ended["status"], ended["reason"])
        assert ended["lastTransitionTime"] == broken["lastTransitionTime"]
        assert rss_mib <= 96, "with a kubeconfig the package kubernetes is loaded"
        bodies = [json.loads(request.body) for request in server.requests if request.method == "PATCH"]
        assert len(bodies) == 4, "one to learn what is there, and one for each change"


def test_a_missing_api_server_does_not_keep_the_checks_from_running(agent: Agent, tmp_path: Path) -> None:
    with FakeApiServer() as server:
        kubeconfig = server.write_kubeconfig(tmp_path / "kubeconfig")
    agent.settings["kubernetes"] = {"kubeconfig": str(kubeconfig)}
    agent.settings["condition"] = {"publish": True, "podName": "p", "podNamespace": "n", "podUID": "u"}
    agent.start()
    agent.wait("/readyz", 200)
    begun = time.monotonic()
    code, text = agent.end()
    assert (0, True) == (code, time.monotonic() - begun < 5)
    assert "Traceback" not in text


def test_ctrl_c_ends_with_130(agent: Agent) -> None:
    agent.start()
    agent.wait("/livez", 200)
    assert agent.end(signal.SIGINT)[0] == 130


def test_check_validates_only(agent: Agent) -> None:
    file = agent.write()
    assert (0, f"{file}: valid, mode pod\n") == agent.run("--config", file, "--check")


def test_what_a_user_may_get_wrong_is_one_line(agent: Agent, tmp_path: Path) -> None:
    agent.settings["moode"] = "pod"
    file = agent.write()
    keys = "checks, condition, kubelet, kubernetes, listen, log, mode"
    assert (2, f"readygate-agent: {file}: moode: unknown key; allowed: {keys}\n") == agent.run("--config", file)
    del agent.settings["moode"]
    agent.settings["condition"] = {"publish": True, "podName": "p", "podNamespace": "n", "podUID": "u"}
    agent.settings["kubernetes"] = {"kubeconfig": str(tmp_path / "none")}
    code, text = agent.run("--config", agent.write())
    assert (2, 1) == (code, len(text.splitlines())), text
    del agent.settings["condition"]
    with socket.create_server(("127.0.0.1", agent.port)):
        code, text = agent.run("--config", agent.write())
    assert (1, 1) == (code, len(text.splitlines())), text
    assert "the address is in use; stop the other process or choose another listen.port" in text
