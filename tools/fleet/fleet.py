"""Virtual nodes as processes of a control plane's run: `with Fleet(plane, Size(full=5)) as fleet`."""

import json
import math
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tools.bench.processes import cpu_s
from tools.fleet.counting import Counts
from tools.fleet.worker import Report, Work
from tools.kit.child import Child, ProcessError
from tools.kit.programs import CHECKOUT, python_environ
from tools.kit.waiting import wait_for
from tools.testbed.plane import identities
from tools.testbed.plane.plane import Plane

STOP_S = 60.0
# One arena of memory for all threads: glibc's default is eight for each processor.
ENVIRON = {"MALLOC_ARENA_MAX": "2"}


@dataclass(frozen=True)
class Size:
    """Of a fleet. `full`: agents in mode `kubelet`. `light`: nodes that only renew Lease and status. `full_in_process`,
    `light_in_process`: the most of them in one process. `ramp_s`: over so many seconds their registrations are spread.
    `lease_s`: how long a Lease lasts. `full_status_s`, `light_status_s`: how often a node checks if its status must
    be written; each check is one GET of the agent, and no request of a kubelet."""

    full: int = 0
    light: int = 0
    full_in_process: int = 125
    light_in_process: int = 4500
    ramp_s: float = 0.0
    lease_s: int = 40
    full_status_s: int = 10
    light_status_s: int = 60


def names_of(size: Size) -> list[str]:
    """The full nodes first."""
    return [f"virtual-{number:04}" for number in range(size.full + size.light)]


@dataclass(frozen=True)
class State:
    """Of all processes together. `full_mib`, `light_mib`: memory of one node."""

    ready: int
    counts: Counts
    full_mib: float
    light_mib: float
    threads: int
    cpu_s: float


class Fleet:
    """`plane`: one that was made with the names of these nodes. Constructed, then started by `with`."""

    def __init__(self, plane: Plane, size: Size) -> None:
        self._plane, self.size = plane, size
        self.names = names_of(size)
        self.full, self.light = self.names[: size.full], self.names[size.full :]
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        numbered = list(enumerate(self.names))
        size = self.size
        for full, nodes, most in (
            (True, numbered[: size.full], size.full_in_process),
            (False, numbered[size.full :], size.light_in_process),
        ):
            processes = math.ceil(len(nodes) / most)
            for process in range(processes):
                name = f"fleet-{'full' if full else 'light'}-{process}"
                worker = _Worker(self._plane, name, nodes[process::processes], size, full=full)
                self._workers.append(worker)
                worker.process.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> list[int | None]:
        """Ends the processes; their exit codes."""
        for worker in self._workers:
            worker.process.signal(signal.SIGTERM)
        codes = [worker.process.stop(grace_s=STOP_S) for worker in self._workers]
        self._workers.clear()
        return codes

    @property
    def processes(self) -> int:
        return len(self._workers)

    def check(self) -> None:
        """Raises ProcessError where a process ended by itself."""
        for worker in self._workers:
            worker.process.check()

    def state(self) -> State:
        counts, ready, threads = Counts(), 0, 0
        mib = {True: 0.0, False: 0.0}
        for worker in self._workers:
            report = worker.report()
            if report is not None:
                counts = counts.plus(Counts.of(report.counts))
                ready, threads = ready + report.ready, threads + report.threads
                mib[worker.full] += report.rss_mib - report.base_mib
        spent_s = sum(cpu_s(worker.process.pid) for worker in self._workers if worker.process.pid)
        full_mib, light_mib = mib[True] / max(1, len(self.full)), mib[False] / max(1, len(self.light))
        return State(ready, counts, full_mib, light_mib, threads, spent_s)

    def wait_ready(self, *, timeout_s: float, progress: Callable[[int], None] = lambda _ready: None) -> None:
        """Until all nodes are registered. Raises ProcessError."""

        def ready() -> bool:
            self.check()
            count = self.state().ready
            progress(count)
            return count == len(self.names)

        if not wait_for(ready, timeout_s=timeout_s, every_s=1.0):
            raise ProcessError(f"{self.state().ready} of {len(self.names)} nodes registered in {timeout_s:.0f} s")


class _Worker:
    def __init__(self, plane: Plane, name: str, nodes: Sequence[tuple[int, str]], size: Size, *, full: bool) -> None:
        self.full = full
        self._report = plane.folder / f"{name}-report.json"
        work = Work(
            server=plane.server,
            ca=str(plane.folder / "pki" / "ca.crt"),
            nodes=[(number, node, plane.token_of(identities.node(node).user)) for number, node in nodes],
            full=full,
            ramp_s=size.ramp_s,
            lease_s=size.lease_s,
            status_s=size.full_status_s if full else size.light_status_s,
            folder=str(plane.folder / name),
            report=str(self._report),
        )
        config = plane.folder / f"{name}.json"
        config.touch(mode=0o600)
        config.write_text(json.dumps(asdict(work)))
        argv: list[str | Path] = [sys.executable, "-m", "tools.fleet.worker", "--config", config]
        environ = {**python_environ(), **ENVIRON}
        self.process: Child = plane.run.process(name, argv, environ=environ, cwd=CHECKOUT)

    def report(self) -> Report | None:
        """None before the first one."""
        with suppress(OSError):
            document: dict[str, Any] = json.loads(self._report.read_text())
            return Report(**document)
        return None
