"""What a process holds and has spent, by /proc."""

import time
from dataclasses import dataclass
from pathlib import Path

from tools.bench.processes import cpu_s, ended_children_s, memory


@dataclass(frozen=True)
class Held:
    """At one moment. own_s, children_s: processor time so far, of the process and of those it has waited for."""

    at_s: float
    own_s: float
    children_s: float
    rss_mib: float
    peak_mib: float
    threads: int
    descriptors: int


def held(pid: int) -> Held:
    status = Path(f"/proc/{pid}/status").read_text()
    found = memory(pid)
    return Held(
        at_s=time.monotonic(),
        own_s=cpu_s(pid),
        children_s=ended_children_s(pid),
        rss_mib=found.rss_mib,
        peak_mib=found.peak_mib,
        threads=int(status.partition("Threads:")[2].split()[0]),
        descriptors=len(list(Path(f"/proc/{pid}/fd").iterdir())),
    )


def millicores(before: Held, after: Held) -> tuple[float, float]:
    """(own, children's) processor time between two moments, in thousandths of a core."""
    took_s = after.at_s - before.at_s
    return 1000 * (after.own_s - before.own_s) / took_s, 1000 * (after.children_s - before.children_s) / took_s
