"""A container runtime that does as it is told, and agents beside it."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.kubelet.runtime.connect import connect_runtime
from agent.kubelet.runtime.cri_runtime import CriRuntime
from agent.kubelet.runtime.kubelet_lock import KubeletLock
from tools.fakes.cri import Runtime
from tools.kit.waiting import wait_until

PATIENT_S = 60.0


def listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as tried:
        return tried.connect_ex(path) == 0


class Faked:
    """A runtime with nothing in it at the begin of each test, and agents beside it, one after another."""

    def __init__(self, fake: Runtime, folder: Path) -> None:
        self.fake = fake
        self.folder = folder
        self.logs = folder / "logs"
        self.agents: list[CriRuntime] = []
        self.guard = KubeletLock(None)

    def empty(self) -> None:
        self.fake.store.file.unlink(missing_ok=True)
        self.fake.store.write({**self.fake.store.read(), "images": ["i"]})
        self.up()

    def up(self) -> None:
        """Without a fault, and running."""
        self.says()
        if not listens(self.fake.socket):  # also one that has closed it and is not quite gone
            self.fake.process.kill()
            Path(self.fake.socket).unlink(missing_ok=True)
            self.fake.start()
            wait_until(lambda: listens(self.fake.socket), timeout_s=PATIENT_S)

    def says(self, **answers: object) -> None:
        """All others are done."""
        self.fake.answers = {"*": "do", "Version": self.fake.answers["Version"]}
        self.fake.says(**answers)

    def agent(self, deadline_s: float = PATIENT_S) -> CriRuntime:
        logs = self.logs
        made = connect_runtime(
            self.fake.socket, owner="node-1", host_ip="192.0.2.7", logs=logs, guard=self.guard, deadline_s=deadline_s
        )
        self.agents.append(made)
        return made

    def calls(self) -> list[str]:
        return list(self.fake.store.read()["calls"])

    def left(self) -> tuple[int, int]:
        """How many sandboxes and containers there are."""
        state = self.fake.store.read()
        return len(state["sandboxes"]), len(state["containers"])


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    made = Runtime(tmp_path_factory.mktemp("cri"))
    yield made
    made.process.kill()


@pytest.fixture
def faked(runtime: Runtime, tmp_path: Path) -> Iterator[Faked]:
    made = Faked(runtime, tmp_path)
    made.empty()
    yield made
    for agent in made.agents:
        agent.stop()
