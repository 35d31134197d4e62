"""The driver as a process: the kubelet's answers to batches of histories."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from tools.differential.target import Answers, History

GATES: tuple[Mapping[str, bool], ...] = tuple(
    {
        "ChangeContainerStatusOnKubeletRestart": restart,
        "ContainerRestartRules": rules,
        "RestartAllContainersOnContainerExits": restart_all,
        "PodReadyToStartContainersCondition": sandbox,
        "PLEGOnDemandRelist": on_demand,
        "NodeDeclaredFeatures": declared,
        "KubeletRegistrationGetOnExistsOnly": exists_only,
    }
    for restart, rules, restart_all, sandbox, on_demand, declared, exists_only in (
        (False, True, True, True, True, True, False),
        (True, True, True, True, True, True, True),
        (False, True, False, True, True, True, False),
        (False, False, False, True, True, False, False),
        (True, False, False, False, False, False, True),
    )
)
OLD_GATES: tuple[Mapping[str, bool], ...] = ({"StartupProbe": True},)
"""Of 1.16: startup probes, which the agent has in any case."""


def is_old(target: str) -> bool:
    """Whether a target is answered by kubelet 1.16."""
    return target.endswith("-1.16")


def gates_of(target: str) -> tuple[Mapping[str, bool], ...]:
    """The sets of feature gates that a target is compared under."""
    return OLD_GATES if is_old(target) else GATES


COVERAGE = "GOCOVERDIR"
"""The variable by which a driver that was built for it knows where to tell what it has run."""
# One history after the other on one processor, the others are our own; its garbage is small and soon gone.
_GO = {"GOMAXPROCS": "1", "GOGC": "800"}


class Kubelet:
    """A context: the process ends with it. `said` is the driver's first line: releases and feature gates."""

    def __init__(self, executable: Path) -> None:
        self._process = subprocess.Popen(
            [executable], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **_GO}
        )
        self.said: dict[str, Any] = self._read()

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if COVERAGE not in os.environ:
            self._process.kill()
        self._process.communicate()  # its input ends, and so does it: what it has run is written then

    def ask(
        self, target: str, gates: Mapping[str, bool], histories: Sequence[History], mended: Sequence[str] = ()
    ) -> None:
        """Hands over a batch; `answers` gives what comes of it, in the same order. One batch at a time. `mended`: fixes
        of ours for which upstream's mistake is mended there."""
        batch = msgspec.json.encode({"target": target, "gates": gates, "histories": histories, "mended": mended})
        assert self._process.stdin is not None
        self._process.stdin.write(batch + b"\n")
        self._process.stdin.flush()

    def answers(self) -> list[Answers]:
        return self._read()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise EOFError(f"the driver has ended with code {self._process.wait()}")
        return msgspec.json.decode(line)
