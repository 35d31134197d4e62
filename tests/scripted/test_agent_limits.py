"""What the kernel gives a process runs short, descriptors (RLIMIT_NOFILE), processes and threads (RLIMIT_NPROC) or
memory (RLIMIT_DATA), at the start or while the agent runs in mode `pod`: one clear line, no traceback, and what was
known stays known."""

import json
import resource
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tools.fakes.api_server import FakeApiServer
from tools.kit.limits import as_somebody, descriptors, filled, limit, under
from tools.kit.ports import free_port
from tools.kit.programs import Program
from tools.kit.waiting import wait_until

PATIENT_S = 60.0
POD = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "health", "namespace": "ns", "uid": "uid-1"}}


@pytest.fixture
def folder() -> Iterator[Path]:
    """For anybody, which those of pytest are not."""
    with tempfile.TemporaryDirectory(prefix="readygate-limits-") as made:
        Path(made).chmod(0o777)
        yield Path(made)


class Agent(Program):
    """In mode `pod`, with `count` checks that pass while a file is there, and its condition."""

    def __init__(self, folder: Path, api: FakeApiServer, count: int, prefix: Sequence[str] = ()) -> None:
        self.fit = folder / "fit"
        self.fit.touch()
        command = ["test", "-e", str(self.fit)]
        check = {"exec": {"command": command}, "periodSeconds": 1, "failureThreshold": 1}
        settings = {
            "mode": "pod",
            "listen": {"address": "127.0.0.1", "port": free_port()},
            "kubernetes": {"kubeconfig": str(api.write_kubeconfig(folder / "kubeconfig"))},
            "condition": {"publish": True, "podUID": "uid-1"},
            "stateFile": str(folder / "checks.json"),
            "checks": [{"name": f"c{number}", **check} for number in range(count)],
        }
        (folder / "kubeconfig").chmod(0o644)
        super().__init__("agent", settings, folder, launch=under(prefix))

    def begin(self) -> None:
        self.start(POD_NAME="health", POD_NAMESPACE="ns")

    def states(self) -> set[str]:
        code, text = self.get("/checks")
        return {check["state"] for check in json.loads(text)["checks"]} if code == 200 else set()


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer() as api:
        api.put(POD)
        yield api


def says(agent: Agent, *texts: str) -> None:
    def told() -> bool:
        lines = agent.process.text().splitlines()
        return bool(lines) and any(all(text in line for text in texts) for line in lines)

    wait_until(told, agent.process.text, timeout_s=PATIENT_S)


def closings(api: FakeApiServer) -> list[str]:
    """What was written that closes the node."""
    return [str(r.body) for r in api.requests if r.method == "PATCH" and b'"False"' in r.body]


def goes_on(agent: Agent, api: FakeApiServer, closed: list[str]) -> None:
    agent.wait_page("/readyz", 200)
    wait_until(lambda: agent.states() == {"passed"}, timeout_s=PATIENT_S)
    code, text = agent.process.stop(grace_s=30), agent.process.text()
    assert (0, False) == (code, "Traceback" in text), text
    assert closed == [one for one in closings(api) if "Terminating" not in one], "the node was not closed for it"


CHECKS = [f"c{number}: unknown" for number in range(5)]


def test_a_running_agent_that_gets_no_more_descriptors(api: FakeApiServer, folder: Path) -> None:
    agent = Agent(folder, api, 5)
    agent.begin()
    try:
        agent.wait_page("/readyz", 200)
        wait_until(lambda: agent.states() == {"passed"}, timeout_s=PATIENT_S)
        closed = closings(api)
        limit(agent.process, resource.RLIMIT_NOFILE, 4)  # what it has stays, and those below are taken
        says(agent, "last result kept", "too many open files", *CHECKS)
        limit(agent.process, resource.RLIMIT_NOFILE, 1024)
        goes_on(agent, api, closed)
    finally:
        agent.process.kill()


def test_a_running_agent_that_gets_no_more_processes(api: FakeApiServer, folder: Path) -> None:
    agent = Agent(folder, api, 5, as_somebody(60))
    agent.begin()
    try:
        agent.wait_page("/readyz", 200)
        wait_until(lambda: agent.states() == {"passed"}, timeout_s=PATIENT_S)
        closed = closings(api)
        with filled(60):
            wait_until(lambda: agent.states() == {"unknown"}, agent.process.text, timeout_s=PATIENT_S)
            says(agent, "last result kept", "resource temporarily unavailable")
            for page in ("/readyz", "/livez"):
                agent.wait_page(page, 200)
        goes_on(agent, api, closed)
    finally:
        agent.process.kill()


def test_a_running_agent_that_gets_no_more_memory(api: FakeApiServer, folder: Path) -> None:
    """As on a node that promises no more than it has (vm.overcommit_memory 2). Elsewhere the kernel ends who
    takes too much: test_agent_memory."""
    agent = Agent(folder, api, 5)
    agent.begin()
    try:
        agent.wait_page("/readyz", 200)
        wait_until(lambda: agent.states() == {"passed"}, timeout_s=PATIENT_S)
        closed = closings(api)
        limit(agent.process, resource.RLIMIT_DATA, 4096)  # what it has stays
        says(agent, "last result kept", "cannot allocate memory", *CHECKS)
        for page in ("/readyz", "/livez", "/metrics"):
            agent.wait_page(page, 200)
        limit(agent.process, resource.RLIMIT_DATA, 2**40)
        goes_on(agent, api, closed)
    finally:
        agent.process.kill()


def ended(agent: Agent) -> tuple[int | None, list[str]]:
    """The code, and what it said that is no line of the log."""
    wait_until(lambda: not agent.process.running(), agent.process.text, timeout_s=PATIENT_S)
    lines = agent.process.text().splitlines()[1:]
    return agent.process.stop(), [line for line in lines if not line.startswith("20")]


@pytest.mark.parametrize("most", [4, 16])
def test_a_start_without_threads_for_all_checks_is_one_line(api: FakeApiServer, folder: Path, most: int) -> None:
    agent = Agent(folder, api, 20, as_somebody(most))
    agent.begin()
    cause = "can't start new thread: raise the limit of processes (pids), or configure fewer checks"
    assert (1, [f"readygate-agent: {cause}"]) == ended(agent)


def test_a_start_without_descriptors_is_one_line(api: FakeApiServer, folder: Path) -> None:
    agent = Agent(folder, api, 5, descriptors(8))
    agent.begin()
    assert (1, ["readygate-agent: [Errno 24] Too many open files"]) == ended(agent)


def test_a_start_with_descriptors_for_nothing_but_itself_says_what_it_lacks(api: FakeApiServer, folder: Path) -> None:
    agent = Agent(folder, api, 5, descriptors(10))
    agent.begin()
    try:
        says(agent, "node is not healthy", "too many open files", *CHECKS)
        says(agent, "condition patch failed, will retry")
        text = agent.process.text()
        assert ([], True) == ([word for word in ("Traceback", "_Timed") if word in text], text.count("\n") <= 20), text
    finally:
        agent.process.kill()
