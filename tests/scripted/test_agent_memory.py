"""With no more memory than it is deployed with (a control group's limit), the agent goes on whatever its node and those
that it asks do: nobody is ended for want of memory but a command that takes it all."""

import itertools
import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from tests.agent.probe.http_target import Call, Target
from tests.scripted.test_node_mode import CHECKS, NODE, OFTEN, TOKEN, Node
from tests.scripted.tls import make_authority
from tools.fakes.api_server import FakeApiServer
from tools.fakes.cri import Runtime
from tools.fakes.kubelet_healthz import answering
from tools.kit.limits import under
from tools.kit.memory import MemoryGroup, memory_group, peak_mib
from tools.kit.ports import free_port
from tools.kit.programs import Program
from tools.kit.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
PATIENT_S = 90.0
MIB = 2**20
ROOM = 0.75  # what we take of the limit at most: the rest is for commands, and for what the kernel keeps of files


def of_the_chart() -> int:
    values = yaml.safe_load((ROOT / "charts/readygate/values.yaml").read_text())
    found = re.fullmatch(r"(\d+)Mi", values["agent"]["resources"]["limits"]["memory"])
    assert found is not None
    return int(found[1])


def of_the_unit() -> int:
    defaults = yaml.safe_load((ROOT / "playbooks/roles/readygate_node/defaults/main.yml").read_text())
    found = re.fullmatch(r"(\d+)M", defaults["readygate_node_memory_max"])
    assert found is not None
    return int(found[1])


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="readygate-memory-") as made:
        yield Path(made)


def states(agent: Program) -> dict[str, str]:
    code, text = agent.get("/checks")
    return {check["name"]: check["state"] for check in json.loads(text)["checks"]} if code == 200 else {}


def waits_for(agent: Program, expected: dict[str, str]) -> None:
    wait_until(
        lambda: states(agent) == expected, lambda: f"{states(agent)}: {agent.process.text()}", timeout_s=PATIENT_S
    )


def runs(agent: Program, name: str) -> int:
    found = re.findall(rf'readygate_check_runs_total{{check="{name}",.*}} (\d+)', agent.get("/metrics")[1])
    return sum(map(int, found))


def in_mode_pod(folder: Path, group: MemoryGroup, checks: dict[str, dict[str, object]]) -> Program:
    often = {"periodSeconds": 1, "timeoutSeconds": 1, "failureThreshold": 1, "severity": "warn"}
    settings = {
        "mode": "pod",
        "listen": {"address": "127.0.0.1", "port": free_port()},
        "checks": [{"name": name, **often, **check} for name, check in checks.items()],
    }
    return Program("agent", settings, folder, launch=under(group.prefix))


def test_a_command_that_takes_all_memory_is_what_the_kernel_ends(folder: Path) -> None:
    checks: dict[str, dict[str, object]] = {f"c{n}": {"exec": {"command": ["true"]}} for n in range(5)}
    eats = {"command": ["sh", "-c", "x=x; while :; do x=$x$x; done"]}
    with memory_group(of_the_chart() * MIB) as group:
        agent = in_mode_pod(folder, group, {**checks, "eats": {"exec": eats, "timeoutSeconds": 30}})
        agent.start()
        try:
            waits_for(agent, {**dict.fromkeys(checks, "passed"), "eats": "failed"})
            wait_until(lambda: group.kills() >= 2, lambda: f"{group.kills()} killed", timeout_s=PATIENT_S)
            assert "signal 9" in agent.get("/checks")[1]
            agent.wait_page("/readyz", 200)
            agent.wait_page("/livez", 200)
            assert (0, False) == (agent.process.stop(grace_s=30), "Traceback" in agent.process.text())
        finally:
            agent.process.kill()


def endless(*blocks: bytes) -> Target:
    """A server that sends the first block once and the last one for ever."""

    def answer(call: Call) -> None:
        for block in itertools.chain(blocks, itertools.repeat(blocks[-1])):
            try:
                call.connection.sendall(block)
            except OSError:
                return

    return Target(answer)


HEAD = b"HTTP/1.1 200 OK\r\n"


def test_peers_and_commands_that_never_end_take_no_more_than_there_is(folder: Path) -> None:
    peers = {
        "headers": endless(HEAD, b"".join(b"n%x: v\r\n" % n for n in range(2000))),
        "header": endless(HEAD + b"X: ", b"x" * 16_384),
        "folded": endless(HEAD + b"X: a\r\n", b" b\r\n" * 4000),
        "body": endless(HEAD + b"\r\n", b"x" * 16_384),
        "chunk": endless(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5;", b"x" * 16_384),
    }
    with ExitStack() as open_, memory_group(of_the_chart() * MIB) as group:
        for peer in peers.values():
            open_.enter_context(peer)
        ask = {f"{name}-{n}": {"httpGet": {"port": peer.port}} for name, peer in peers.items() for n in range(4)}
        told = {f"prints-{n}": {"exec": {"command": ["yes", "y" * 1000]}} for n in range(4)}
        agent = in_mode_pod(folder, group, {**ask, **told, "fine": {"exec": {"command": ["true"]}}})
        open_.callback(agent.process.kill)
        agent.start()
        wait_until(
            lambda: all(runs(agent, name) >= 3 for name in (*ask, *told, "fine")),
            lambda: agent.process.text(),
            timeout_s=PATIENT_S,
        )
        assert agent.process.pid is not None
        peak = peak_mib(agent.process.pid)
        assert (0, True, "passed") == (group.kills(), peak <= ROOM * of_the_chart(), states(agent)["fine"]), peak
        assert (0, False) == (agent.process.stop(grace_s=30), "Traceback" in agent.process.text())


def lists(pods: int, annotations_bytes: int) -> dict[str, object]:
    """Pods with five containers each."""
    more = {"annotations": {"text": "x" * annotations_bytes}}
    sandboxes, containers = [], []
    for number in range(pods):
        metadata = {"name": f"pod-{number}", "namespace": "ns", "uid": f"u{number}"}
        sandboxes.append({"id": f"s{number}", "metadata": metadata, "createdAt": "1", **more})
        for name in "abcde":
            labels = {"io.kubernetes.pod.uid": f"u{number}", "io.kubernetes.container.name": name}
            one = {"id": f"c{number}{name}", "metadata": {"name": name}, "image": {"image": "i"}, "labels": labels}
            containers.append({**one, **more, "podSandboxId": f"s{number}"})
    return {"ListPodSandbox": {"items": sandboxes}, "ListContainers": {"containers": containers}}


CONDITIONS = [{"type": kind, "status": True} for kind in ("RuntimeReady", "NetworkReady")]


@pytest.fixture
def runtime(folder: Path) -> Iterator[Runtime]:
    made = Runtime(folder)
    made.says(
        **lists(1000, 1000), Status={"status": {"conditions": CONDITIONS}}, ContainerStatus={"status": {"id": "c"}}
    )
    made.start()
    yield made
    made.process.kill()


def test_a_pod_reads_5000_containers_and_of_more_it_says_that_they_are_too_many(folder: Path, runtime: Runtime) -> None:
    with memory_group(of_the_chart() * MIB) as group:
        check = {"runtime": {"socket": runtime.socket}, "timeoutSeconds": 30}
        agent = in_mode_pod(folder, group, {"runtime": check})
        agent.start()
        try:
            wait_until(lambda: runs(agent, "runtime") >= 3, agent.process.text, timeout_s=PATIENT_S)
            waits_for(agent, {"runtime": "passed"})
            runtime.says(**lists(1000, 2000))
            waits_for(agent, {"runtime": "warned"})
            assert "the answer is larger than what is read of one" in agent.get("/checks")[1]
            assert (0, 0) == (group.kills(), agent.process.stop(grace_s=30)), agent.process.text()
        finally:
            agent.process.kill()


def test_a_service_reads_5000_containers_for_its_check_and_its_pods_at_once(folder: Path, runtime: Runtime) -> None:
    (folder / "tls").mkdir()
    authority = make_authority(folder / "tls")
    with ExitStack() as open_:
        kubelet = open_.enter_context(answering())
        api = open_.enter_context(FakeApiServer(tls=authority.server_context()))
        group = open_.enter_context(memory_group(of_the_unit() * MIB))
        api.put({"kind": "Node", "apiVersion": "v1", "metadata": {"name": NODE, "uid": "node-uid"}})
        api.answer_next(201, body=TOKEN, method="POST", path="/token", times=OFTEN)
        node = Node(folder, api, authority.folder, kubelet, under(group.prefix))
        open_.callback(node.agent.process.kill)
        node.given = {"criSocket": runtime.socket}
        node.start({"base": ()}, CHECKS)
        node.wait({"base": "True"})
        check = {"name": "runtime", "runtime": {"socket": runtime.socket}, "periodSeconds": 1, "timeoutSeconds": 30}
        node.reads({"base": ()}, "app={}", check)
        wait_until(lambda: runs(node.agent, "runtime") >= 5, node.agent.process.text, timeout_s=PATIENT_S)
        node.wait({"base": "True"})
        assert (0, 0) == (group.kills(), node.agent.process.stop(grace_s=30)), node.agent.process.text()
