"""Child processes of the benchmark: started in their own folder of logs, measured through /proc, ended for certain."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class MeasurementError(Exception):
    """The measurement could not be made; str = cause, one line."""


@dataclass(frozen=True)
class Memory:
    """Memory of one process. pss: resident, with its part of the pages it shares; peak: of the resident memory."""

    rss_mib: float
    pss_mib: float
    peak_mib: float


class Child:
    """One started process. Its standard input stays open while we live; helpers of ours end when it closes."""

    def __init__(
        self, argv: Sequence[str | Path], *, log: Path, cwd: Path, environ: dict[str, str] | None = None
    ) -> None:
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [str(word) for word in argv],
                cwd=cwd,
                env={**os.environ, **(environ or {})},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.started = time.monotonic()
        self.pid = self._process.pid

    def wait_until(self, ready: Callable[[], bool], what: str, *, limit_s: float, every_s: float = 0.02) -> float:
        """Seconds from the start until `ready` said yes. Raises MeasurementError when the child ends or time is up."""
        while not ready():
            if self._process.poll() is not None:
                raise MeasurementError(f"{what}: ended with code {self._process.returncode}: {self._last_line()}")
            if time.monotonic() - self.started > limit_s:
                raise MeasurementError(f"{what}: not ready after {limit_s:.0f} s: {self._last_line()}")
            time.sleep(every_s)
        return time.monotonic() - self.started

    def listening_on(self, *, limit_s: float = 30.0) -> str:
        """The `host:port` that the child says it listens on."""
        found: list[str] = []

        def said() -> bool:
            match = re.search(r"^listening on (\S+)$", self.log.read_text(errors="replace"), re.MULTILINE)
            found[:] = [match[1]] if match else []
            return bool(found)

        self.wait_until(said, self.log.stem, limit_s=limit_s)
        return found[0]

    def pids(self) -> list[int]:
        """The child and its children (gunicorn's worker), parents first."""
        return [self.pid, *children(self.pid)]

    def cpu_s(self) -> float:
        """User and system time so far, of the child and its children."""
        return sum(_cpu_s(pid) for pid in self.pids())

    def memory(self) -> list[Memory]:
        """One entry per process, in the order of `pids`."""
        return [_memory(pid) for pid in self.pids()]

    def stop(self, *, limit_s: float = 10.0) -> None:
        """Asks it to end, then makes it. May be called twice."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(limit_s)
            except subprocess.TimeoutExpired:
                os.killpg(self.pid, signal.SIGKILL)
                self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _last_line(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"no output in {self.log}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def children(pid: int) -> list[int]:
    """Direct children of a process."""
    found: list[int] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(word) for word in listing.read_text().split()]
    return found


def _cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def _memory(pid: int) -> Memory:
    status = Path(f"/proc/{pid}/status").read_text()
    values = {name: int(kib) / 1024 for name, kib in re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB", status, re.MULTILINE)}
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    pss_kib = sum(int(kib) for kib in re.findall(r"^Pss:\s+(\d+) kB", rollup, re.MULTILINE))
    return Memory(rss_mib=values.get("VmRSS", 0.0), pss_mib=pss_kib / 1024, peak_mib=values.get("VmHWM", 0.0))
