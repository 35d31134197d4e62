"""Descriptors or processes run short (as in test_agent_limits) in modes `node` and `kubelet`, at the start or while the
agent runs: one clear line, no traceback; what is known of node and pods stays, what could not be done is done later."""

import resource
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.scripted.test_node_mode import NODE, OFTEN, TOKEN, Node
from tests.scripted.tls import make_authority
from tools.fakes.api_server import FakeApiServer
from tools.fakes.kubelet_healthz import answering
from tools.kit.child import Child
from tools.kit.limits import as_somebody, descriptors, filled, limit, under
from tools.kit.ports import free_port
from tools.kit.programs import Program
from tools.kit.waiting import wait_until

PATIENT_S = 90.0
MOST = 80
CHECKS = ("disk", "gpu")
LIMITS = {"descriptors": "Too many open files", "processes": "Resource temporarily unavailable"}


@pytest.fixture
def folder() -> Iterator[Path]:
    """For anybody, which those of pytest are not."""
    with tempfile.TemporaryDirectory(prefix="readygate-limits-") as made:
        Path(made).chmod(0o777)
        yield Path(made)


@contextmanager
def node_mode(folder: Path, prefix: Sequence[str]) -> Iterator[Node]:
    (folder / "tls").mkdir()
    authority = make_authority(folder / "tls")
    for file in (folder / "tls").iterdir():
        file.chmod(0o644)
    with answering() as kubelet, FakeApiServer(tls=authority.server_context()) as api:
        api.put({"kind": "Node", "apiVersion": "v1", "metadata": {"name": NODE, "uid": "node-uid"}})
        api.answer_next(201, body=TOKEN, method="POST", path="/token", times=OFTEN)
        made = Node(folder, api, authority.folder, kubelet, under(prefix))
        try:
            made.start({"base": ()}, CHECKS)
            yield made
        finally:
            made.agent.process.kill()


class Kubelet:
    """An agent in mode `kubelet`, and pods whose probes are commands."""

    def __init__(self, folder: Path, api: FakeApiServer, prefix: Sequence[str]) -> None:
        self.api = api
        settings = {
            "mode": "kubelet",
            "listen": {"address": "127.0.0.1", "port": free_port()},
            "kubernetes": {"kubeconfig": str(api.write_kubeconfig(folder / "kubeconfig"))},
            "kubelet": {"nodeName": NODE, "podCIDR": "127.22.2.0/24", "rootDir": str(folder / "run")},
        }
        (folder / "kubeconfig").chmod(0o644)
        self.agent = Program("agent", settings, folder, launch=under(prefix))

    def add(self, name: str, probe: str) -> None:
        asked = {"exec": {"command": ["true"]}, "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 30}
        container = {"name": "c", "image": "i", "command": ["sleep", "100000"], probe: asked}
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        spec = {"nodeName": NODE, "containers": [container]}
        self.api.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def container(self, name: str) -> Mapping[str, Any]:
        return next(iter((self.api.get("Pod", name) or {}).get("status", {}).get("containerStatuses", ())), {})

    def wait(self, what: Callable[[], object]) -> None:
        wait_until(what, lambda: f"{self.api.objects('Pod')}: {self.agent.process.text()}", timeout_s=PATIENT_S)


@contextmanager
def kubelet_mode(folder: Path, prefix: Sequence[str]) -> Iterator[Kubelet]:
    with FakeApiServer() as api:
        made = Kubelet(folder, api, prefix)
        try:
            made.agent.start()
            yield made
        finally:
            made.agent.process.stop(grace_s=5)  # its containers end with it
            made.agent.process.kill()


def all_that_it_may_have(which: str) -> Sequence[str]:
    return as_somebody(MOST) if which == "processes" else ()


@contextmanager
def short_of(which: str, process: Child) -> Iterator[None]:
    taken: AbstractContextManager[object] = filled(MOST) if which == "processes" else few_descriptors(process)
    with taken:
        yield


@contextmanager
def few_descriptors(process: Child) -> Iterator[None]:
    limit(process, resource.RLIMIT_NOFILE, 4)  # what it has stays, and those below are taken
    yield
    limit(process, resource.RLIMIT_NOFILE, 1024)


def ends_well(process: Child) -> None:
    code, text = process.stop(grace_s=30), process.text()
    assert (0, False) == (code, "Traceback" in text), text


@pytest.mark.parametrize("which", LIMITS)
def test_mode_node_keeps_what_it_knows_of_its_node(folder: Path, which: str) -> None:
    with node_mode(folder, all_that_it_may_have(which)) as node:
        node.wait({"base": "True"})
        with short_of(which, node.agent.process):
            node.says(LIMITS[which].lower())
            node.says("last result kept")
        node.agent.wait_page("/readyz", 200)
        written = [r.body for r in node.api.requests if r.method == "PATCH" and b'"False"' in r.body]
        assert ({"base": "True"}, []) == (node.conditions(), written)
        node.says('node is healthy reason="ChecksPassed"', times=2)
        ends_well(node.agent.process)


@pytest.mark.parametrize("which", LIMITS)
def test_mode_kubelet_keeps_its_pods_and_starts_those_that_are_new_later(folder: Path, which: str) -> None:
    with kubelet_mode(folder, all_that_it_may_have(which)) as kubelet:
        kubelet.add("live", "livenessProbe")
        kubelet.add("ready", "readinessProbe")
        kubelet.wait(lambda: all(kubelet.container(name).get("ready") for name in ("live", "ready")))
        before = {name: kubelet.container(name)["containerID"] for name in ("live", "ready")}
        with short_of(which, kubelet.agent.process):
            kubelet.add("late", "livenessProbe")
            kubelet.wait(
                lambda: f'RunContainerError" error="exec: \\"sleep\\": {LIMITS[which]}' in kubelet.agent.process.text()
            )
        kubelet.wait(lambda: kubelet.container("late").get("ready"))
        kubelet.wait(lambda: kubelet.container("ready").get("ready"))
        after = {name: kubelet.container(name)["containerID"] for name in ("live", "ready")}
        (node,) = kubelet.api.objects("Node")
        assert (before, "True") == (
            after,
            next(c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"),
        )
        ends_well(kubelet.agent.process)


THREADS = "can't start new thread: raise the limit of processes (pids), or configure fewer checks"


@pytest.mark.parametrize(
    ("prefix", "cause"),
    [
        pytest.param(lambda: descriptors(8), "[Errno 24] Too many open files", id="descriptors for nothing at all"),
        pytest.param(lambda: as_somebody(4), THREADS, id="threads for some of it"),
        pytest.param(lambda: as_somebody(10), THREADS, id="threads for nearly all of it"),
    ],
)
@pytest.mark.parametrize("mode", [node_mode, kubelet_mode])
def test_a_start_that_cannot_be_is_one_line(
    folder: Path,
    mode: Callable[[Path, Sequence[str]], AbstractContextManager[Node | Kubelet]],
    prefix: Callable[[], Sequence[str]],
    cause: str,
) -> None:
    with mode(folder, prefix()) as made:
        process = made.agent.process
        wait_until(lambda: not process.running(), process.text, timeout_s=PATIENT_S)
        lines = [line for line in process.text().splitlines()[1:] if not line.startswith("20")]
        assert (1, [f"readygate-agent: {cause}"]) == (process.stop(), lines)
