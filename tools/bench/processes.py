"""Child processes of the benchmark, measured through /proc."""

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.kit.child import Child
from tools.kit.pid import children

CPU_CLOCK = 2  # of Linux' clocks of a process: the time it has run, by the scheduler's own count


class MeasurementError(Exception):
    """The measurement could not be made; str = cause, one line."""


@dataclass(frozen=True)
class Memory:
    """Memory of one process. pss: resident, with its part of the pages it shares; peak: of the resident memory."""

    rss_mib: float
    pss_mib: float
    peak_mib: float


class Measured(Child):
    """Its log is in `cwd` and begins anew. Its standard input stays open while we live; helpers of ours end with it."""

    def __init__(
        self, name: str, argv: Sequence[str | Path], *, cwd: Path, environ: Mapping[str, str] | None = None
    ) -> None:
        log = cwd / f"{name}.log"
        cwd.mkdir(parents=True, exist_ok=True)
        log.unlink(missing_ok=True)
        super().__init__(name, argv, log=log, cwd=cwd, environ=environ, lifeline=True)

    def listening_on(self, *, limit_s: float = 30.0) -> str:
        """The `host:port` that the child says it listens on."""
        found: list[str] = []

        def said() -> bool:
            match = re.search(r"^listening on (\S+)$", self.text(), re.MULTILINE)
            found[:] = [match[1]] if match else []
            return bool(found)

        self.wait_ready(said, timeout_s=limit_s, every_s=0.02)
        return found[0]

    def pids(self) -> list[int]:
        """The child and its children (gunicorn's worker), parents first."""
        return [self.pid, *children(self.pid)] if self.pid is not None else []

    def cpu_s(self) -> float:
        """User and system time so far, of the child and its children."""
        return sum(cpu_s(pid) for pid in self.pids())

    def memory(self) -> list[Memory]:
        """One entry per process, in the order of `pids`."""
        return [memory(pid) for pid in self.pids()]

    def begin_peak(self) -> None:
        """From now on `peak_mib` counts anew."""
        for pid in self.pids():
            Path(f"/proc/{pid}/clear_refs").write_text("5")


def ended_children_s(pid: int) -> float:
    """User and system time of the children it has waited for, and of theirs; in steps of the clock's ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """User and system time. To the nanosecond; /proc/PID/stat counts in steps of 10 ms."""
    try:
        return time.clock_gettime(~pid << 3 | CPU_CLOCK)  # as clock_getcpuclockid(3) makes them
    except OSError:
        return 0.0


def memory(pid: int) -> Memory:
    status = Path(f"/proc/{pid}/status").read_text()
    values = {name: int(kib) / 1024 for name, kib in re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB", status, re.MULTILINE)}
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    pss_kib = sum(int(kib) for kib in re.findall(r"^Pss:\s+(\d+) kB", rollup, re.MULTILINE))
    return Memory(rss_mib=values.get("VmRSS", 0.0), pss_mib=pss_kib / 1024, peak_mib=values.get("VmHWM", 0.0))
