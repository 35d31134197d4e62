"""How long an extender needs from its first instruction to its first honest answer, and what it holds then."""

from collections.abc import Callable

from tests.bench import arms
from tests.bench.figures import Figure, median, median_ratio, spread
from tests.bench.processes import Memory

NODES = 5000


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """Both extenders in turns against the API stub, each started anew per round."""
    binary = arms.go_binary(progress)
    stub = arms.Stub(binary, nodes=NODES)
    seconds: dict[str, list[float]] = {"readygate": [], "go": []}
    cpu: dict[str, list[float]] = {"readygate": [], "go": []}
    memory: list[list[Memory]] = []
    go_rss: list[float] = []
    with stub.child:
        for number in range(2 if quick else 5):
            progress(f"cold start: round {number + 1}")
            for name in seconds:
                arm = arms.start_readygate(stub.api) if name == "readygate" else arms.start_go(binary, stub.api)
                with arm.child:
                    seconds[name].append(arms.wait_synced(arm))
                    cpu[name].append(arm.child.cpu_s())
                    if name == "readygate":
                        memory.append(arm.child.memory())
                    else:
                        go_rss.append(arm.child.memory()[0].rss_mib)
    total = [sum(process.pss_mib for process in processes) for processes in memory]
    last = memory[-1]
    parts = ", ".join(f"{process.rss_mib:.0f} (peak {process.peak_mib:.0f})" for process in last)
    ours = seconds["readygate"]
    return [
        Figure(
            "cold_start_5000_s",
            median(ours),
            "s",
            f"process start to /readyz 200 over TLS, 5,000 nodes of 11 kB, 5,000 pods of 17 kB; rounds {spread(ours)}; "
            f"processor {median(cpu['readygate']):.1f} s; Go {median(seconds['go']):.2f} s",
        ),
        Figure("cold_start_5000_ratio_to_go", median_ratio(ours, seconds["go"]), "ratio", f"{len(ours)} rounds"),
        Figure(
            "cold_start_5000_rss_mib",
            median(total),
            "MiB",
            "gunicorn master + worker when ready, pages that both map counted once; "
            f"each by itself, last round: {parts}; Go {median(go_rss):.0f}",
        ),
    ]
