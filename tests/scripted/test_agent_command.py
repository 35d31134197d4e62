"""The agent as a process in mode `pod`: its start, its pages, its condition, its end."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from agent.report.server import FROZEN_S, THAW_S
from tools.fakes.api_server import FakeApiServer
from tools.kit.pid import ProcessId, children
from tools.kit.ports import free_port
from tools.kit.programs import Program
from tools.kit.waiting import wait_until

TYPE = "readygate.dev/NodeHealthy"
POD = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "health", "namespace": "ns", "uid": "uid-1"}}


class Agent(Program):
    """A folder with a CNI that works, and the command on it."""

    def __init__(self, folder: Path) -> None:
        self.conflist = folder / "net.d" / "10.conflist"
        (folder / "net.d").mkdir()
        (folder / "bin").mkdir()
        for name in ("bridge", "loopback"):
            (folder / "bin" / name).touch(0o755)
        self.heal()
        cni = {"confDir": str(folder / "net.d"), "binDirs": [str(folder / "bin")]}
        settings = {
            "mode": "pod",
            "listen": {"address": "127.0.0.1", "port": free_port()},
            "checks": [{"name": "cni", "cni": cni, "periodSeconds": 1, "failureThreshold": 1}],
        }
        super().__init__("agent", settings, folder)

    def heal(self) -> None:
        self.conflist.write_text('{"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "bridge"}]}')

    def run(self, *arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "agent", *arguments], capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stderr or done.stdout

    def rss_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def end(self, number: int = signal.SIGTERM) -> tuple[int | None, str]:
        return self.process.stop(number=number, grace_s=30), self.process.text()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path)
    yield made
    made.process.kill()


def test_from_healthy_to_broken_and_back(agent: Agent) -> None:
    agent.start()
    assert agent.wait_page("/readyz", 200) == "ok\n"
    assert (200, "ok\n") == agent.get("/livez")
    agent.conflist.rename(agent.conflist.with_suffix(".away"))
    body = agent.wait_page("/readyz", 503)
    assert body.startswith("cni: failed since ")
    assert body.endswith(f": no network config found in {agent.folder}/net.d\n")
    assert (200, "ok\n") == agent.get("/livez"), "the agent's life does not depend on what it measures"
    agent.heal()
    agent.wait_page("/readyz", 200)
    metrics = agent.get("/metrics")[1]
    assert 'readygate_check_status{check="cni",state="passed"} 1' in metrics
    assert 'readygate_build_info{version="' in metrics
    assert agent.rss_mib() <= 64
    begun = time.monotonic()
    code, text = agent.end()
    assert (0, True) == (code, time.monotonic() - begun < 15), "a busy machine takes longer than the second of a stop"
    assert "Traceback" not in text


def test_a_configuration_that_changes_is_taken_without_a_restart(agent: Agent) -> None:
    def checks() -> dict[str, dict[str, object]]:
        return {check["name"]: check for check in json.loads(agent.get("/checks")[1])["checks"]}

    def write(*names: str, more: str = "") -> None:
        of = {"cni": agent.settings["checks"][0], "bare": {"name": "bare", "cni": {"confDir": "/nowhere"}}}
        beside = agent.config.with_suffix(".new")
        beside.write_text(json.dumps({**agent.settings, "checks": [of[name] for name in names]}) + more)
        beside.rename(agent.config)

    agent.start()
    agent.wait_page("/readyz", 200)
    since = checks()["cni"]["since"]
    write("cni", "bare")
    assert "bare: failed" in agent.wait_page("/readyz", 503)
    write("cni", more="}")
    wait_until(lambda: "configuration refused, the old one stays in force" in agent.process.text(), timeout_s=30)
    assert ["cni", "bare"] == list(checks())
    write("cni")
    agent.process.signal(signal.SIGHUP)
    agent.wait_page("/readyz", 200)
    assert {"cni": since} == {name: check["since"] for name, check in checks().items()}
    assert 200 == agent.get("/livez")[0]
    code, text = agent.end()
    assert (0, False, 1) == (code, "Traceback" in text, text.count("configuration refused"))


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
    agent.wait_page("/readyz", 200)
    begun = time.monotonic()
    code, text = agent.end()
    assert (0, True) == (code, time.monotonic() - begun < 15), "a busy machine takes longer than the second of a stop"
    assert "Traceback" not in text


def test_a_killed_agent_is_ready_at_its_first_answer_whatever_its_checks_would_need_anew(agent: Agent) -> None:
    (check,) = agent.settings["checks"]
    agent.settings["checks"] = [{**check, "successThreshold": 3}]
    states = agent.folder / "states" / "checks.json"
    states.parent.mkdir()
    agent.settings["stateFile"] = str(states)
    agent.start()
    agent.wait_page("/readyz", 200)
    wait_until(
        lambda: states.exists() and '"passed"' in states.read_text(), "it is kept soon after it is shown", timeout_s=30
    )
    for _ in range(4):
        agent.process.kill()
        agent.start()
        pages = []
        wait_until(lambda: pages.append(agent.get("/readyz")[0]) or pages[-1] != 0, "the agent answers", timeout_s=30)  # noqa: B023
        assert 200 == pages[-1]
    assert agent.end()[0] == 0


def test_a_frozen_agent_that_is_woken_pauses_for_its_checks_before_it_answers(agent: Agent) -> None:
    """The question was there before it woke, as a probe of the kubelet's may be."""
    agent.start()
    agent.wait_page("/readyz", 200)
    assert agent.process.pid is not None
    frozen = [found for pid in (agent.process.pid, *children(agent.process.pid)) if (found := ProcessId.of(pid))]
    try:
        for process in frozen:
            process.signal(signal.SIGSTOP)
        agent.conflist.rename(agent.conflist.with_suffix(".away"))
        time.sleep(FROZEN_S + 0.5)
        with socket.create_connection(("127.0.0.1", agent.port), timeout=10) as waiting:
            waiting.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            woken_at = time.monotonic()
            for process in frozen:
                process.signal(signal.SIGCONT)
            answer = b"".join(iter(lambda: waiting.recv(1000), b"")).decode()
            waited_s = time.monotonic() - woken_at
    finally:
        for process in frozen:
            process.signal(signal.SIGCONT)
    # A busy machine may keep the check from running in that time.
    assert answer.startswith("HTTP/1.1 503 ") or waited_s >= THAW_S
    assert "cni: failed since " in agent.wait_page("/readyz", 503)


def test_ctrl_c_ends_with_130(agent: Agent) -> None:
    agent.start()
    agent.wait_page("/livez", 200)
    assert agent.end(signal.SIGINT)[0] == 130


def test_check_validates_only(agent: Agent) -> None:
    file = str(agent.write())
    assert (0, f"{file}: valid, mode pod\n") == agent.run("--config", file, "--check")


@pytest.mark.parametrize(
    ("where", "expected", "said"),
    [
        pytest.param(
            "> /dev/full",
            1,
            "readygate-agent: cannot write to standard output: No space left on device; give it room\n",
            id="a full disk",
        ),
        pytest.param(">&-", 0, "", id="nobody wants it"),
        pytest.param("| true; exit ${PIPESTATUS[0]}", 1, "", id="a reader that is gone"),
    ],
)
def test_a_page_that_cannot_be_written_is_told_in_a_line(agent: Agent, where: str, expected: int, said: str) -> None:
    script = f'"$0" -m agent --config "$1" --once {where}'
    ran = subprocess.run(
        ["bash", "-c", script, sys.executable, str(agent.write())],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (expected, said) == (ran.returncode, ran.stderr)


@pytest.mark.parametrize("module", ["agent", "cli", "extender", "extender.web"])
def test_each_program_tells_its_version(module: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", module, "--version"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (0, version("readygate")) == (ran.returncode, ran.stdout.split()[-1])


def test_what_a_user_may_get_wrong_is_one_line(agent: Agent, tmp_path: Path) -> None:
    agent.settings["moode"] = "pod"
    file = str(agent.write())
    keys = "mode, listen, log, kubernetes, profile, checks, stateFile, condition, kubelet, node"
    assert (2, f"readygate-agent: {file}: line 20: moode: unknown key, allowed: {keys}\n") == agent.run(
        "--config", file
    )
    del agent.settings["moode"]
    agent.settings["condition"] = {"publish": True, "podName": "p", "podNamespace": "n", "podUID": "u"}
    agent.settings["kubernetes"] = {"kubeconfig": str(tmp_path / "none")}
    code, text = agent.run("--config", str(agent.write()))
    assert (2, 1) == (code, len(text.splitlines())), text
    del agent.settings["condition"]
    with socket.create_server(("127.0.0.1", agent.port)):
        code, text = agent.run("--config", str(agent.write()))
    assert (1, 1) == (code, len(text.splitlines())), text
    assert "the address is in use; stop the other process or choose another listen.port" in text
