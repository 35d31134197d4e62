"""How long an extender needs from its first instruction to its first honest answer, and what it holds then."""

from collections.abc import Callable
from dataclasses import dataclass

from tools.bench import arms
from tools.bench.figures import Figure, median, median_ratio, spread
from tools.bench.processes import Memory
from tools.bench.stub import Stub

NODES = 5000


@dataclass(frozen=True)
class Start:
    """seconds: process start to /readyz 200. cpu_s: processor time until then. memory: of each process, when ready."""

    seconds: float
    cpu_s: float
    memory: list[Memory]

    @property
    def held_mib(self) -> float:
        """Of all processes, pages that several map counted once."""
        return sum(process.pss_mib for process in self.memory)


def start_once(arm: arms.Arm) -> Start:
    """Of an arm that has just been started; it is ended."""
    with arm.child:
        seconds = arms.wait_synced(arm)
        return Start(seconds, arm.child.cpu_s(), arm.child.memory())


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """Both extenders in turns against the API stub, each started anew per round."""
    binary = arms.go_binary(progress)
    stub = Stub(binary, nodes=NODES)
    ours: list[Start] = []
    theirs: list[Start] = []
    with stub.child:
        for number in range(2 if quick else 5):
            progress(f"cold start: round {number + 1}")
            ours.append(start_once(arms.start_readygate(stub.api)))
            theirs.append(start_once(arms.start_go(binary, stub.api)))
    return figures(ours, theirs)


def figures(ours: list[Start], theirs: list[Start]) -> list[Figure]:
    seconds = [start.seconds for start in ours]
    parts = ", ".join(f"{process.rss_mib:.0f} (peak {process.peak_mib:.0f})" for process in ours[-1].memory)
    return [
        Figure(
            "cold_start_5000_s",
            median(seconds),
            "s",
            f"process start to /readyz 200 over TLS, 5,000 nodes of 11 kB, 5,000 pods of 17 kB; rounds "
            f"{spread(seconds)}; processor {median([start.cpu_s for start in ours]):.1f} s; "
            f"Go {median([start.seconds for start in theirs]):.2f} s",
        ),
        Figure(
            "cold_start_5000_ratio_to_go",
            median_ratio(seconds, [start.seconds for start in theirs]),
            "ratio",
            f"{len(ours)} rounds",
        ),
        Figure(
            "cold_start_5000_rss_mib",
            median([start.held_mib for start in ours]),
            "MiB",
            "gunicorn master + worker when ready, pages that both map counted once; "
            f"each by itself, last round: {parts}; Go {median([start.memory[0].rss_mib for start in theirs]):.0f}",
        ),
    ]
