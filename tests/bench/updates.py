"""What one watch event costs an extender that nobody asks anything: both follow the same stream at the same time."""

import time
from collections.abc import Callable
from contextlib import ExitStack

from tests.bench import arms
from tests.bench.figures import Figure, median, median_ratio, spread
from tests.bench.filter_latency import LEASES_PER_S, NODES, UPDATES_PER_S

SECONDS = 6.0
# Leases pause while pods are measured: no node may count as lost for that.
HEARTBEAT_LIMIT_S = 600
STREAMS = {"pod": (UPDATES_PER_S, 0), "lease": (0, LEASES_PER_S)}


def measure(progress: Callable[[str], None], *, quick: bool) -> list[Figure]:
    """Processor time by update, of pods and of Leases; about a minute."""
    binary = arms.go_binary(progress)
    stub = arms.Stub(binary, nodes=NODES)
    spent: dict[str, dict[str, list[float]]] = {kind: {"readygate": [], "go": []} for kind in STREAMS}
    with ExitStack() as running:
        running.enter_context(stub.child)
        stub.stream(leases_per_s=LEASES_PER_S)
        both = [arms.start_go(binary, stub.api, lease_limit_s=HEARTBEAT_LIMIT_S)]
        running.enter_context(both[0].child)
        both.append(arms.start_readygate(stub.api, lease_limit_s=HEARTBEAT_LIMIT_S))
        running.enter_context(both[1].child)
        for arm in both:
            arms.wait_synced(arm)
        for number in range(2 if quick else 5):
            for kind, (pods_per_s, leases_per_s) in STREAMS.items():
                progress(f"updates: {kind}s, round {number + 1}")
                stub.stream(pods_per_s=pods_per_s, leases_per_s=leases_per_s)
                sent = stub.sent()
                before = {arm.name: arm.child.cpu_s() for arm in both}
                time.sleep(SECONDS)
                sent = stub.sent() - sent
                for arm in both:
                    spent[kind][arm.name].append((arm.child.cpu_s() - before[arm.name]) / max(sent, 1) * 1e6)
    figures = []
    for kind, by_arm in spent.items():
        ours, theirs = by_arm["readygate"], by_arm["go"]
        note = f"{sum(STREAMS[kind])} {kind} updates/s; rounds {spread(ours, 0)}; Go {median(theirs):.0f}"
        figures.append(Figure(f"{kind}_update_cpu_us", median(ours), "us", note))
        figures.append(Figure(f"{kind}_update_cpu_ratio_to_go", median_ratio(ours, theirs), "ratio"))
    return figures
