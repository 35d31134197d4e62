"""What grows with the cluster: the same figures at 1,000 nodes, 5,000 (the most Kubernetes supports) and 15,000."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tools.bench import arms, updates
from tools.bench.cold_start import Start, start_once
from tools.bench.figures import Figure, median, spread
from tools.bench.filter_latency import Round, run_load
from tools.bench.stub import Stub

SIZES = (1000, 5000, 15000)
NAMES = 812  # the same request at every size
HEARTBEAT_LIMIT_S = 600


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """About a minute a size."""
    binary = arms.go_binary(progress)
    figures: list[Figure] = []
    for nodes in SIZES:
        figures += _measure_size(binary, nodes, progress, quick=quick)
    return figures


def _measure_size(binary: Path, nodes: int, progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    stub = Stub(binary, nodes=nodes)
    with ExitStack() as running:
        running.enter_context(stub.child)
        starts = []
        for number in range(1 if quick else 3):
            progress(f"growth: {nodes} nodes, start {number + 1}")
            starts.append(start_once(arms.start_readygate(stub.api, lease_limit_s=HEARTBEAT_LIMIT_S)))
        arm = arms.start_readygate(stub.api, lease_limit_s=HEARTBEAT_LIMIT_S)
        running.enter_context(arm.child)
        null = arms.start_null(binary)
        running.enter_context(null.child)
        arms.wait_synced(arm)
        rounds = []
        for number in range(2 if quick else 3):
            progress(f"growth: {nodes} nodes, calls, round {number + 1}")
            rounds.append(run_load(binary, [null, arm], names=NAMES, nodes=nodes, requests=1000, same=False))
        spent = updates.spend(stub, [arm], progress, rounds=2 if quick else 3, seconds=3.0)
    return figures_of(nodes, starts, rounds, {kind: by_arm[arm.name] for kind, by_arm in spent.items()})


def figures_of(
    nodes: int, starts: list[Start], rounds: list[dict[str, Round]], spent_us: dict[str, list[float]]
) -> list[Figure]:
    """Medians. rounds: of readygate and of the null extender, which shows a slow minute of the machine as one."""
    label = f"growth_{nodes}"
    seconds, held = [start.seconds for start in starts], [start.held_mib for start in starts]
    ours, null = ([one[name] for one in rounds] for name in ("readygate", "null"))
    found = [
        Figure(f"{label}_cold_start_s", median(seconds), "s", f"Leases followed; {spread(seconds)}"),
        Figure(f"{label}_memory_mib", median(held), "MiB", "when ready, pages that several map counted once"),
    ]
    for part, unit in (("p50", "ms"), ("p99", "ms"), ("cpu", "ms")):
        of_ours, of_null = ([getattr(one, part) for one in of] for of in (ours, null))
        ratios = [a / b for a, b in zip(of_ours, of_null, strict=True)]
        note = f"rounds {spread(of_ours)}; {median(ratios):.2f} of the null extender"
        found.append(Figure(f"{label}_filter_{NAMES}_{part}_ms", median(of_ours), unit, note))
    for kind, of_kind in spent_us.items():
        found.append(Figure(f"{label}_{kind}_update_cpu_us", median(of_kind), "us", f"rounds {spread(of_kind, 0)}"))
    return found
